# SPDX-License-Identifier: Apache-2.0
"""Labelled images in a fixed order, read one by one when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from pybench.errors import InputError
from pybench.models.images.normalisation import normalise

Split = Literal["train", "validation"]
Shape = tuple[int, int, int]
Pixels = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Images:
    """A data set. `ids[i]` is stable across runs and machines; `labels`: int64 [n], an index into `classes`;
    `shape`: of one image, channels first; `read(i)`: float32 of that shape."""

    ids: tuple[str, ...]
    labels: npt.NDArray[np.int64]
    classes: tuple[str, ...]
    shape: Shape
    read: Callable[[int], Pixels]

    def __len__(self) -> int:
        return len(self.ids)

    def limited(self, limit: int | None) -> Images:
        """At most `limit` images, evenly spaced over the order, so that a sorted folder keeps all of its classes."""
        if limit is None or limit >= len(self):
            return self
        chosen = np.arange(limit) * len(self) // limit
        read = self.read
        return Images(
            tuple(self.ids[i] for i in chosen),
            self.labels[chosen],
            self.classes,
            self.shape,
            lambda i: read(int(chosen[i])),
        )

    def batches(self, batch: int, threads: int = 1) -> Iterator[tuple[slice, Pixels]]:
        """(which images, float32 [batch, C, H, W]) in order; the last batch is filled up with zeros.

        `threads` read at the same time: decoding and drawing leave Python's lock alone most of the time.
        """
        with ThreadPoolExecutor(threads) as readers:
            for start in range(0, len(self), batch):
                stop = min(start + batch, len(self))
                pixels = np.zeros((batch, *self.shape), np.float32)
                for place, read in enumerate(readers.map(self.read, range(start, stop))):
                    pixels[place] = read
                yield slice(start, stop), pixels

    def load_all(self) -> Pixels:
        """float32 [n, C, H, W]."""
        return np.stack([self.read(i) for i in range(len(self))])


def check_shape(shape: Shape, own: Shape, what: str) -> None:
    """Raises InputError unless a model takes images as they are: nothing is resized."""
    if shape != own:
        raise InputError(
            f"{what} are {times(own)} images, the model takes {times(shape)}", hint="give `images` a folder"
        )


def model_input(values: npt.NDArray[np.uint8]) -> Pixels:
    """uint8 [C, H, W], as float32: grey stays in [0, 1], RGB is normalised as ImageNet's is."""
    scaled: Pixels = values.astype(np.float32) / np.float32(255)
    return scaled if len(values) == 1 else normalise(scaled.transpose(1, 2, 0))


def times(shape: Shape) -> str:
    """`3x224x224`."""
    return "x".join(str(size) for size in shape)
