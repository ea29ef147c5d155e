# SPDX-License-Identifier: Apache-2.0
"""Whether a file is a picture of 8 bits in grey or RGB: what has no such meaning is refused, by its header alone."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from pybench.errors import InputError

_WIDE_MODES = ("I", "F")  # of PIL, with `I;16` and its kin: one channel of more than 8 bits
_PACKED = ("BGR;16", "RGB;16")  # 16 bits a pixel, in BMP and TGA: 5 or 6 a channel
_SUBTRACTIVE = "CMYK"


@contextmanager
def open_picture(path: Path) -> Iterator[Any]:
    """PIL's image of a file, not decoded. Raises InputError naming the file when it is missing, empty, too large, or no
    picture of 8 bits in grey or RGB; also where decoding it fails inside.
    """
    pil = _pil()
    try:
        if path.stat().st_size == 0:
            raise InputError(f"{path} is empty", hint="copy it again, or remove it")
        with pil.open(path) as file:
            _check(path, file)
            yield file
    except (pil.DecompressionBombError, pil.DecompressionBombWarning) as error:
        megapixels = pil.MAX_IMAGE_PIXELS // 10**6
        what = f"{path} is too large an image, more than {megapixels} megapixels"
        raise InputError(what, hint="store it smaller, or remove it") from error
    except (OSError, SyntaxError, ValueError, EOFError) as error:  # PIL raises SyntaxError for a broken PNG
        raise InputError(f"{path} is not a readable image ({error})", hint="remove it or store it again") from error


@cache
def _pil() -> Any:
    """PIL, imported when it is of use. What it warns of, 89 million pixels and more, is an error here, told once."""
    from PIL import Image

    warnings.simplefilter("error", Image.DecompressionBombWarning)
    return Image


def check_picture(path: Path) -> None:
    """Raises InputError for a file that `open_picture` refuses."""
    with open_picture(path):
        pass


def _check(path: Path, file: Any) -> None:
    """`file`: of PIL, opened and not decoded. Raises InputError for what would be converted by a guess."""
    if file.mode == _SUBTRACTIVE:
        raise InputError(f"{path} is in CMYK, not in RGB or grey", hint="store it again in RGB")
    if _is_wide(file):
        raise InputError(f"{path} has more than 8 bits a channel", hint="store it again with 8 bits a channel")
    frames = getattr(file, "n_frames", 1)
    if frames > 1 and file.format != "MPO":  # of a camera: one picture with its previews
        raise InputError(f"{path} has {frames} frames, not one", hint="store one of its frames as an image")


def _is_wide(file: Any) -> bool:
    """Whether a channel has more than 8 bits. PIL cuts those of 16-bit RGB, and only its tiles tell: their raw mode, or
    in a .ppm the largest value."""
    if str(file.mode).partition(";")[0] in _WIDE_MODES:
        return True
    tiles = [(codec, args if isinstance(args, tuple) else (args,)) for codec, *_, args in file.tile]
    return any(
        _is_deep(str(args[0])) or (codec in ("ppm", "ppm_plain") and _largest(args) > 255) for codec, args in tiles
    )


def _is_deep(raw_mode: str) -> bool:
    return ";16" in raw_mode and raw_mode not in _PACKED


def _largest(args: tuple[Any, ...]) -> int:
    """The largest value of a .ppm; black and white ones state none."""
    return int(args[1]) if len(args) > 1 else 1
