# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from timm.data import create_transform, resolve_data_config
from timm.models import get_pretrained_cfg
from torch import Tensor
from torchvision.models import ResNet50_Weights
from torchvision.transforms._presets import ImageClassification

from pybench.catalogue.preprocessing import Preprocessing
from pybench.errors import InputError
from pybench.models.images.normalisation import mean_and_deviation
from pybench.models.images.picture import read_picture


def test_an_image_is_resized_cropped_and_normalised_as_torchvision_does(tmp_path: Path) -> None:
    # Left half black, right half white, 512 x 256: the shorter side is 256 already, so only the crop is left to check.
    picture = Image.new("RGB", (512, 256), (0, 0, 0))
    picture.paste((255, 255, 255), (256, 0, 512, 256))
    picture.save(tmp_path / "halves.png")
    values = read_picture(tmp_path / "halves.png", (3, 224, 224))
    assert values.shape == (3, 224, 224)
    mean, deviation = mean_and_deviation()
    black, white = ((value - mean) / deviation for value in (0, 1))
    assert np.allclose(
        values[:, 100, 111], black, atol=1e-6
    )  # column 144 + 111 = 255 of the picture: the last black one
    assert np.allclose(values[:, 100, 112], white, atol=1e-6)


def transforms_of_timm(name: str) -> Any:
    return create_transform(**resolve_data_config(pretrained_cfg=get_pretrained_cfg(name).to_dict()))


@pytest.mark.parametrize(
    ("preprocessing", "stated"),
    [
        (Preprocessing(), ResNet50_Weights.IMAGENET1K_V1.transforms()),
        (Preprocessing(crop_share=224 / 232), ResNet50_Weights.IMAGENET1K_V2.transforms()),
        (Preprocessing(crop_share=0.9655), ResNet50_Weights.IMAGENET1K_V2.transforms()),  # as a plan has it
        (Preprocessing(0.9, "bicubic", "half"), transforms_of_timm("vit_base_patch16_224.augreg_in21k_ft_in1k")),
        (Preprocessing(0.95, "bicubic"), transforms_of_timm("resnet50.a1_in1k")),
        (Preprocessing(0.9, "bicubic", "clip"), transforms_of_timm("vit_base_patch16_clip_224.openai")),
        (
            Preprocessing(normalisation="none"),
            ImageClassification(crop_size=224, resize_size=256, mean=(0.0,) * 3, std=(1.0,) * 3),
        ),
    ],
)
@pytest.mark.parametrize("size", [(300, 400), (401, 299), (230, 230)])
def test_values_are_those_of_torchvision_and_timm(
    tmp_path: Path, preprocessing: Preprocessing, stated: Callable[[Image.Image], Tensor], size: tuple[int, int]
) -> None:
    noise = np.random.default_rng(1).integers(0, 256, (size[1], size[0], 3), np.uint8)
    Image.fromarray(noise).save(tmp_path / "noise.png")
    values = read_picture(tmp_path / "noise.png", (3, 224, 224), preprocessing)
    np.testing.assert_allclose(values, stated(Image.open(tmp_path / "noise.png")).numpy(), rtol=0, atol=1e-6)


def test_the_longer_side_is_cut_off_not_rounded(tmp_path: Path) -> None:
    Image.new("L", (100, 151), 128).save(tmp_path / "tall.png")
    values = read_picture(tmp_path / "tall.png", (1, 224, 224))
    assert values.shape == (1, 224, 224)
    assert np.allclose(values, 128 / 255)


def test_grey_and_palette_images_become_what_the_model_takes(tmp_path: Path) -> None:
    Image.new("P", (16, 16), 3).save(tmp_path / "palette.png")
    Image.new("LA", (16, 16), (7, 255)).save(tmp_path / "alpha.png")
    assert read_picture(tmp_path / "palette.png", (3, 8, 8)).shape == (3, 8, 8)
    assert np.allclose(read_picture(tmp_path / "alpha.png", (1, 8, 8)), 7 / 255)


@pytest.mark.parametrize("content", [b"not an image", b"\x89PNG\r\n\x1a\n broken"])
def test_a_corrupt_image_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad.png").write_bytes(content)
    with pytest.raises(InputError, match=r"bad\.png is not a readable image"):
        read_picture(tmp_path / "bad.png", (3, 8, 8))


def test_a_truncated_image_is_named(tmp_path: Path) -> None:
    Image.effect_noise((64, 64), 80).save(tmp_path / "whole.jpg")
    content = (tmp_path / "whole.jpg").read_bytes()
    (tmp_path / "cut.jpg").write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match=r"cut\.jpg is not a readable image"):
        read_picture(tmp_path / "cut.jpg", (3, 8, 8))


def test_a_picture_with_its_previews_is_one_picture(tmp_path: Path) -> None:
    picture, preview = Image.new("RGB", (32, 32), (255, 255, 255)), Image.new("RGB", (8, 8))
    picture.save(tmp_path / "camera.jpg", format="MPO", save_all=True, append_images=[preview])
    assert np.allclose(read_picture(tmp_path / "camera.jpg", (1, 8, 8)), 1)
