# SPDX-License-Identifier: Apache-2.0
"""States of a fluid with their pressures as samples: 100,000 that train, and 20,000 others that judge.

The truth is the pressure that a state was made with, in float64. Inputs are float64, too; a network gets them rounded.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from pybench.catalogue.models import Model
from pybench.hydro.states import FluidStates, Numbers, draw_states
from pybench.models.samples import Samples, Split

COUNTS = {"train": 100_000, "validation": 20_000}
SEEDS = {"train": 1, "validation": 2}


def open_states(split: Split, model: Model) -> Samples:
    """Every model of fluids takes them as they are."""
    states = _drawn(split)
    return Samples(
        ids=tuple(f"{split}-{index:06}" for index in range(COUNTS[split])),
        shape=states.conserved.shape[1:],
        load=lambda indices: states.conserved[indices],
        truth=lambda indices: states.pressure[indices],
        dtype=np.float64,
    )


def draw_inputs(batch: int, seed: int) -> Numbers:
    """float64 [batch, 3]: conserved densities that belong to a fluid, which random numbers would not."""
    return draw_states(batch, seed).conserved


@cache
def _drawn(split: Split) -> FluidStates:
    return draw_states(COUNTS[split], SEEDS[split])
