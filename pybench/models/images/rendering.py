# SPDX-License-Identifier: Apache-2.0
"""Scenes of synthetic-100 as pixels, with numpy or, for training, with torch on a GPU: the same maths, the same bytes.

Of float32, only operations that IEEE 754 defines to the last bit are used: sum, product, quotient of two arrays, root,
floor, comparison. Each stands on its own, so that nothing is fused; the rest is integers. A torch module is never
imported here: arrays of either kind take the same operators. n: images, H, W: height and width.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pybench.models.images.synthetic import FAMILIES, Objects, Scenes, Texture

RIM = 0.09  # width of an object's rim, in its mean radius
EDGE = 25.0  # slope from rim to texture, the same
TRAIT = 0.11  # amplitude of an outline's second harmonic, of a trait of 1

Array = Any  # of numpy or of torch
Placing = Callable[[npt.NDArray[Any]], Array]


def render(scenes: Scenes, height: int, width: int, xp: Any = np, place: Placing = np.asarray) -> Array:
    """uint8 values 0 to 255, as float32 [n, 3, H, W]. `xp`: numpy or torch; `place`: puts an array where it works."""
    painter = _Painter(xp, place)
    rows, columns = _centres(height), _centres(width)
    y, x = place(rows[np.newaxis, :, np.newaxis]), place(columns[np.newaxis, np.newaxis, :])  # [1, H, 1], [1, 1, W]
    pixel = np.float32(2 / min(height, width))
    canvas = painter.coloured(scenes.background, x, y)
    shade = painter.lattice(scenes.lattice, rows, columns)
    canvas = [channel + shade for channel in canvas]
    for objects in scenes.objects:
        canvas = painter.put(canvas, objects, x, y, float(pixel))
    slope = painter.column(scenes.slope[:, 0]) * x + painter.column(scenes.slope[:, 1]) * y + 1.0
    grain = painter.noise(scenes, height, width)
    canvas = [channel * slope + layer for channel, layer in zip(canvas, grain, strict=True)]
    return xp.floor(xp.clip(xp.stack(canvas, 1), 0.0, 1.0) * 255.0 + 0.5)


def _centres(size: int) -> npt.NDArray[np.float32]:
    """The middles of `size` pixels from -1 to 1."""
    return (np.arange(size, dtype=np.float32) * np.float32(2) + np.float32(1 - size)) / np.float32(size)


class _Painter:
    def __init__(self, xp: Any, place: Placing) -> None:
        self.xp, self.place = xp, place

    def column(self, values: npt.NDArray[Any]) -> Array:
        """[n] as [n, 1, 1], where the pixels are."""
        return self.place(np.ascontiguousarray(values)[:, np.newaxis, np.newaxis])

    def put(self, canvas: list[Array], objects: Objects, x: Array, y: Array, pixel: float) -> list[Array]:
        """The canvas with an object on it; its edge is one pixel wide."""
        xp, column = self.xp, self.column
        dx, dy = x - column(objects.centre[:, 0]), y - column(objects.centre[:, 1])
        across, along = (
            column(objects.inverse[:, axis, 0]) * dx + column(objects.inverse[:, axis, 1]) * dy for axis in (0, 1)
        )
        radius = self.root(across * across + along * along + 1e-12)
        # An object's own coordinates are larger than the frame's by 1 / its radius, the root of the determinant.
        inverse = objects.inverse
        scale = np.sqrt(inverse[:, 0, 0] * inverse[:, 1, 1] - inverse[:, 0, 1] * inverse[:, 1, 0])
        distance = self.outline(objects, across / radius) - radius
        cover = xp.clip(distance * column(np.float32(1) / (scale * np.float32(pixel))) + 0.5, 0.0, 1.0)
        inside = xp.clip((distance - RIM) * EDGE + 0.5, 0.0, 1.0)
        rim = column(objects.rim)
        painted = [rim + inside * (above - rim) for above in self.coloured(objects.texture, across, along)]
        return [below + cover * (above - below) for below, above in zip(canvas, painted, strict=True)]

    def outline(self, objects: Objects, cosine: Array) -> Array:
        """Radius in the direction with this cosine: 1 + depth C + 0.11 trait (2 C^2 - 1) with C = cos(lobes angle)."""
        twice = cosine + cosine
        before, current = cosine, twice * cosine - 1.0  # Chebyshev: cos((k + 1) a) = 2 cos(a) cos(k a) - cos((k - 1) a)
        chosen = 0.0
        for lobes in range(2, FAMILIES + 2):
            chosen = chosen + current * self.column((objects.lobes == lobes).astype(np.float32))
            before, current = current, twice * current - before
        double = chosen * chosen * 2.0 - 1.0
        trait = self.column(objects.trait * np.float32(TRAIT))
        return self.column(objects.depth) * chosen + trait * double + 1.0

    def coloured(self, texture: Texture, x: Array, y: Array) -> list[Array]:
        """Three channels [n, H, W]."""
        column = self.column
        pattern = self.pattern(texture, x, y)
        return [
            column(texture.dark[:, channel]) + pattern * column(texture.bright[:, channel] - texture.dark[:, channel])
            for channel in range(3)
        ]

    def pattern(self, texture: Texture, x: Array, y: Array) -> Array:
        """How bright a texture is at each point, 0 to 1."""
        column = self.column
        first, second = (
            column(texture.waves[:, wave, 0]) * x
            + column(texture.waves[:, wave, 1]) * y
            + column(texture.phases[:, wave])
            for wave in (0, 1)
        )
        families = (self.wavy, self.checks, self.rings, self.dots, self.double)
        if len(texture.family) == 1:
            value = families[int(texture.family[0])](texture.trait, first, second)
        else:
            value = self.xp.zeros_like(first)
            for number, family in enumerate(families):
                (chosen,) = np.nonzero(texture.family == number)
                if len(chosen):
                    at = self.place(chosen)
                    value[at] = family(texture.trait[chosen], first[at], second[at])
        return self.xp.clip(value * column(texture.sharpness) + 0.5, 0.0, 1.0)

    def wave(self, phase: Array) -> Array:
        """A triangle wave of period 1 between -0.5 and 0.5."""
        return self.xp.abs((phase - self.xp.floor(phase)) * 2.0 - 1.0) - 0.5

    # Families of textures: values about 0, from -0.5 to 0.5 at most twice that. The trait is between -3 and 3.

    def wavy(self, trait: npt.NDArray[Any], first: Array, second: Array) -> Array:
        """Stripes, as wavy as 0.55 + 0.3 trait."""
        return self.wave(first + self.column(trait * np.float32(0.3) + np.float32(0.55)) * self.wave(second))

    def checks(self, trait: npt.NDArray[Any], first: Array, second: Array) -> Array:
        """Checks, 1.6 + 0.45 trait times as long as wide."""
        length = np.float32(1) / (trait * np.float32(0.45) + np.float32(1.6))
        return self.wave(first) * self.wave(second * self.column(length)) * 3.0

    def rings(self, trait: npt.NDArray[Any], first: Array, second: Array) -> Array:
        """Rings about a point, round to square: a mean of the Euclidean and the city-block distance."""
        across, along = first - 0.5, second - 0.5
        round_, square = self.root(across * across + along * along), self.xp.abs(across) + self.xp.abs(along)
        share = self.column(trait * np.float32(0.3) + np.float32(0.5))
        return self.wave(round_ + share * (square * 0.8 - round_))

    def dots(self, trait: npt.NDArray[Any], first: Array, second: Array) -> Array:
        """Dots on a lattice that is skewed by 0.25 + 0.13 trait."""
        skewed = second + first * self.column(trait * np.float32(0.13) + np.float32(0.25))
        return self.wave(first) + self.wave(skewed) - 0.3

    def double(self, trait: npt.NDArray[Any], first: Array, second: Array) -> Array:
        """Stripes of which every second one is weaker by 0.5 + 0.3 trait."""
        return self.wave(first) + self.wave(first * 0.5) * self.column(trait * np.float32(0.3) + np.float32(0.5))

    def lattice(self, values: npt.NDArray[Any], rows: npt.NDArray[Any], columns: npt.NDArray[Any]) -> Array:
        """Values on a lattice over the frame, interpolated linearly: [n, H, W]."""
        row, row_share = _cells(rows, values.shape[1])
        column, column_share = _cells(columns, values.shape[2])
        share = row_share[np.newaxis, :, np.newaxis]
        lines = self.place(values[:, row] + share * (values[:, row + 1] - values[:, row]))  # [n, H, points]
        left, right = lines[:, :, self.place(column)], lines[:, :, self.place(column + 1)]
        return left + self.place(column_share) * (right - left)

    def noise(self, scenes: Scenes, height: int, width: int) -> list[Array]:
        """Three channels [n, H, W], uniform between plus and minus the amplitude: a hash of the pixel's number.

        Factors below 2^31 on 32 bits stay within int64 (the hash is Wellons's lowbias32 with smaller factors).
        """
        number = self.place(np.arange(height * width, dtype=np.int64).reshape(1, height, width))
        value = (number * 0x1F123BB5 + self.column(scenes.noise_key * 0x3C6EF372)) & 0xFFFFFFFF
        for shift, factor in ((16, 0x21F0AAAD), (15, 0x735A2D97)):
            value = ((value ^ (value >> shift)) * factor) & 0xFFFFFFFF
        value = value ^ (value >> 15)
        amplitude = self.column(scenes.noise * np.float32(2 / 255))
        offset = self.column(scenes.noise)
        return [self.single((value >> shift) & 255) * amplitude - offset for shift in (0, 8, 16)]

    def root(self, values: Array) -> Array:
        """The root, rounded correctly. torch's own on a CPU is not; in double precision and rounded, it is."""
        return np.sqrt(values) if isinstance(values, np.ndarray) else self.xp.sqrt(values.double()).float()

    def single(self, values: Array) -> Array:
        """Integers as float32."""
        return values.astype(np.float32) if isinstance(values, np.ndarray) else values.to(self.xp.float32)


def _cells(positions: npt.NDArray[np.float32], points: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """For positions from -1 to 1 over `points` lattice points: the cell, and how far into it."""
    scaled = (positions + np.float32(1)) * np.float32((points - 1) / 2)
    cell = np.clip(np.floor(scaled), 0, points - 2)
    return cell.astype(np.int64), scaled - cell.astype(np.float32)
