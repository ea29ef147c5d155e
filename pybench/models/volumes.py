# SPDX-License-Identifier: Apache-2.0
"""`nested-volumes`: generated volumes of a bumpy ellipsoid with another one inside, every voxel labelled.

Each volume has its own centre, rotation, radii, bumps, texture, brightness that drifts over it, and noise. Of its
voxels about nine tenths are background, a tenth belongs to the outer body and a hundredth to the inner one. A volume is
drawn from its number when it is read, at the size that a model takes. Draws are those of NumPy's `RandomState`, whose
stream is frozen (NEP 19). What it is not: anatomy, and as hard as that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pybench.catalogue.models import Model
from pybench.errors import InputError
from pybench.models.samples import Indices, Samples, Split

CLASSES = ("background", "outer", "inner")
TRAINING_VOLUMES = 160
VALIDATION_VOLUMES = 48
NOISE = 0.35  # standard deviation; the outer body is brighter than the background by 1
INNER_SIZE = 0.5  # radii of the inner body over those of the outer one
_FIRST = {"train": 0, "validation": 1_000_000}  # number of the first volume of a split

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Volume:
    """`values`: float32 [1, D, D, D]; `labels`: uint8 [D, D, D], an index into `CLASSES`."""

    values: Floats
    labels: npt.NDArray[np.uint8]


def open_volumes(split: Split, model: Model) -> Samples:
    """Volumes as the model takes them. Raises InputError for a model that takes no cubes of one channel."""
    channels, *sizes = model.shape or (0,)
    if channels != 1 or len(sizes) != 3 or len(set(sizes)) != 1:
        raise InputError(f"{model.name} takes no cubes of one channel", hint="use a model of the kind volume")
    first, size = _FIRST[split], sizes[0]
    count = TRAINING_VOLUMES if split == "train" else VALIDATION_VOLUMES

    def load(indices: Indices) -> Floats:
        return np.stack([draw(first + int(i), size).values for i in indices])

    def truth(indices: Indices) -> npt.NDArray[np.uint8]:
        return np.stack([draw(first + int(i), size).labels for i in indices])

    ids = tuple(f"{split}-{number:03d}" for number in range(count))
    return Samples(ids, model.shape, load, truth, CLASSES)


def draw(number: int, size: int) -> Volume:
    """One volume of `size` voxels a side."""
    random = np.random.RandomState(number)
    axis = (2 * np.arange(size) + 1) / size - 1
    points = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1)  # [D, D, D, 3], in -1 ... 1
    rotation = np.linalg.qr(random.normal(size=(3, 3)))[0]
    centre, radii = random.uniform(-0.2, 0.2, 3), random.uniform(0.4, 0.65, 3)
    local = (points - centre) @ rotation
    outer = _radius(local, radii) < 1 + 0.12 * _waves(points, random, 5.0)
    inner = outer & (_radius(local - random.uniform(-0.1, 0.1, 3), INNER_SIZE * radii) < 1)
    labels = outer.astype(np.uint8) + inner
    brightness = np.array([0.0, 1.0, 0.4])[labels] + 0.2 * _waves(points, random, 9.0)
    drift = 0.3 * points @ random.uniform(-1, 1, 3)
    values = brightness + drift + NOISE * random.normal(size=labels.shape)
    return Volume(values[np.newaxis].astype(np.float32), labels)


def _radius(points: npt.NDArray[np.float64], radii: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Distance to the centre in radii: 1 on the surface of the ellipsoid. [D, D, D]."""
    scaled: npt.NDArray[np.float64] = np.sqrt(((points / radii) ** 2).sum(axis=-1))
    return scaled


def _waves(points: npt.NDArray[np.float64], random: np.random.RandomState, frequency: float) -> npt.NDArray[np.float64]:
    """A smooth field in -1 ... 1: the mean of three waves of random directions. [D, D, D]."""
    directions, phases = random.uniform(-frequency, frequency, (3, 3)), random.uniform(0, 2 * np.pi, 3)
    field: npt.NDArray[np.float64] = np.sin(points @ directions.T + phases).mean(axis=-1)
    return field
