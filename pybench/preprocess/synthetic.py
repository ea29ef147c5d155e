# SPDX-License-Identifier: Apache-2.0
"""The path `none`: random ids, uniform over the vocabulary, from a seed. No text is read; the stream has no end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pybench.preprocess.packing import Batch
from pybench.preprocess.vocabulary import vocabulary_size


def batches(tokenizer: Path, batch: int, seq_len: int, seed: int) -> Iterator[Batch]:
    """Endless batches of ids below the size of the tokenizer's vocabulary; the file is read at once."""
    return _generate(vocabulary_size(tokenizer), batch, seq_len, seed)


def _generate(size: int, batch: int, seq_len: int, seed: int) -> Iterator[Batch]:
    generator = np.random.default_rng(seed)
    while True:
        yield Batch(generator.integers(0, size, (batch, seq_len), np.int64), text_bytes=0)
