# SPDX-License-Identifier: Apache-2.0
"""Campaigns of stacks whose true times are known: two architectures, eager and compiled, at two batches."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from pybench.case import Case
from tests.support.campaigns import CampaignBuilder

STACK = Case(workload="infer", model="stack", runtime="torch", device="cpu")
BATCH = 4
# (runtime, block, batch) -> ms: compiling reverses conv and mlp at batch 1, and keeps their order at batch 4.
TIMES_MS: Mapping[tuple[str, str, int], float] = {
    ("torch", "conv", 1): 1.5,
    ("torch", "mlp", 1): 1.0,
    ("torch", "conv", BATCH): 3.0,
    ("torch", "mlp", BATCH): 4.4,
    ("torch-compile", "conv", 1): 0.5,
    ("torch-compile", "mlp", 1): 0.8,
    ("torch-compile", "conv", BATCH): 1.0,
    ("torch-compile", "mlp", BATCH): 2.0,
}


def build_stacks(folder: Path, *, repetitions: int = 8, noise: float = 0.01, seed: int = 5) -> CampaignBuilder:
    """Blocks drift by 20 % together; each run has a noise of its own."""
    cases = {key: STACK.with_factors(runtime=key[0], block_type=key[1], batch=key[2]) for key in TIMES_MS}
    builder = CampaignBuilder(folder, list(cases.values()), repetitions=repetitions, name="stacks")
    rng = np.random.default_rng(seed)
    for block in range(1, repetitions + 1):
        drift = float(np.exp(rng.normal(0, 0.2)))
        for key, case in cases.items():
            builder.run(case, block, {"latency_mean_ms": TIMES_MS[key] * drift * float(np.exp(rng.normal(0, noise)))})
    return builder
