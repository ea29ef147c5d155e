# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pybench.errors import InputError
from pybench.models.images import has_splits, open_images
from pybench.models.images.normalisation import mean_and_deviation

PIXELS = np.random.default_rng(0).integers(0, 256, (4, 3, 6, 5), np.uint8)
LABELS = np.array([2, 0, 1, 2])
SHAPE = (3, 6, 5)


@pytest.mark.parametrize("stored", [PIXELS, PIXELS.transpose(0, 2, 3, 1)], ids=["channels first", "channels last"])
@pytest.mark.parametrize("kind", ["npz", "folder"])
def test_bytes_are_normalised_as_any_picture(tmp_path: Path, stored: np.ndarray, kind: str) -> None:
    path = tmp_path / "set.npz" if kind == "npz" else tmp_path
    if kind == "npz":
        np.savez(path, images=stored, labels=LABELS)
    else:
        np.save(path / "images.npy", stored)
        np.save(path / "labels.npy", LABELS)
    images = open_images(path, "validation", SHAPE)
    assert images.labels.tolist() == [2, 0, 1, 2]
    assert images.ids == ("000000", "000001", "000002", "000003")
    assert len(images.classes) == 3
    mean, deviation = (values[:, None, None] for values in mean_and_deviation())
    expected = (PIXELS[3] / 255 - mean) / deviation
    assert np.allclose(images.read(3), expected, atol=1e-6)


def test_floats_are_given_as_they_are_and_grey_images_get_a_channel(tmp_path: Path) -> None:
    values = np.linspace(-3, 3, 4 * 6 * 5, dtype=np.float32).reshape(4, 6, 5)
    np.savez(tmp_path / "floats.npz", images=values, labels=LABELS)
    assert np.array_equal(open_images(tmp_path / "floats.npz", "train", (1, 6, 5)).read(1), values[1:2])


def test_train_beside_val_splits_the_arrays(tmp_path: Path) -> None:
    for name, chosen in (("train", slice(0, 3)), ("val", slice(3, 4))):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "images.npy", PIXELS[chosen])
        np.save(tmp_path / name / "labels.npy", LABELS[chosen])
    assert has_splits(tmp_path)
    assert len(open_images(tmp_path, "train", SHAPE)) == 3
    assert len(open_images(tmp_path, "validation", SHAPE)) == 1


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"images": PIXELS}, "contains no array `labels`"),
        ({"images": PIXELS, "labels": LABELS / 2}, "labels are float64"),
        ({"images": PIXELS, "labels": LABELS - 1}, "integers from 0, and the smallest here is -1"),
        ({"images": PIXELS[:0], "labels": LABELS[:0].astype(np.int64)}, "contains no images"),
        ({"images": PIXELS, "labels": LABELS[:3]}, "but there are 3 labels"),
        ({"images": PIXELS.astype(np.int32), "labels": LABELS}, "images are int32"),
        ({"images": np.array([{}], object), "labels": LABELS}, "contains no readable arrays"),
        ({"images": PIXELS[:, :, :, :4], "labels": LABELS}, "are 3x6x4, the model takes 3x6x5"),
    ],
)
def test_what_is_no_labelled_images_is_refused(tmp_path: Path, arrays: dict[str, np.ndarray], message: str) -> None:
    np.savez(tmp_path / "set.npz", **arrays)
    with pytest.raises(InputError, match=message):
        open_images(tmp_path / "set.npz", "validation", SHAPE)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_an_image_that_is_not_finite_is_named(tmp_path: Path, wrong: float) -> None:
    values = np.zeros((4, 6, 5), np.float32)
    values[2, 3, 1] = wrong
    np.savez(tmp_path / "floats.npz", images=values, labels=LABELS)
    images = open_images(tmp_path / "floats.npz", "validation", (1, 6, 5))
    assert not images.read(1).any()
    with pytest.raises(InputError, match=r"floats\.npz: image 2 contains numbers that are NaN or infinite"):
        images.load_all()
