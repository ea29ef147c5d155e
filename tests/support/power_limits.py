# SPDX-License-Identifier: Apache-2.0
"""Campaigns over power limits: numbers with a known truth, or energies of recorded power.

A board under a limit draws what the limit says and computes `speed_of` it: the first 200 W are spent on nothing, and
the last ones buy little speed. So both energy for a token and its product with time have a minimum inside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from pybench.case import Case
from pybench.measure.quantity import Quantity
from tests.measure.recordings import recording
from tests.support.campaigns import CampaignBuilder

LIMITS_W = (250, 300, 400, 500, 600)
SETTING = Case(workload="infer", model="tinylm-small", runtime="torch", batch=4)
REST_W = 200.0


def speed_of(power_w: float) -> float:
    """Tokens a second at a power. Energy for a token, P / (P - 200 W)^0.3, is least at 286 W; its product with time,
    P / (P - 200 W)^0.6, at 500 W."""
    return 1000.0 * (power_w - REST_W) ** 0.3


def metrics(energy_per_token_j: float, tokens_per_s: float) -> dict[str, float | Quantity]:
    """What a run of `SETTING` stores of its energy and speed."""
    return {
        "gpu_energy_per_token_j": Quantity(value=energy_per_token_j, window="energy", method="fused", valid=True),
        "throughput_tokens_per_s": tokens_per_s,
        "latency_mean_ms": 4 * 128e3 / tokens_per_s,
    }


def build_limits(
    folder: Path,
    settings: Sequence[Case] = (SETTING,),
    limits_w: Sequence[int | None] = (*LIMITS_W, None),
    *,
    repetitions: int = 8,
    noise: float = 0.002,
    seed: int = 3,
    speed: Callable[[float], float] = speed_of,
) -> CampaignBuilder:
    """Each setting at each limit; the board as it is draws 700 W. Blocks drift by 3 % together."""
    cases = [setting.with_factors(power_limit_w=limit) for setting in settings for limit in limits_w]
    builder = CampaignBuilder(folder, cases, repetitions=repetitions, name="power-limits")
    rng = np.random.default_rng(seed)
    for block in range(1, repetitions + 1):
        drift = float(np.exp(rng.normal(0, 0.03)))
        for case in cases:
            power_w = 700.0 if case.power_limit_w is None else float(case.power_limit_w)
            tokens_per_s = speed(power_w) * float(np.exp(rng.normal(0, noise)))
            builder.run(case, block, metrics(drift * power_w / tokens_per_s, tokens_per_s))
    return builder


# Four kernels of a recording, taken as one board under four limits: each draws the power of its limit.
REPLAYED: Mapping[int, str] = {125: "tiny_launches", 525: "resnet50_fp16_b32", 640: "memory", 690: "matrix_cap"}


def replayed_metrics(window_s: float = 1.0) -> dict[int, list[dict[str, float | Quantity]]]:
    """Power -> what a run stores, by block. The energies are those of the recorded windows of one length, by pybench's
    own integrator; a block is the n-th window of each kernel. The board at rest is taken to draw 100 W."""
    recorded = recording("h200-kernels")
    energies = recorded.integrate()
    found: dict[int, list[dict[str, float | Quantity]]] = {}
    for power_w, kernel in REPLAYED.items():
        tokens_per_s = 1000.0 * (power_w - 100.0) ** 0.8
        places = np.flatnonzero((recorded.kernel == kernel) & (recorded.nominal_s == window_s))
        lengths_s = (recorded.end_ns[places] - recorded.begin_ns[places]) * 1e-9
        found[power_w] = [
            metrics(float(energy_j / (tokens_per_s * length_s)), tokens_per_s)
            for energy_j, length_s in zip(energies.energy_j[places], lengths_s, strict=True)
        ]
    return found


def build_replayed(folder: Path) -> CampaignBuilder:
    """One setting at four limits, each of which draws its power."""
    stored = replayed_metrics()
    cases = {limit: SETTING.with_factors(power_limit_w=limit) for limit in stored}
    repetitions = min(len(blocks) for blocks in stored.values())
    builder = CampaignBuilder(folder, list(cases.values()), repetitions=repetitions, name="replayed-limits")
    for block in range(1, repetitions + 1):
        for limit, case in cases.items():
            builder.run(case, block, stored[limit][block - 1])
    return builder
