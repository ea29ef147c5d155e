# SPDX-License-Identifier: Apache-2.0
"""Random numbers that belong to an index: the same on every machine, in any order, without a state.

Each is a hash of (seed, split, image, draw): splitmix64's finaliser (Steele, Lea and Flood 2014, OOPSLA; constants of
Stafford's variant 13) on 64-bit integers. Floats are multiples of 2^-24, which float32 holds exactly. No generator
object whose stream could change between versions, and no function whose last bit depends on the processor.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_STEP = np.array([0xD1342543DE82EF95], np.uint64)  # odd; an array, because NumPy lets only arrays wrap silently
_DIRECTIONS = 1024
# Rounded to 2^-16, so that no mathematics library's last bit is left in it.
_CIRCLE = np.array(
    [
        [round(part(2 * math.pi * k / _DIRECTIONS) * 65536) / 65536 for part in (math.cos, math.sin)]
        for k in range(_DIRECTIONS)
    ],
    np.float32,
)


def hashed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """splitmix64's finaliser: uint64 of any shape, to uniform uint64 of that shape."""
    values = values + _GOLDEN
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


class Draws:
    """Numbers for some images, drawn by name and in order: the n-th call draws the same for an image whichever other
    images are drawn with it. Each returns float32 or int64 [images] (a last axis where the name says so)."""

    def __init__(self, seed: int, stream: int, indices: Integers) -> None:
        key = hashed(np.array([seed, stream], np.uint64))
        self._keys = hashed(indices.astype(np.uint64) ^ hashed(key[:1] ^ (key[1:] << np.uint64(1))))
        self._drawn = 0

    def __len__(self) -> int:
        return len(self._keys)

    def bits(self) -> Integers:
        """Uniform integers of 24 bits."""
        self._drawn += 1
        return (hashed(self._keys + _STEP * np.uint64(self._drawn)) >> np.uint64(40)).astype(np.int64)

    def integer(self, below: int) -> Integers:
        """0 .. below - 1; the bias is below `below` / 2^24."""
        return (self.bits() * below) >> 24

    def uniform(self, low: float, high: float) -> Floats:
        share = self.bits().astype(np.float32) * np.float32(2**-24)
        return np.float32(low) + np.float32(high - low) * share

    def sign(self) -> Floats:
        """-1 or 1."""
        return (self.integer(2) * 2 - 1).astype(np.float32)

    def bell(self) -> Floats:
        """Mean 0, deviation 1, within 2 sqrt(3): the sum of four uniform numbers (Irwin and Hall), standardised."""
        total = self.bits() + self.bits() + self.bits() + self.bits()
        return (total - 2 * 2**24).astype(np.float32) * np.float32(math.sqrt(3) * 2**-24)

    def direction(self) -> Floats:
        """Unit vectors [images, 2], one of 1024."""
        return _CIRCLE[self.integer(_DIRECTIONS)]

    def triple(self, low: float, high: float) -> Floats:
        """[images, 3], as a colour has."""
        return np.stack([self.uniform(low, high) for _ in range(3)], axis=-1)
