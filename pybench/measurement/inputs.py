# SPDX-License-Identifier: Apache-2.0
"""Seeded random inputs for a model, by what it says that it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pybench.catalogue.models import MODELS, Model
from pybench.runtimes.session import TensorSpec, resolved

# Ids, masks and token types of a user's model are all valid below this; its vocabulary is not known.
INTEGERS_BELOW = 2

Arrays = dict[str, npt.NDArray[Any]]


def random_arrays(
    specs: Sequence[TensorSpec],
    model: str,
    batch: int,
    tokens: int,
    seed: int,
    models: Mapping[str, Model] = MODELS,
) -> Arrays:
    """Standard normal floats and uniform integers, an array for each input; equal seeds give equal arrays.

    `model`: a name of one of `models`, whose ids are known, or how messages call a user's file. Raises InputError where
    a shape contradicts `batch` or `tokens`.
    """
    known = models.get(model)
    below = known.vocabulary if known is not None and known.vocabulary is not None else INTEGERS_BELOW
    return arrays_of(specs, resolved(specs, batch, tokens, model), seed, below)


def arrays_of(
    specs: Sequence[TensorSpec], shapes: Mapping[str, tuple[int, ...]], seed: int, below: int = INTEGERS_BELOW
) -> Arrays:
    """The same for inputs whose sizes are known. `below`: what integers stay below."""
    generator = np.random.default_rng(seed)
    arrays: Arrays = {}
    for spec in specs:
        shape = shapes[spec.name]
        if spec.dtype.kind == "f":
            arrays[spec.name] = generator.standard_normal(shape, dtype=np.float32).astype(spec.dtype)
        else:
            arrays[spec.name] = generator.integers(0, below, shape).astype(spec.dtype)
    return arrays
