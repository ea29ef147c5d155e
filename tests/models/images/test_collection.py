# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pybench.errors import InputError
from pybench.models.images.digits import read_digits
from pybench.models.images.folder import read_folder
from pybench.models.images.picture import read_picture
from pybench.models.samples import TOGETHER
from tests.support.making import write_images
from tests.support.waiting import wait_for


def test_a_limit_keeps_all_classes(tmp_path: Path) -> None:
    write_images(tmp_path, {"a": 10, "b": 10})
    limited = read_folder(tmp_path, "validation", (3, 8, 8)).limited(4)
    assert limited.ids == ("a/00.png", "a/05.png", "b/00.png", "b/05.png")
    assert np.array_equal(limited.read(2), read_picture(tmp_path / "b/00.png", (3, 8, 8)))


def test_the_last_batch_is_filled_up_with_zeros() -> None:
    digits = read_digits("validation").limited(5)
    parts = list(digits.batches(3))
    assert [part.stop - part.start for part, _ in parts] == [3, 2]
    assert parts[1][1].shape == (3, 1, 8, 8)
    assert not parts[1][1][2].any()


@pytest.mark.parametrize(("batch", "threads"), [(7, 1), (40, 3), (TOGETHER, 2), (200, 4)])
def test_batches_come_in_order_however_many_threads_read_ahead(batch: int, threads: int) -> None:
    digits = read_digits("validation").limited(90)
    slow_first = replace(digits, load=lambda indices: (time.sleep(0.02 / (1 + indices[0])), digits.load(indices))[1])
    parts = [(chosen, pixels[: chosen.stop - chosen.start]) for chosen, pixels in slow_first.batches(batch, threads)]
    assert [chosen.start for chosen, _ in parts] == list(range(0, 90, batch))
    assert np.array_equal(np.concatenate([pixels for _, pixels in parts]), digits.load_all())


def test_no_more_is_read_ahead_than_two_pieces_a_thread() -> None:
    asked: list[int] = []
    digits = read_digits("validation")
    watched = replace(digits, load=lambda indices: (asked.append(len(indices)), digits.load(indices))[1])
    batches = watched.batches(TOGETHER, threads=3)
    next(batches)
    wait_for(lambda: len(asked) >= 7)
    time.sleep(0.05)  # for one more, which must not come
    assert asked == [TOGETHER] * 7
    batches.close()


def test_an_image_that_cannot_be_read_stops_the_batches(tmp_path: Path) -> None:
    write_images(tmp_path, {"a": 3, "b": 1})
    (tmp_path / "a/01.png").write_bytes(b"no image")
    with pytest.raises(InputError, match=r"01\.png is not a readable image"):
        list(read_folder(tmp_path, "validation", (3, 8, 8)).batches(2, threads=2))
