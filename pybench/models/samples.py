# SPDX-License-Identifier: Apache-2.0
"""Samples with their truth in a fixed order, read when they are asked for: what a model is trained and judged on.

One form for images, windows of text, volumes and points. Nothing is shuffled, and no source imports a framework.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from pybench.catalogue.code import named_code
from pybench.catalogue.data_sets import DATA_SETS

if TYPE_CHECKING:
    from pybench.catalogue.models import Model

Split = Literal["train", "validation"]
Indices = npt.NDArray[np.int64]
Array = npt.NDArray[Any]

TOGETHER = 16  # read at once: one by one, NumPy's operations cost mostly their start (22 ms an image against 7)


@dataclass(frozen=True, slots=True)
class Samples:
    """One split of a data set; n samples.

    ids: of each sample, stable across runs and machines
    shape: of the input of one sample
    load: from indices, int64 [m], to inputs [m, *shape], of type `dtype`
    truth: from indices, int64 [m], to what outputs are compared with, one row a sample (below)
    classes: names of the classes that labels are indices into; empty where there are none
    groups: of each sample what it has in common with others that are alike; None: samples are independent
    inputs: of a user's arrays each input by its name, as `load`, which is of the first; empty: a model has one input,
        whatever its name

    Truth is classes int64 [m], classes of pixels or voxels integers [m, *shape without channels], ids int64 [m, ...],
    or values float64 [m, ...].
    """

    ids: tuple[str, ...]
    shape: tuple[int, ...]
    load: Callable[[Indices], Array]
    truth: Callable[[Indices], Array]
    classes: tuple[str, ...] = ()
    groups: tuple[str, ...] | None = None
    dtype: npt.DTypeLike = np.float32
    inputs: Mapping[str, Callable[[Indices], Array]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ids)

    def all_truth(self) -> Array:
        """What every sample is compared with."""
        return self.truth(np.arange(len(self)))

    def limited(self, limit: int | None) -> Samples:
        """At most `limit` samples, evenly spaced over the order, so that sorted samples keep all of their classes."""
        if limit is None or limit >= len(self):
            return self
        chosen = np.arange(limit) * len(self) // limit
        load, truth, groups = self.load, self.truth, self.groups
        inputs = {name: _chosen(each, chosen) for name, each in self.inputs.items()}
        return replace(
            self,
            ids=tuple(self.ids[i] for i in chosen),
            load=_chosen(load, chosen),
            truth=_chosen(truth, chosen),
            inputs=inputs,
            groups=None if groups is None else tuple(groups[i] for i in chosen),
        )

    def fed(self, name: str, indices: Indices) -> dict[str, Array]:
        """Arrays [m, ...] by input. `name`: of the model's only input, where the samples name none."""
        return {each: load(indices) for each, load in (self.inputs or {name: self.load}).items()}

    def feeds(self, name: str, batch: int, threads: int = 1) -> Iterator[tuple[slice, dict[str, Array]]]:
        """(which samples, arrays [batch, ...] by input) in order. `name`: as of `fed`.

        The last batch of a user's arrays is filled up with its last sample, which changes no range that a run finds.
        """
        if not self.inputs:
            for chosen, inputs in self.batches(batch, threads):
                yield chosen, {name: inputs}
            return
        for start in range(0, len(self), batch):
            stop = min(start + batch, len(self))
            yield slice(start, stop), self.fed(name, np.minimum(np.arange(start, start + batch), stop - 1))

    def batches(self, batch: int, threads: int = 1) -> Iterator[tuple[slice, Array]]:
        """(which samples, inputs [batch, *shape]) in order; the last batch is filled up with zeros.

        `threads` read ahead of who uses the batches, two pieces each at most: decoding and drawing leave Python's lock
        alone most of the time.
        """
        piece = min(TOGETHER, batch)
        batches = (range(start, min(start + batch, len(self)), piece) for start in range(0, len(self), batch))
        starts = itertools.chain.from_iterable(batches)
        with ThreadPoolExecutor(threads) as readers:

            def begin(first: int) -> Future[Array]:
                end = min(first + piece, first - first % batch + batch, len(self))
                return readers.submit(self.load, np.arange(first, end))

            reading = deque(begin(first) for first in itertools.islice(starts, 2 * threads))
            for start in range(0, len(self), batch):
                stop = min(start + batch, len(self))
                inputs, filled = np.zeros((batch, *self.shape), self.dtype), 0
                while filled < stop - start:
                    read = reading.popleft().result()
                    inputs[filled : filled + len(read)] = read
                    filled += len(read)
                    reading.extend(begin(first) for first in itertools.islice(starts, 1))
                yield slice(start, stop), inputs


def _chosen(load: Callable[[Indices], Array], chosen: Indices) -> Callable[[Indices], Array]:
    return lambda indices: load(chosen[indices])


def open_samples(data_set: str, split: Split, model: Model) -> Samples:
    """A built-in data set, other than of images, as the model takes it. Raises InputError where it cannot take it."""
    place = DATA_SETS[data_set].open
    if place is None:
        raise ValueError(f"{data_set} consists of images, which open_images opens")
    samples: Samples = named_code(place)(split, model)
    return samples
