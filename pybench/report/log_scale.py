# SPDX-License-Identifier: Apache-2.0
"""A logarithmic axis whose coordinates have the same bits on every processor.

Matplotlib's own scale takes NumPy's logarithm, which differs in the last bit from one kind of processor to the next. A
coordinate that is rounded for a PDF then differs now and then (`pybench.analysis.statistics.elementary`). Base 10; what
is not positive is clipped far below, as matplotlib does. Imports matplotlib: import it where something is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.scale import LogScale
from matplotlib.transforms import Transform
from numpy.typing import NDArray

_CLIPPED = -1000.0  # decades: below every float, and within what renderers take


class PlainLogScale(LogScale):
    """Give it to `axes.set_xscale` or `set_yscale`: locators and formatters are those of "log"."""

    name = "log"

    def get_transform(self) -> Any:
        return _Log10()


class _Log10(Transform):
    input_dims = output_dims = 1

    def transform_non_affine(self, values: Any) -> NDArray[np.float64]:
        return _each(_log10, values)

    def inverted(self) -> Transform:
        return _Power10()


class _Power10(Transform):
    input_dims = output_dims = 1

    def transform_non_affine(self, values: Any) -> NDArray[np.float64]:
        return _each(_power10, values)

    def inverted(self) -> Transform:
        return _Log10()


def _log10(value: float) -> float:
    return _CLIPPED if value <= 0 else math.log10(value)


def _power10(value: float) -> float:
    try:
        return math.pow(10.0, value)
    except OverflowError:
        return math.inf


def _each(function: Callable[[float], float], values: Any) -> NDArray[np.float64]:
    given = np.asarray(values, dtype=np.float64)
    return np.array([function(value) for value in given.flat], dtype=np.float64).reshape(given.shape)
