# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pybench.errors import InputError
from pybench.models.images import has_splits, open_images
from pybench.models.images.cifar import RECORD_BYTES, SHAPE
from pybench.models.images.normalisation import IMAGENET_DEVIATION, IMAGENET_MEAN

NAMES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def write_batch(path: Path, labels: list[int], seed: int) -> np.ndarray:
    """Records as CIFAR's page describes them; returns the pixels."""
    pixels = np.random.default_rng(seed).integers(0, 256, (len(labels), 3072), np.uint8)
    path.write_bytes(b"".join(bytes([label]) + image.tobytes() for label, image in zip(labels, pixels, strict=True)))
    return pixels.reshape(-1, *SHAPE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "batches.meta.txt").write_text("\n".join(NAMES) + "\n\n")
    return tmp_path


def test_records_are_read_in_order_with_their_labels_and_names(folder: Path) -> None:
    first = write_batch(folder / "data_batch_1.bin", [3, 9], 1)
    second = write_batch(folder / "data_batch_2.bin", [0], 2)
    judges = write_batch(folder / "test_batch.bin", [5, 6, 7], 3)
    assert has_splits(folder)
    train, validation = (open_images(folder, split, SHAPE) for split in ("train", "validation"))
    assert train.labels.tolist() == [3, 9, 0]
    assert train.ids == ("data_batch_1/00000", "data_batch_1/00001", "data_batch_2/00000")
    assert train.classes == validation.classes == tuple(NAMES)
    for images, number, pixels in ((train, 1, first[1]), (train, 2, second[0]), (validation, 2, judges[2])):
        expected = (pixels / 255 - IMAGENET_MEAN[:, None, None]) / IMAGENET_DEVIATION[:, None, None]
        assert np.allclose(images.read(number), expected, atol=1e-6)


def test_one_split_alone_serves_both_and_says_so(folder: Path) -> None:
    write_batch(folder / "test_batch.bin", [1], 1)
    assert not has_splits(folder)
    assert open_images(folder, "train", SHAPE).ids == open_images(folder, "validation", SHAPE).ids


def test_a_cut_file_an_unnamed_label_and_another_size_are_refused(folder: Path) -> None:
    write_batch(folder / "test_batch.bin", [10], 1)
    with pytest.raises(InputError, match="labels an image 10"):
        open_images(folder, "validation", SHAPE)
    with pytest.raises(InputError, match="are 3x32x32, the model takes 3x224x224"):
        open_images(folder, "validation", (3, 224, 224))
    (folder / "test_batch.bin").write_bytes(bytes(RECORD_BYTES + 1))
    with pytest.raises(InputError, match=r"test_batch\.bin is no batch of CIFAR-10: 3074 bytes"):
        open_images(folder, "validation", SHAPE)
