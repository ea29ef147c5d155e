# SPDX-License-Identifier: Apache-2.0
"""Labelled images in a fixed order, read when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pybench.errors import InputError
from pybench.models.images.normalisation import normalise
from pybench.models.samples import Samples

Shape = tuple[int, int, int]
Pixels = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Images:
    """A data set. `ids[i]` is stable across runs and machines; `labels`: int64 [n], an index into `classes`;
    `shape`: of one image, channels first; `load(indices)`: float32 [len(indices), *shape]."""

    ids: tuple[str, ...]
    labels: npt.NDArray[np.int64]
    classes: tuple[str, ...]
    shape: Shape
    load: Callable[[npt.NDArray[np.int64]], Pixels]

    def __len__(self) -> int:
        return len(self.ids)

    def read(self, i: int) -> Pixels:
        """float32 of one image's shape."""
        image: Pixels = self.load(np.array([i]))[0]
        return image

    def limited(self, limit: int | None) -> Images:
        """At most `limit` images, evenly spaced over the order, so that a sorted folder keeps all of its classes."""
        if limit is None or limit >= len(self):
            return self
        chosen = np.arange(limit) * len(self) // limit
        ids, load = tuple(self.ids[i] for i in chosen), self.load
        return Images(ids, self.labels[chosen], self.classes, self.shape, lambda indices: load(chosen[indices]))

    def batches(self, batch: int, threads: int = 1) -> Iterator[tuple[slice, Pixels]]:
        """(which images, float32 [batch, C, H, W]) in order; the last batch is filled up with zeros."""
        return self.as_samples().batches(batch, threads)

    def as_samples(self) -> Samples:
        """The same, in the form of all data that models are judged on."""
        return Samples(self.ids, self.shape, self.load, lambda indices: self.labels[indices], self.classes)

    def load_all(self) -> Pixels:
        """float32 [n, C, H, W]."""
        return self.load(np.arange(len(self)))


def one_by_one(read: Callable[[int], Pixels]) -> Callable[[npt.NDArray[np.int64]], Pixels]:
    """`load` of images that are read singly."""
    return lambda indices: np.stack([read(int(i)) for i in indices])


def check_shape(shape: Shape, own: Shape, what: str) -> None:
    """Raises InputError unless a model takes images as they are: nothing is resized."""
    if shape != own:
        raise InputError(
            f"{what} are {times(own)}, the model takes {times(shape)}",
            hint="these are taken as they are; pictures in a folder of class folders are resized",
        )


def model_input(values: npt.NDArray[np.uint8]) -> Pixels:
    """uint8 [C, H, W], as float32: grey stays in [0, 1], RGB is normalised as ImageNet's is."""
    scaled: Pixels = values.astype(np.float32) / np.float32(255)
    return scaled if len(values) == 1 else normalise(scaled.transpose(1, 2, 0))


def times(shape: Shape) -> str:
    """`3x224x224`."""
    return "x".join(str(size) for size in shape)
