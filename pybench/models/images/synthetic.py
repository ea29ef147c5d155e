# SPDX-License-Identifier: Apache-2.0
"""synthetic-100: a generated data set of 100 classes, ten outlines times ten textures. What an image shows.

A class is an object's outline and the texture on it. Outlines come in five families (2 to 6 lobes), and textures come
in five (wavy stripes, checks, rings, dots, double stripes). Each family has two members that differ in one continuous
`trait` alone, centred at -1 and +1 and spread by DIFFICULTY. So the members overlap, some images cannot be told by
anyone, and the best possible Top-1 is known (`ceiling`). Everything else is drawn alike for all classes: colours,
place, size, turn, stretch and shear, and the background, light and noise. So are frequency, phase and sharpness of the
texture, and two other objects (one behind, one in front). `rendering` makes pixels of it; docs/method/accuracy.md
defines it. Needs numpy alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pybench.models.images.draws import Draws, Floats, Integers

FAMILIES = 5
MEMBERS = 2 * FAMILIES
CLASSES = MEMBERS * MEMBERS
CLASS_NAMES = tuple(f"{label:02d}" for label in range(CLASSES))
VALIDATION_IMAGES = 5_000
TRAINING_IMAGES = 10_000  # that can be listed, as calibration does; training draws further, without end

# Deviation of a trait about the centre of its class, where half the distance of the two centres is 1. What makes the
# set harder (or easier) without changing anything else: it bounds Top-1 from above. See `ceiling` and
# docs/decisions/008-synthetic-images.md.
DIFFICULTY = 0.55

SEED = 100
_STREAMS = {"train": 1, "validation": 2}


@dataclass(frozen=True, slots=True)
class Texture:
    """A texture for each image.

    family: int64 [n]
    trait: float32 [n]
    waves: [n, 2, 2], the two wave vectors in the coordinates that the texture lies in
    phases: [n, 2]
    sharpness: [n], slope from one colour to the other
    dark, bright: [n, 3], the two colours
    """

    family: Integers
    trait: Floats
    waves: Floats
    phases: Floats
    sharpness: Floats
    dark: Floats
    bright: Floats


@dataclass(frozen=True, slots=True)
class Objects:
    """One object for each image.

    centre: [n, 2] in the frame's coordinates (-1 to 1)
    inverse: [n, 2, 2], from the frame's coordinates to the object's own, where its mean radius is 1
    lobes: int64 [n]
    depth: [n], amplitude of the lobes
    trait: [n]
    rim: [n], how bright the dark line about it is
    """

    centre: Floats
    inverse: Floats
    lobes: Integers
    depth: Floats
    trait: Floats
    rim: Floats
    texture: Texture


@dataclass(frozen=True, slots=True)
class Scenes:
    """What n images show, all but their size.

    objects: from back to front, the one that the class is about in the middle
    lattice: [n, 5, 5], smooth light and shade behind them
    slope: [n, 2], light over the frame
    noise: [n], amplitude
    noise_key: int64 [n], below 2^24
    """

    labels: Integers
    background: Texture
    lattice: Floats
    objects: tuple[Objects, ...]
    slope: Floats
    noise: Floats
    noise_key: Integers

    def __len__(self) -> int:
        return len(self.labels)


def draw_scenes(split: str, indices: npt.ArrayLike, difficulty: float = DIFFICULTY) -> Scenes:
    """What the images with these numbers show. Equal numbers give equal scenes, whatever else is drawn with them."""
    draws = Draws(SEED, _STREAMS[split], np.asarray(indices, np.int64))
    labels = draws.integer(CLASSES)
    shape, surface = labels // MEMBERS, labels % MEMBERS
    background = _texture(draws, draws.integer(FAMILIES), draws.uniform(-1.6, 1.6), (0.9, 2.6), contrast=0.5)
    lattice = np.stack([draws.uniform(-0.16, 0.16) for _ in range(25)], axis=-1).reshape(-1, 5, 5)
    behind, before = _distractor(draws), _distractor(draws)
    main = Objects(
        centre=np.stack([draws.uniform(-0.25, 0.25), draws.uniform(-0.25, 0.25)], axis=-1),
        inverse=_inverse(draws, draws.uniform(0.55, 0.75)),
        lobes=shape // 2 + 2,
        depth=draws.uniform(0.26, 0.34),
        trait=_trait(draws, shape, difficulty),
        rim=draws.uniform(0.0, 0.25),
        texture=_texture(draws, surface // 2, _trait(draws, surface, difficulty), (1.4, 2.2), contrast=1.0),
    )
    slope = draws.direction() * draws.uniform(0.0, 0.25)[:, np.newaxis]
    return Scenes(labels, background, lattice, (behind, main, before), slope, draws.uniform(0.03, 0.12), draws.bits())


def labels_of(split: str, indices: npt.ArrayLike) -> Integers:
    """The labels of `draw_scenes`, which are drawn first, without the rest."""
    return Draws(SEED, _STREAMS[split], np.asarray(indices, np.int64)).integer(CLASSES)


def ceiling(difficulty: float = DIFFICULTY) -> float:
    """The share of images that one who sees both traits exactly classifies rightly: the bound of any Top-1.

    A trait lies beyond the middle with the probability that a sum of four uniform numbers exceeds 2 + 1 / (difficulty
    sqrt 3). That is (2 - 1 / (difficulty sqrt 3))^4 / 24 for difficulties up to 1 / sqrt 3.
    """
    rest = 2 - 1 / (difficulty * math.sqrt(3)) if difficulty > 0 else 0.0
    if rest > 1:
        raise ValueError(f"difficulty {difficulty} is beyond 1 / sqrt 3")
    return (1 - max(rest, 0.0) ** 4 / 24) ** 2


def _trait(draws: Draws, member: Integers, difficulty: float) -> Floats:
    centre = (member % 2 * 2 - 1).astype(np.float32)
    return centre + np.float32(difficulty) * draws.bell()


def _distractor(draws: Draws) -> Objects:
    """A smaller object of any outline and texture, with traits between those of the classes too."""
    return Objects(
        centre=np.stack([draws.uniform(-0.9, 0.9), draws.uniform(-0.9, 0.9)], axis=-1),
        inverse=_inverse(draws, draws.uniform(0.14, 0.26)),
        lobes=draws.integer(FAMILIES) + 2,
        depth=draws.uniform(0.26, 0.34),
        trait=draws.uniform(-1.6, 1.6),
        rim=draws.uniform(0.0, 0.25),
        texture=_texture(draws, draws.integer(FAMILIES), draws.uniform(-1.6, 1.6), (1.0, 1.8), contrast=1.0),
    )


def _inverse(draws: Draws, radius: Floats) -> Floats:
    """Turned by any angle, sheared by up to 0.15, stretched by up to 1.2 along its own axis."""
    turn, shear, stretch = draws.direction(), draws.uniform(-0.15, 0.15), draws.uniform(0.84, 1.19)
    along = np.stack([turn[:, 0], turn[:, 1]], axis=-1) / (radius * stretch)[:, np.newaxis]
    across = np.stack([-turn[:, 1], turn[:, 0]], axis=-1) * (stretch / radius)[:, np.newaxis]
    return np.stack([along + shear[:, np.newaxis] * across, across], axis=1)


def _texture(
    draws: Draws, family: Integers, trait: Floats, frequencies: tuple[float, float], contrast: float
) -> Texture:
    """`frequencies`: periods in a radius of the object, or in half a frame. Which colour comes first says nothing."""
    turn = draws.direction()
    normal = np.stack([-turn[:, 1], turn[:, 0]], axis=-1)
    waves = np.stack([turn, normal], axis=1) * draws.uniform(*frequencies)[:, np.newaxis, np.newaxis]
    mean, half = draws.triple(0.25, 0.75), draws.triple(0.1 * contrast, 0.3 * contrast)
    signs = np.stack([draws.sign(), draws.sign(), draws.sign()], axis=-1)
    return Texture(
        family=family,
        trait=trait,
        waves=waves,
        phases=np.stack([draws.uniform(0, 1), draws.uniform(0, 1)], axis=-1),
        sharpness=draws.uniform(2.0, 6.0),
        dark=mean - half * signs,
        bright=mean + half * signs,
    )
