# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pybench.errors import InputError
from pybench.models.images.normalisation import IMAGENET_DEVIATION, IMAGENET_MEAN
from pybench.models.images.picture import read_picture


def write_png_header(path: Path, width: int, height: int, bits: int, colour: int = 2) -> None:
    """A PNG whose pixels are missing: only its header can be read. `colour`: 0 grey, 2 RGB."""

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", b""))


def test_an_image_is_resized_cropped_and_normalised_as_torchvision_does(tmp_path: Path) -> None:
    # Left half black, right half white, 512 x 256: the shorter side is 256 already, so only the crop is left to check.
    picture = Image.new("RGB", (512, 256), (0, 0, 0))
    picture.paste((255, 255, 255), (256, 0, 512, 256))
    picture.save(tmp_path / "halves.png")
    values = read_picture(tmp_path / "halves.png", 3, 224, 224)
    assert values.shape == (3, 224, 224)
    black = (0 - IMAGENET_MEAN) / IMAGENET_DEVIATION
    white = (1 - IMAGENET_MEAN) / IMAGENET_DEVIATION
    assert np.allclose(
        values[:, 100, 111], black, atol=1e-6
    )  # column 144 + 111 = 255 of the picture: the last black one
    assert np.allclose(values[:, 100, 112], white, atol=1e-6)


def test_the_longer_side_is_cut_off_not_rounded(tmp_path: Path) -> None:
    Image.new("L", (100, 151), 128).save(tmp_path / "tall.png")
    values = read_picture(tmp_path / "tall.png", 1, 224, 224)
    assert values.shape == (1, 224, 224)
    assert np.allclose(values, 128 / 255)


def test_grey_and_palette_images_become_what_the_model_takes(tmp_path: Path) -> None:
    Image.new("P", (16, 16), 3).save(tmp_path / "palette.png")
    Image.new("LA", (16, 16), (7, 255)).save(tmp_path / "alpha.png")
    assert read_picture(tmp_path / "palette.png", 3, 8, 8).shape == (3, 8, 8)
    assert np.allclose(read_picture(tmp_path / "alpha.png", 1, 8, 8), 7 / 255)


@pytest.mark.parametrize("content", [b"not an image", b"\x89PNG\r\n\x1a\n broken"])
def test_a_corrupt_image_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad.png").write_bytes(content)
    with pytest.raises(InputError, match=r"bad\.png is not a readable image"):
        read_picture(tmp_path / "bad.png", 3, 8, 8)


def test_a_truncated_image_is_named(tmp_path: Path) -> None:
    Image.effect_noise((64, 64), 80).save(tmp_path / "whole.jpg")
    content = (tmp_path / "whole.jpg").read_bytes()
    (tmp_path / "cut.jpg").write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match=r"cut\.jpg is not a readable image"):
        read_picture(tmp_path / "cut.jpg", 3, 8, 8)


@pytest.mark.parametrize(("name", "colour"), [("grey.png", 0), ("colour.png", 2)])
def test_sixteen_bits_are_refused_before_they_are_cut_to_eight(tmp_path: Path, name: str, colour: int) -> None:
    write_png_header(tmp_path / name, 16, 16, bits=16, colour=colour)
    with pytest.raises(InputError, match=rf"{name} has more than 8 bits a channel") as raised:
        read_picture(tmp_path / name, 3, 8, 8)
    assert raised.value.hint == "store it again with 8 bits a channel"


@pytest.mark.parametrize("name", ["wide.tif", "wide.ppm", "wide.pgm"])
def test_other_formats_of_sixteen_bits_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name.endswith(".tif"):
        Image.new("I;16", (8, 8)).save(path)
    else:
        kind, channels = (b"P6", 3) if name.endswith(".ppm") else (b"P5", 1)
        path.write_bytes(kind + b"\n8 8\n65535\n" + bytes(8 * 8 * 2 * channels))
    with pytest.raises(InputError, match="more than 8 bits"):
        read_picture(path, 3, 8, 8)


def test_cmyk_is_refused(tmp_path: Path) -> None:
    Image.new("CMYK", (16, 16)).save(tmp_path / "print.jpg")
    with pytest.raises(InputError, match=r"print\.jpg is in CMYK") as raised:
        read_picture(tmp_path / "print.jpg", 3, 8, 8)
    assert raised.value.hint == "store it again in RGB"


@pytest.mark.parametrize("name", ["moving.png", "moving.webp", "pages.tiff"])
def test_several_frames_are_refused(tmp_path: Path, name: str) -> None:
    frames = [Image.new("RGB", (16, 16), (shade, 0, 0)) for shade in (0, 100, 200)]
    frames[0].save(tmp_path / name, save_all=True, append_images=frames[1:])
    with pytest.raises(InputError, match=rf"{name} has 3 frames, not one"):
        read_picture(tmp_path / name, 3, 8, 8)


def test_an_empty_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "none.png").write_bytes(b"")
    with pytest.raises(InputError, match=r"none\.png is empty"):
        read_picture(tmp_path / "none.png", 3, 8, 8)


@pytest.mark.parametrize("side", [10_000, 20_000])  # PIL warns of the first and refuses the second
def test_a_hundred_megapixels_are_refused_by_the_header_alone(tmp_path: Path, side: int) -> None:
    write_png_header(tmp_path / "huge.png", side, side, bits=8)
    with pytest.raises(InputError, match=r"huge\.png is too large an image") as raised:
        read_picture(tmp_path / "huge.png", 3, 8, 8)
    assert "89 megapixels" in str(raised.value)
    assert raised.value.hint is not None


def test_a_picture_with_its_previews_is_one_picture(tmp_path: Path) -> None:
    picture, preview = Image.new("RGB", (32, 32), (255, 255, 255)), Image.new("RGB", (8, 8))
    picture.save(tmp_path / "camera.jpg", format="MPO", save_all=True, append_images=[preview])
    assert np.allclose(read_picture(tmp_path / "camera.jpg", 1, 8, 8), 1)
