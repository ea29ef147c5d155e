# SPDX-License-Identifier: Apache-2.0
"""The path `none`: random ids, uniform over the vocabulary, from a seed. No text is read; the stream has no end.

Iterating gives new ids each time. `take` gives the same few batches in turn, made when the stream is opened: what a
path costs is measured against ids that cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pybench.preprocess.packing import Batch
from pybench.preprocess.ring import FilledSlot
from pybench.preprocess.stream import InProcessStream, staging

SYNTHETIC_BATCHES = 8  # different ones: few enough to stay in a cache, enough to be learned from


class SyntheticStream(InProcessStream):
    """Ids below `vocabulary`."""

    def __init__(self, vocabulary: int, shape: tuple[int, int], seed: int, hash_ids: bool) -> None:
        super().__init__(lambda _room: _generate(vocabulary, shape, seed), shape, vocabulary - 1, hash_ids)
        made: NDArray[Any] = staging(shape, vocabulary - 1, SYNTHETIC_BATCHES)
        made[:] = np.random.default_rng(seed).integers(0, vocabulary, made.shape, made.dtype)
        self._staging = made
        self._filled = [FilledSlot(index, ids, text_bytes=0, documents=0) for index, ids in enumerate(made)]
        self._next = 0

    @property
    def slots(self) -> int:
        return SYNTHETIC_BATCHES

    def _fetch(self) -> FilledSlot:
        slot = self._filled[self._next % SYNTHETIC_BATCHES]
        self._next += 1
        return slot

    def give_back(self, index: int) -> None:
        """Nothing writes a slot a second time."""


def _generate(vocabulary: int, shape: tuple[int, int], seed: int) -> Iterator[Batch]:
    generator = np.random.default_rng(seed)
    while True:
        yield Batch(generator.integers(0, vocabulary, shape, np.int64), text_bytes=0)
