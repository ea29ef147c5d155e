# SPDX-License-Identifier: Apache-2.0
"""One picture in a file, as a model takes it: torchvision's preprocessing of evaluation.

Shorter side to 256/224 of the model's input, bilinear with antialiasing; centre crop; [0, 1]; ImageNet's mean and
deviation.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pybench.image_files.header import open_picture
from pybench.models.images.collection import Pixels
from pybench.models.images.normalisation import normalise

RESIZE_SHARE = 256 / 224  # of the crop's side; ImageNet's usual evaluation


def read_picture(path: Path, channels: int, height: int, width: int) -> Pixels:
    """One file as float32 [channels, height, width]; grey images stay in [0, 1], RGB ones are normalised as ImageNet's.

    Raises InputError naming the file when it is truncated, or `open_picture` refuses it.
    """
    with open_picture(path) as file:
        image = file.convert("L" if channels == 1 else "RGB")
    cropped = _resize_and_crop(image, height, width)
    values: Pixels = np.asarray(cropped, np.float32) / np.float32(255)
    return values[np.newaxis] if channels == 1 else normalise(values)


def _resize_and_crop(image: Any, height: int, width: int) -> Any:
    from PIL import Image

    side = round(max(height, width) * RESIZE_SHARE)
    short, long = sorted(image.size)
    resized = side, int(side * long / short)  # as torchvision computes it: the longer side is cut off, not rounded
    image = image.resize(resized if image.width <= image.height else resized[::-1], Image.Resampling.BILINEAR)
    left, top = round((image.width - width) / 2), round((image.height - height) / 2)
    return image.crop((left, top, left + width, top + height))
