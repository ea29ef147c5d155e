# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pybench.errors import InputError
from pybench.models.images.folder import has_splits, read_folder, read_image
from pybench.models.images.normalisation import IMAGENET_DEVIATION, IMAGENET_MEAN
from tests.support.making import write_images


def test_classes_are_numbered_by_sorted_name_and_ids_are_relative_paths(tmp_path: Path) -> None:
    write_images(tmp_path, {"zebra": 1, "ant": 2})
    found = read_folder(tmp_path, "validation", (3, 8, 8))
    assert found.classes == ("ant", "zebra")
    assert found.ids == ("ant/00.png", "ant/01.png", "zebra/00.png")
    assert found.labels.tolist() == [0, 0, 1]


def test_an_image_is_resized_cropped_and_normalised_as_torchvision_does(tmp_path: Path) -> None:
    # Left half black, right half white, 512 x 256: the shorter side is 256 already, so only the crop is left to check.
    picture = Image.new("RGB", (512, 256), (0, 0, 0))
    picture.paste((255, 255, 255), (256, 0, 512, 256))
    picture.save(tmp_path / "halves.png")
    values = read_image(tmp_path / "halves.png", 3, 224, 224)
    assert values.shape == (3, 224, 224)
    black = (0 - IMAGENET_MEAN) / IMAGENET_DEVIATION
    white = (1 - IMAGENET_MEAN) / IMAGENET_DEVIATION
    assert np.allclose(
        values[:, 100, 111], black, atol=1e-6
    )  # column 144 + 111 = 255 of the picture: the last black one
    assert np.allclose(values[:, 100, 112], white, atol=1e-6)


def test_the_longer_side_is_cut_off_not_rounded(tmp_path: Path) -> None:
    Image.new("L", (100, 151), 128).save(tmp_path / "tall.png")
    values = read_image(tmp_path / "tall.png", 1, 224, 224)
    assert values.shape == (1, 224, 224)
    assert np.allclose(values, 128 / 255)


def test_grey_and_palette_images_become_what_the_model_takes(tmp_path: Path) -> None:
    Image.new("P", (16, 16), 3).save(tmp_path / "palette.png")
    Image.new("LA", (16, 16), (7, 255)).save(tmp_path / "alpha.png")
    assert read_image(tmp_path / "palette.png", 3, 8, 8).shape == (3, 8, 8)
    assert np.allclose(read_image(tmp_path / "alpha.png", 1, 8, 8), 7 / 255)


@pytest.mark.parametrize("content", [b"", b"not an image", b"\x89PNG\r\n\x1a\n broken"])
def test_a_corrupt_image_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad.png").write_bytes(content)
    with pytest.raises(InputError, match=r"bad\.png is not a readable image"):
        read_image(tmp_path / "bad.png", 3, 8, 8)


def test_a_truncated_image_is_named(tmp_path: Path) -> None:
    Image.effect_noise((64, 64), 80).save(tmp_path / "whole.jpg")
    content = (tmp_path / "whole.jpg").read_bytes()
    (tmp_path / "cut.jpg").write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match=r"cut\.jpg is not a readable image"):
        read_image(tmp_path / "cut.jpg", 3, 8, 8)


def test_a_folder_without_classes_or_without_images_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="contains no class folders"):
        read_folder(tmp_path, "validation", (3, 8, 8))
    (tmp_path / "cat").mkdir()
    with pytest.raises(InputError, match="contains no images"):
        read_folder(tmp_path, "validation", (3, 8, 8))
    with pytest.raises(InputError, match="is not a readable folder"):
        read_folder(tmp_path / "absent", "validation", (3, 8, 8))


def test_train_beside_val_splits_the_images(tmp_path: Path) -> None:
    write_images(tmp_path / "train", {"a": 3, "b": 3})
    write_images(tmp_path / "val", {"a": 1, "b": 2})
    assert has_splits(tmp_path)
    assert len(read_folder(tmp_path, "train", (3, 8, 8))) == 6
    assert len(read_folder(tmp_path, "validation", (3, 8, 8))) == 3


def test_a_list_of_all_classes_numbers_the_folders_of_a_part_of_them(tmp_path: Path) -> None:
    root = write_images(tmp_path / "part", {"n03": 1, "n01": 2})
    (root / "classes.txt").write_text("n01\nn02\nn03\nn04\n")
    images = read_folder(root, "validation", (3, 16, 16))
    assert images.classes == ("n01", "n02", "n03", "n04")
    assert images.labels.tolist() == [0, 0, 2]
    (root / "classes.txt").write_text("n01\nn02\n")
    with pytest.raises(InputError, match=r"classes\.txt does not name the folder n03"):
        read_folder(root, "validation", (3, 16, 16))
