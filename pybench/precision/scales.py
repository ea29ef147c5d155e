# SPDX-License-Identifier: Apache-2.0
"""From largest magnitudes to scales: symmetric INT8 and FP8 (E4M3), zero point 0.

    scale = amax / 127 (INT8, restricted)   or   amax / 127.5 (INT8, full)
          or the power of two at or above amax / 448 (FP8)
    code  = saturate(round(x / scale)),   x' = code * scale

A power of two costs FP8 nothing, as its codes are floating numbers, and is exact in every type. Any other is not. The
products of TensorRT 10.6 multiply the two scales in FP16, cutting off what does not fit. Those products are among
FP16's subnormal numbers, with a few bits left or none (docs/decisions/014-scales.md). INT8's scales cannot be rounded
so far; a weight's is raised, by a few percent, until nothing is cut off its product with the activation's.

A restricted range leaves INT8's -128 out, so that the codes are symmetric. A full one has it, and cuts half a step off
the largest positive number (Krishnamoorthi 2018, arXiv:1806.08342). 448 is E4M3's largest finite number. (modelopt's
FP8 scales are 12.4 times as large: amax / 127 * 448 / 127; docs/decisions/012-quantisers.md.) Rounding is to nearest,
ties to even, as QuantizeLinear does.
"""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import numpy.typing as npt

from pybench.precision.network import Array

# Of two factors in FP8 with FP16 around: FP16's smallest number, which holds that power of two exactly.
LEAST_PRODUCT = {"fp16": 2.0**-24}
# Where FP16's numbers are multiples of its smallest: below, what it cuts off is more than 2^-10 of a product.
SUBNORMAL = 2.0**-14
# Of a scale for that product's sake. FP8: codes up to 0.4 are left, 200 times the smallest; INT8: 4 bits and the sign.
FURTHEST_RAISED = {"fp8": 2.0**10, "int8": 2.0**3}

LARGEST = {"int8": 127.0, "fp8": 448.0}
LARGEST_OF_FULL = 127.5  # of int8: half of its 255 steps
CODES = {"int8": np.dtype(np.int8), "fp8": np.dtype(ml_dtypes.float8_e4m3fn)}
_FLOATING = {"fp32": np.dtype(np.float32), "fp16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
_LARGEST_FLOATING = {
    name: np.float32(ml_dtypes.finfo(kind).max)  # type: ignore[no-untyped-call]
    for name, kind in _FLOATING.items()
}

Reals = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Codes:
    """What numbers are quantised to.

    kind: int8 or fp8
    floating: the type of the scales; TensorRT requires it of what is scaled, too
    is_full: of int8, whether -128 is a code
    """

    kind: str
    floating: str = "fp32"
    is_full: bool = False

    @property
    def largest(self) -> float:
        """What the largest magnitude is divided by."""
        return LARGEST_OF_FULL if self.is_full else LARGEST[self.kind]

    def scales(self, magnitudes: Reals, other: float | None = None) -> Reals:
        """Scales of largest magnitudes, as FP32 numbers that the floating type holds exactly; always above 0.

        `other`: the scale of the factor that these are multiplied with, where that product is computed in the floating
        type: they are raised so that it is a number of that type. INT8's only among FP16's subnormal numbers, and to
        2^-10 of it: that costs 6 % of a scale at most where the product is 1e-6, and less where it is larger.

        INT8's are rounded upwards, so that the largest magnitude still fits. FP16's smallest scale is 2^-24: tensors
        below 7.6e-6 use only part of INT8's codes. Scales are rounded before anything is encoded, so that codes are
        made with the scale that undoes them. What is all 0 gets the scale 1. What is too large for the floating type
        gets that type's largest: it overflows there before it is encoded.
        """
        kind, largest = _FLOATING[self.floating], _LARGEST_FLOATING[self.floating]
        exact = np.where(magnitudes > 0, magnitudes / np.float32(self.largest), np.float32(1)).astype(np.float32)
        if self.kind == "fp8":
            return self._powers_of_two(exact, other)
        if other is not None and self.floating in LEAST_PRODUCT:
            exact = self._raised(exact, other)
        exact = np.minimum(exact, largest)
        nearest = exact.astype(kind)
        above = np.nextafter(nearest, kind.type(largest))
        rounded: Reals = np.where(nearest.astype(np.float32) < exact, above, nearest).astype(np.float32)
        return np.maximum(rounded, np.float32(2.0**-126))

    def _raised(self, exact: Reals, other: float) -> Reals:
        """Scales whose product with `other` lies on, or right above, one of FP16's subnormal numbers."""
        step = LEAST_PRODUCT[self.floating]
        products = exact.astype(np.float64) * other
        wanted = np.where(products < SUBNORMAL, np.ceil(products / step) * step / other, exact)
        raised = np.minimum(wanted, exact * np.float64(FURTHEST_RAISED[self.kind]))
        nearest: Reals = np.maximum(raised.astype(np.float32), exact)
        return np.where(nearest < raised, np.nextafter(nearest, np.float32(np.inf)), nearest)  # never below the number

    def _powers_of_two(self, exact: Reals, other: float | None) -> Reals:
        fraction, exponent = np.frexp(exact)  # exact = fraction * 2^exponent, fraction in [0.5, 1)
        powers = np.ldexp(np.float32(1), np.where(fraction == 0.5, exponent - 1, exponent))
        least = LEAST_PRODUCT.get(self.floating, 2.0**-126)
        raised = np.minimum(least / other, powers * FURTHEST_RAISED[self.kind]) if other is not None else least
        largest = np.ldexp(np.float32(1), np.frexp(_LARGEST_FLOATING[self.floating])[1] - 1)  # a power of two, too
        scales: Reals = np.clip(np.maximum(powers, raised), least, largest).astype(np.float32)
        return scales

    def zero_point(self, scale: Reals) -> Array:
        """As many zeros as scales; their type is the type of the codes."""
        return np.zeros(scale.shape, CODES[self.kind])


def magnitudes(value: Reals, axis: int | None) -> Reals:
    """The largest magnitude of a tensor, or of each index of `axis`."""
    others = None if axis is None else tuple(i for i in range(value.ndim) if i != axis)
    largest: Reals = np.asarray(np.abs(value).max(axis=others), np.float32)
    return largest
