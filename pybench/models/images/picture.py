# SPDX-License-Identifier: Apache-2.0
"""One picture in a file, as a model takes it: torchvision's and timm's preprocessing of evaluation.

The shorter side is resized with antialiasing, the centre cropped, and RGB normalised (`catalogue.preprocessing`).
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from pybench.catalogue.preprocessing import USUAL, Preprocessing
from pybench.image_files.header import open_picture
from pybench.models.images.collection import Pixels, Shape
from pybench.models.images.normalisation import normalise

_SLACK_PIXELS = 0.05  # timm cuts the side off; 224 of 232, written as 0.9655 or exactly, must not end in 231


def read_picture(path: Path, shape: Shape, preprocessing: Preprocessing = USUAL) -> Pixels:
    """One file as float32 of this shape; grey images stay in [0, 1].

    Raises InputError naming the file when it is truncated, or `open_picture` refuses it.
    """
    channels, height, width = shape
    with open_picture(path) as file:
        image = file.convert("L" if channels == 1 else "RGB")
    cropped = _resize_and_crop(image, height, width, preprocessing)
    values: Pixels = np.asarray(cropped, np.float32) / np.float32(255)
    return values[np.newaxis] if channels == 1 else normalise(values, preprocessing.normalisation)


def _resize_and_crop(image: Any, height: int, width: int, preprocessing: Preprocessing) -> Any:
    from PIL import Image

    side = math.floor(max(height, width) / preprocessing.crop_share + _SLACK_PIXELS)
    short, long = sorted(image.size)
    resized = side, int(side * long / short)  # as torchvision computes it: the longer side is cut off, not rounded
    filtered = Image.Resampling[preprocessing.interpolation.upper()]
    image = image.resize(resized if image.width <= image.height else resized[::-1], filtered)
    left, top = round((image.width - width) / 2), round((image.height - height) / 2)
    return image.crop((left, top, left + width, top + height))
