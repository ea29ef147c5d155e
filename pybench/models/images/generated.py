# SPDX-License-Identifier: Apache-2.0
"""synthetic-100 as a data set: images are drawn when they are read, equal to the byte on every machine."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pybench.errors import InputError
from pybench.models.images.collection import Images, Pixels, Shape, model_input
from pybench.models.images.rendering import render
from pybench.models.images.synthetic import CLASS_NAMES, TRAINING_IMAGES, VALIDATION_IMAGES, draw_scenes, labels_of
from pybench.models.samples import Split


def open_synthetic(split: Split, shape: Shape) -> Images:
    """The 5,000 images that judge, or the first 10,000 of those that train, at any size; one channel: their mean."""
    channels, height, width = shape
    if channels not in (1, 3):
        raise InputError(f"the model takes {channels} channels; images have 1 (grey) or 3 (RGB)")

    def load(indices: npt.NDArray[np.int64]) -> Pixels:
        drawn = render(draw_scenes(split, indices), height, width).astype(np.uint8)
        return np.stack([model_input(one if channels == 3 else grey(one)) for one in drawn])

    numbers = np.arange(VALIDATION_IMAGES if split == "validation" else TRAINING_IMAGES)
    ids = tuple(f"{split}-{number:05d}" for number in numbers)
    return Images(ids, labels_of(split, numbers), CLASS_NAMES, shape, load)


def grey(drawn: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """uint8 [3, H, W], to the mean [1, H, W], rounded down."""
    total: npt.NDArray[np.int64] = drawn.sum(0, keepdims=True, dtype=np.int64)
    return (total // 3).astype(np.uint8)
