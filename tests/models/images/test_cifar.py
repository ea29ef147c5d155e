# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pybench.errors import InputError
from pybench.models.images import has_splits, open_images
from pybench.models.images.cifar import RECORD_BYTES, SHAPE
from pybench.models.images.normalisation import mean_and_deviation

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
        mean, deviation = (values[:, None, None] for values in mean_and_deviation("cifar10"))
        expected = (pixels / 255 - mean) / deviation
        assert np.allclose(images.read(number), expected, atol=1e-6)


def test_one_split_alone_serves_both_and_says_so(folder: Path) -> None:
    write_batch(folder / "test_batch.bin", [1], 1)
    assert not has_splits(folder)
    assert open_images(folder, "train", SHAPE).ids == open_images(folder, "validation", SHAPE).ids


def test_images_are_resized_whole_to_the_model(folder: Path) -> None:
    pixels = write_batch(folder / "test_batch.bin", [1], 1)[0]
    found = open_images(folder, "validation", (3, 48, 48)).read(0)
    resized = Image.fromarray(pixels.transpose(1, 2, 0)).resize((48, 48), Image.Resampling.BILINEAR)
    mean, deviation = mean_and_deviation("cifar10")
    expected = (np.asarray(resized) / 255 - mean) / deviation
    assert np.allclose(found, expected.transpose(2, 0, 1), atol=1e-6)


def test_a_cut_file_a_label_out_of_range_and_grey_models_are_refused(folder: Path) -> None:
    write_batch(folder / "test_batch.bin", [9, 10], 1)
    with pytest.raises(InputError, match=r"test_batch\.bin labels image 1 with 10, and there are 10 classes") as raised:
        open_images(folder, "validation", SHAPE)
    assert "labels are 0 to 9" in str(raised.value.hint)
    with pytest.raises(InputError, match="are RGB, the model takes 1x8x8"):
        open_images(folder, "validation", (1, 8, 8))
    (folder / "test_batch.bin").write_bytes(bytes(RECORD_BYTES + 1))
    with pytest.raises(InputError, match=r"test_batch\.bin is no batch of CIFAR-10: 3074 bytes"):
        open_images(folder, "validation", SHAPE)
