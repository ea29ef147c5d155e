# SPDX-License-Identifier: Apache-2.0
"""Whether a file is a picture of 8 bits in grey or RGB: what has no such meaning is refused, by its header alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pybench.errors import InputError

LARGEST_PIXELS = 1024**3 // 4 // 3  # 89 million, a quarter of a GiB in RGB: from here on PIL warns of a bomb

_WIDE_MODES = ("I", "F")  # of PIL, with `I;16` and its kin: one channel of more than 8 bits
_SUBTRACTIVE = "CMYK"


@contextmanager
def open_picture(path: Path) -> Iterator[Any]:
    """PIL's image of a file, not decoded. Raises InputError naming the file when it is missing, empty, too large, or no
    picture of 8 bits in grey or RGB; also where decoding it fails inside.
    """
    from PIL import Image

    try:
        if path.stat().st_size == 0:
            raise InputError(f"{path} is empty", hint="copy it again, or remove it")
        with Image.open(path) as file:
            _check(path, file)
            yield file
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise _too_large(path) from error
    except (OSError, SyntaxError, ValueError, EOFError) as error:  # PIL raises SyntaxError for a broken PNG
        raise InputError(f"{path} is not a readable image ({error})", hint="remove it or store it again") from error


def check_picture(path: Path) -> None:
    """Raises InputError for a file that `open_picture` refuses."""
    with open_picture(path):
        pass


def _check(path: Path, file: Any) -> None:
    """`file`: of PIL, opened and not decoded. Raises InputError for what would be converted by a guess."""
    if file.width * file.height > LARGEST_PIXELS:
        raise _too_large(path, f": {file.width}x{file.height}")
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
    return any(";16" in str(args[0]) or (codec == "ppm" and args[1] > 255) for codec, args in tiles)


def _too_large(path: Path, size: str = "") -> InputError:
    return InputError(
        f"{path} is too large an image{size}, more than {LARGEST_PIXELS // 10**6} megapixels",
        hint="store it smaller, or remove it",
    )
