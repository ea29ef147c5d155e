# SPDX-License-Identifier: Apache-2.0
"""From largest magnitudes to scales: symmetric INT8 and FP8 (E4M3), zero point 0.

    scale = amax / 127 (INT8)   or   amax / 448 (FP8)
    code  = saturate(round(x / scale)),   x' = code * scale

INT8's -128 is left out of the scale, so that the range is symmetric; 448 is E4M3's largest finite number. (modelopt's
FP8 scales are 12.4 times as large: amax / 127 * 448 / 127; docs/log.md.) Rounding is to nearest, ties to even, as
QuantizeLinear does.
"""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import numpy.typing as npt

from pybench.precision.network import Array

LARGEST = {"int8": 127.0, "fp8": 448.0}
CODES = {"int8": np.dtype(np.int8), "fp8": np.dtype(ml_dtypes.float8_e4m3fn)}
_FLOATING = {"fp32": np.dtype(np.float32), "fp16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}

Reals = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Codes:
    """`kind`: int8 or fp8; `floating`: the type of scales, in which TensorRT wants what it scales, too."""

    kind: str
    floating: str = "fp32"

    def scales(self, magnitudes: Reals) -> Reals:
        """Scales of largest magnitudes, as FP32 numbers that the floating type holds exactly; always above 0.

        They are rounded upwards, so that the largest magnitude still fits (FP16's smallest scale is 2^-24: tensors
        below 7.6e-6 use only part of INT8's codes), and before anything is encoded, so that codes are made with the
        scale that undoes them. What is all 0 gets the scale 1.
        """
        kind = _FLOATING[self.floating]
        exact = np.where(magnitudes > 0, magnitudes / np.float32(LARGEST[self.kind]), np.float32(1)).astype(np.float32)
        nearest = exact.astype(kind)
        above = np.nextafter(nearest, np.array(np.inf, kind))
        rounded: Reals = np.where(nearest.astype(np.float32) < exact, above, nearest).astype(np.float32)
        return np.maximum(rounded, np.float32(2.0**-126))

    def zero_point(self, scale: Reals) -> Array:
        """As many zeros as scales; their type is the type of the codes."""
        return np.zeros(scale.shape, CODES[self.kind])


def magnitudes(value: Reals, axis: int | None) -> Reals:
    """The largest magnitude of a tensor, or of each index of `axis`."""
    others = None if axis is None else tuple(i for i in range(value.ndim) if i != axis)
    largest: Reals = np.asarray(np.abs(value).max(axis=others), np.float32)
    return largest
