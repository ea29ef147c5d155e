# SPDX-License-Identifier: Apache-2.0
"""Logarithms, exponentials and cubes that have the same bits on every processor.

NumPy's own come in several kinds, chosen by the processor's vector instructions, and those differ in the last bit (its
sums, means, squares and roots do not). A report made again on another machine has to have the same bytes. So the few
thousand logarithms and exponentials here go one by one through the C library.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


def log(values: Numbers) -> Numbers:
    """Natural logarithms of positive values, in the same shape."""
    return np.array([math.log(value) for value in values.flat], dtype=np.float64).reshape(values.shape)


def exp(value: float) -> float:
    """e to the power of `value`; infinity where that is beyond a float."""
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def exp_of(values: Numbers) -> Numbers:
    """`exp` of each value, in the same shape."""
    return np.array([exp(value) for value in values.flat], dtype=np.float64).reshape(values.shape)


def cube(values: Numbers) -> Numbers:
    """The third power of each value, in the same shape."""
    return values * values * values
