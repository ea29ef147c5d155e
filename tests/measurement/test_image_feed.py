# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from pybench.case import Case
from pybench.errors import InputError
from pybench.measurement import image_feed
from pybench.measurement.image_feed import ImageFeed
from pybench.measurement.result import RunRequest
from pybench.models.images.folder import read_folder
from tests.support.making import write_images

SHAPE = (3, 8, 8)


def feed_of(folder: Path, workers: int, batch: int = 2, seed: int = 3) -> ImageFeed:
    case = Case(workload="train", model="resnet50", images="pictures", workers=workers, batch=batch)
    request = RunRequest(case=case, block=0, attempt=1, seed=seed, artefacts={}, files={"images": folder})
    return ImageFeed(request, SHAPE, "cpu")


@pytest.mark.process
@pytest.mark.parametrize("workers", [0, 2])
def test_batches_are_the_images_that_train_in_an_order_of_the_seed(tmp_path: Path, workers: int) -> None:
    write_images(tmp_path / "train", {"a": 3, "b": 3})
    write_images(tmp_path / "val", {"a": 1, "b": 1})
    images = read_folder(tmp_path, "train", SHAPE)
    order = image_feed._shuffled(6, 2, seed=3)
    with feed_of(tmp_path, workers) as feed:
        for chosen, _ in zip(order, range(4), strict=False):
            pixels, labels = feed.next()
            assert np.array_equal(pixels.numpy(), images.load(chosen))
            assert labels.tolist() == images.labels[chosen].tolist()
        assert feed.wait_s > 0


def test_an_epoch_has_each_image_once_and_batches_may_be_of_two() -> None:
    order = image_feed._shuffled(5, 3, seed=1)
    drawn = np.concatenate([next(order) for _ in range(5)])
    for epoch in np.split(drawn, 3):
        assert sorted(epoch.tolist()) == [0, 1, 2, 3, 4]
    assert drawn[:5].tolist() != drawn[5:10].tolist()
    assert Counter(next(image_feed._shuffled(2, 5, seed=1)).tolist()).total() == 5


@pytest.mark.process
@pytest.mark.parametrize("workers", [0, 1])
def test_an_unreadable_image_is_one_error_with_its_place_and_hint(tmp_path: Path, workers: int) -> None:
    write_images(tmp_path, {"a": 1, "b": 1})
    (tmp_path / "b/00.png").write_bytes(b"no image")
    with feed_of(tmp_path, workers) as feed, pytest.raises(InputError) as raised:
        feed.next()
    assert raised.value.message.startswith(f"{tmp_path}/b/00.png is not a readable image")
    assert raised.value.hint == "remove it or store it again"


@pytest.mark.process
def test_processes_read_and_end_with_the_feed(tmp_path: Path) -> None:
    write_images(tmp_path, {"a": 2, "b": 2})
    with feed_of(tmp_path, 2) as feed:
        feed.next()
        pids = [process.pid for process in feed._batches._workers]
        assert len(pids) == 2
        assert os.getpid() not in pids
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_the_global_random_state_is_left_as_it_was(tmp_path: Path) -> None:
    write_images(tmp_path, {"a": 2, "b": 2})
    before = torch.get_rng_state()
    with feed_of(tmp_path, 0) as feed:
        feed.next()
    assert torch.equal(before, torch.get_rng_state())
