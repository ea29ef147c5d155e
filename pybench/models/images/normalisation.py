# SPDX-License-Identifier: Apache-2.0
"""What image models expect of an RGB image: [0, 1], then a data set's mean and deviation by channel, channels first."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pybench.catalogue.preprocessing import NORMALISATIONS, USUAL

Values = npt.NDArray[np.float32]


def mean_and_deviation(name: str = USUAL.normalisation) -> tuple[Values, Values]:
    """float32 [3] each, of red, green and blue in [0, 1]. `name`: of a row."""
    row = NORMALISATIONS[name]
    return np.array(row.mean, np.float32), np.array(row.deviation, np.float32)


def normalise(values: Values, name: str = USUAL.normalisation) -> Values:
    """float32 [H, W, 3] in [0, 1], to float32 [3, H, W]."""
    mean, deviation = mean_and_deviation(name)
    normalised: Values = (values - mean) / deviation
    return np.ascontiguousarray(normalised.transpose(2, 0, 1))
