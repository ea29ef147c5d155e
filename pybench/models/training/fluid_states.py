# SPDX-License-Identifier: Apache-2.0
"""Training of the networks that give a fluid's pressure: seconds to minutes on one core, deterministic there.

Adam with a one-cycle rate (Kingma and Ba 2015; Smith 2017); squared errors of the pressure over the energy. The paper
trains for hundreds of epochs in small batches; this recipe stops far earlier.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from pybench.catalogue.models import Model
from pybench.models.building import build
from pybench.models.fluid_states import open_states
from pybench.models.samples import Samples
from pybench.models.training.trained import Trained

STEPS = 8000
BATCH = 256
LEARNING_RATE = 0.03  # the highest of the cycle


def train_on_states(row: Model, parameters: Mapping[str, Any]) -> Trained:
    """On one thread: the order of sums must not depend on the machine's number of CPUs."""
    torch.set_num_threads(1)
    seed = parameters["seed"]
    model = train_pressures(build(row, seed=seed), open_states("train", row), seed)
    judges = open_states("validation", row)
    conserved = judges.load(np.arange(len(judges))).astype(np.float32)
    with torch.inference_mode():
        errors = np.abs(model(torch.from_numpy(conserved)).numpy().astype(np.float64) - judges.all_truth())
    scores = {"l1_error": float(errors.mean()), "linf_error": float(errors.max())}
    return Trained(model, scores, len(judges), {"steps": STEPS})


def train_pressures(model: nn.Module, states: Samples, seed: int, steps: int = STEPS) -> nn.Module:
    """Trains in place and returns the model in evaluation mode; equal seeds give equal weights."""
    every = np.arange(len(states))
    conserved = torch.from_numpy(states.load(every).astype(np.float32))
    pressure = torch.from_numpy(states.all_truth().astype(np.float32))
    scale = conserved[:, 2:3]  # the energy without rest mass
    order = np.random.default_rng(seed)
    optimiser = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=LEARNING_RATE, total_steps=steps)
    model.train()
    for _ in range(steps):
        chosen = torch.from_numpy(order.integers(0, len(every), BATCH))
        optimiser.zero_grad(set_to_none=True)
        gap = (model(conserved[chosen]) - pressure[chosen]) / scale[chosen]
        gap.square().mean().backward()
        optimiser.step()
        schedule.step()
    return model.eval()
