# SPDX-License-Identifier: Apache-2.0
"""What image models expect of an RGB image: [0, 1], then a data set's mean and deviation by channel, channels first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pybench.catalogue.preprocessing import NORMALISATIONS, USUAL


@dataclass(frozen=True, slots=True)
class Normalisation:
    """float32 [3] each, of red, green and blue in [0, 1]."""

    mean: npt.NDArray[np.float32]
    deviation: npt.NDArray[np.float32]


def normalisation(name: str) -> Normalisation:
    """That of a row of the catalogue."""
    row = NORMALISATIONS[name]
    return Normalisation(np.array(row.mean, np.float32), np.array(row.deviation, np.float32))


IMAGENET = normalisation(USUAL.normalisation)
# Of the pixels of the 50,000 images that train, channel by channel.
CIFAR10 = Normalisation(np.array([0.4914, 0.4822, 0.4465], np.float32), np.array([0.2470, 0.2435, 0.2616], np.float32))


def normalise(values: npt.NDArray[np.float32], by: Normalisation = IMAGENET) -> npt.NDArray[np.float32]:
    """float32 [H, W, 3] in [0, 1], to float32 [3, H, W]."""
    normalised: npt.NDArray[np.float32] = (values - by.mean) / by.deviation
    return np.ascontiguousarray(normalised.transpose(2, 0, 1))
