# SPDX-License-Identifier: Apache-2.0
"""Campaigns of a network and the solvers that it replaces, with known times."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from pybench.case import Case
from tests.support.campaigns import CampaignBuilder

NETWORK = Case(workload="infer", model="c2p", runtime="onnxruntime", precision="int8", device="cpu", batch=1)
L1, LINF = 2e-4, 3e-3


def build_solvers(
    folder: Path, network_ms: float, solver_ms: Mapping[str, float], *, network: Case = NETWORK, noise: float = 0.01
) -> CampaignBuilder:
    """One network at one batch with its accuracy, and a case of each solver, in eight blocks that drift by 20 %."""
    solved = {
        name: Case(workload="infer", model="c2p", runtime="solver", device="cpu", solver=name) for name in solver_ms
    }
    judged = network.with_factors(workload="accuracy", batch=64)
    builder = CampaignBuilder(folder, [*solved.values(), network, judged], repetitions=8, own={judged: 2})
    rng = np.random.default_rng(7)
    for block in range(1, 9):
        drift = float(np.exp(rng.normal(0, 0.2)))
        for case, time_ms in [*((solved[name], ms) for name, ms in solver_ms.items()), (network, network_ms)]:
            latency_ms = time_ms * drift * float(np.exp(rng.normal(0, noise)))
            builder.run(case, block, {"latency_mean_ms": latency_ms, "model_bytes": 5e5})
        if block <= 2:
            builder.run(judged, block, {"l1_error": L1, "linf_error": LINF, "model_bytes": 5e5})
    return builder
