# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from PIL import Image

from pybench.errors import InputError
from pybench.image_files.header import check_picture


def write_png_header(path: Path, width: int, height: int, bits: int, colour: int = 2) -> None:
    """A PNG whose pixels are missing: only its header can be read. `colour`: 0 grey, 2 RGB."""

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", b""))


@pytest.mark.parametrize(("name", "colour"), [("grey.png", 0), ("colour.png", 2)])
def test_sixteen_bits_are_refused_before_they_are_cut_to_eight(tmp_path: Path, name: str, colour: int) -> None:
    write_png_header(tmp_path / name, 16, 16, bits=16, colour=colour)
    with pytest.raises(InputError, match=rf"{name} has more than 8 bits a channel") as raised:
        check_picture(tmp_path / name)
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
        check_picture(path)


@pytest.mark.parametrize(("kind", "mode"), [(b"P2", "grey"), (b"P3", "colour")])
def test_sixteen_bits_written_as_text_are_refused(tmp_path: Path, kind: bytes, mode: str) -> None:
    """PIL scales the colours of such a file to 8 bits."""
    path = tmp_path / f"{mode}.ppm"
    path.write_bytes(kind + b"\n1 1\n65535\n" + b"40000 " * (3 if mode == "colour" else 1))
    with pytest.raises(InputError, match="more than 8 bits"):
        check_picture(path)
    path.write_bytes(kind + b"\n1 1\n255\n" + b"200 " * (3 if mode == "colour" else 1))
    check_picture(path)


def test_black_and_white_written_as_text_is_a_picture(tmp_path: Path) -> None:
    (tmp_path / "bits.ppm").write_bytes(b"P1\n2 2\n0 1\n1 0\n")
    check_picture(tmp_path / "bits.ppm")


def test_sixteen_bits_a_pixel_are_no_sixteen_bits_a_channel(tmp_path: Path) -> None:
    """A BMP of 5, 6 and 5 bits, as PIL itself does not write it."""
    masks = struct.pack("<III", 0xF800, 0x07E0, 0x001F)
    header = struct.pack("<IiiHHIIiiII", 40, 2, 2, 1, 16, 3, 8, 0, 0, 0, 0)
    start = 14 + len(header) + len(masks)
    pixels = struct.pack("<HHHH", 0xF800, 0, 0xFFFF, 0)
    (tmp_path / "packed.bmp").write_bytes(
        struct.pack("<2sIHHI", b"BM", start + 8, 0, 0, start) + header + masks + pixels
    )
    check_picture(tmp_path / "packed.bmp")
    assert Image.open(tmp_path / "packed.bmp").getpixel((0, 1)) == (255, 0, 0)


def test_cmyk_is_refused(tmp_path: Path) -> None:
    Image.new("CMYK", (16, 16)).save(tmp_path / "print.jpg")
    with pytest.raises(InputError, match=r"print\.jpg is in CMYK") as raised:
        check_picture(tmp_path / "print.jpg")
    assert raised.value.hint == "store it again in RGB"


@pytest.mark.parametrize("name", ["moving.png", "moving.webp", "pages.tiff"])
def test_several_frames_are_refused(tmp_path: Path, name: str) -> None:
    frames = [Image.new("RGB", (16, 16), (shade, 0, 0)) for shade in (0, 100, 200)]
    frames[0].save(tmp_path / name, save_all=True, append_images=frames[1:])
    with pytest.raises(InputError, match=rf"{name} has 3 frames, not one"):
        check_picture(tmp_path / name)


def test_an_empty_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "none.png").write_bytes(b"")
    with pytest.raises(InputError, match=r"none\.png is empty"):
        check_picture(tmp_path / "none.png")


@pytest.mark.parametrize("side", [10_000, 20_000])  # PIL warns of the first and refuses the second
def test_a_hundred_megapixels_are_refused_by_the_header_alone(tmp_path: Path, side: int) -> None:
    write_png_header(tmp_path / "huge.png", side, side, bits=8)
    with pytest.raises(InputError, match=r"huge\.png is too large an image") as raised:
        check_picture(tmp_path / "huge.png")
    assert "89 megapixels" in str(raised.value)
    assert raised.value.hint is not None


def test_what_is_refused_is_told_once(tmp_path: Path) -> None:
    """Outside of tests, where warnings are errors anyway."""
    write_png_header(tmp_path / "huge.png", 10_000, 10_000, bits=8)
    code = """
import sys
from pathlib import Path
from pybench.errors import InputError
from pybench.image_files.header import check_picture
try:
    check_picture(Path(sys.argv[1]))
except InputError as error:
    print(error.hint)
"""
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "huge.png"], capture_output=True, text=True)
    assert done.stdout == "store it smaller, or remove it\n"
    assert done.stderr == ""
