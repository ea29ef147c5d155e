# SPDX-License-Identifier: Apache-2.0
"""Labelled images in a fixed order, read when they are asked for."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from pybench.errors import InputError
from pybench.models.images.normalisation import normalise

Split = Literal["train", "validation"]
Shape = tuple[int, int, int]
Pixels = npt.NDArray[np.float32]


# Images drawn at once: one by one, most of the time goes into starting NumPy's operations (22 ms an image against 7).
TOGETHER = 16


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
        """(which images, float32 [batch, C, H, W]) in order; the last batch is filled up with zeros.

        `threads` read ahead of who uses the batches, two pieces each at most: decoding and drawing leave Python's lock
        alone most of the time.
        """
        piece = min(TOGETHER, batch)
        starts = iter([first for start in range(0, len(self), batch)
                       for first in range(start, min(start + batch, len(self)), piece)])  # fmt: skip
        with ThreadPoolExecutor(threads) as readers:

            def begin(first: int) -> Future[Pixels]:
                end = min(first + piece, first - first % batch + batch, len(self))
                return readers.submit(self.load, np.arange(first, end))

            reading = deque(begin(first) for first in itertools.islice(starts, 2 * threads))
            for start in range(0, len(self), batch):
                stop = min(start + batch, len(self))
                pixels, filled = np.zeros((batch, *self.shape), np.float32), 0
                while filled < stop - start:
                    read = reading.popleft().result()
                    pixels[filled : filled + len(read)] = read
                    filled += len(read)
                    reading.extend(begin(first) for first in itertools.islice(starts, 1))
                yield slice(start, stop), pixels

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
