# SPDX-License-Identifier: Apache-2.0
"""What image models expect of an RGB image: [0, 1], then ImageNet's mean and deviation by channel, channels first."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

IMAGENET_MEAN = np.array([0.485, 0.456, 0.406], np.float32)
IMAGENET_DEVIATION = np.array([0.229, 0.224, 0.225], np.float32)


def normalise(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """float32 [H, W, 3] in [0, 1], to float32 [3, H, W]."""
    normalised: npt.NDArray[np.float32] = (values - IMAGENET_MEAN) / IMAGENET_DEVIATION
    return np.ascontiguousarray(normalised.transpose(2, 0, 1))
