# SPDX-License-Identifier: Apache-2.0
"""One picture in a file, as a model takes it: torchvision's preprocessing of evaluation.

Shorter side to 256/224 of the model's input, bilinear with antialiasing; centre crop; [0, 1]; ImageNet's mean and
deviation. What has no one meaning as 8-bit RGB is refused, from the file's header alone: nothing is decoded before.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pybench.errors import InputError
from pybench.models.images.collection import Pixels
from pybench.models.images.normalisation import normalise

RESIZE_SHARE = 256 / 224  # of the crop's side; ImageNet's usual evaluation
LARGEST_PIXELS = 1024**3 // 4 // 3  # 89 million, a quarter of a GiB in RGB: from here on PIL warns of a bomb

_WIDE_MODES = ("I", "F")  # of PIL, with `I;16` and its kin: one channel of more than 8 bits
_SUBTRACTIVE = "CMYK"


def read_picture(path: Path, channels: int, height: int, width: int) -> Pixels:
    """One file as float32 [channels, height, width]; grey images stay in [0, 1], RGB ones are normalised as ImageNet's.

    Raises InputError naming the file when it is missing, empty, truncated, too large, or no picture of 8 bits in grey
    or RGB.
    """
    from PIL import Image

    try:
        if path.stat().st_size == 0:
            raise InputError(f"{path} is empty", hint="copy it again, or remove it")
        with Image.open(path) as file:
            _check_header(path, file)
            image = file.convert("L" if channels == 1 else "RGB")
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise _too_large(path) from error
    except (OSError, SyntaxError, ValueError, EOFError) as error:  # PIL raises SyntaxError for a broken PNG
        raise InputError(f"{path} is not a readable image ({error})", hint="remove it or store it again") from error
    cropped = _resize_and_crop(image, height, width)
    values: Pixels = np.asarray(cropped, np.float32) / np.float32(255)
    return values[np.newaxis] if channels == 1 else normalise(values)


def _check_header(path: Path, file: Any) -> None:
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


def _resize_and_crop(image: Any, height: int, width: int) -> Any:
    from PIL import Image

    side = round(max(height, width) * RESIZE_SHARE)
    short, long = sorted(image.size)
    resized = side, int(side * long / short)  # as torchvision computes it: the longer side is cut off, not rounded
    image = image.resize(resized if image.width <= image.height else resized[::-1], Image.Resampling.BILINEAR)
    left, top = round((image.width - width) / 2), round((image.height - height) / 2)
    return image.crop((left, top, left + width, top + height))
