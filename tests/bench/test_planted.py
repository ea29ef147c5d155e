# SPDX-License-Identifier: Apache-2.0
"""The simulation of slow-downs between environments: its shares against the noncentral t, and its noise."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from bench.environments.planted import Noise, found, noise_of
from pybench.case import Case
from pybench.dataset import load
from tests.support.campaigns import CampaignBuilder

TRIALS = 1000


@pytest.mark.parametrize(("blocks", "planted"), [(30, 0.005), (30, 0.015), (30, 0.0)])
def test_of_normal_noise_slow_downs_are_found_as_often_as_the_noncentral_t_says(blocks: int, planted: float) -> None:
    """With many blocks, where the interval is hardly longer than Student's."""
    random, spread = np.random.default_rng(1), 0.01
    noise = Noise(random.normal(0, 0.05, 100), random.normal(0, spread, (1, 20_000)))
    shown, rejected = found(noise, blocks, planted, TRIALS, random)
    error = spread * math.sqrt(2 / blocks)
    critical = stats.t.ppf(0.975, blocks - 1)
    for share, distance in ((shown, math.log1p(planted)), (rejected, math.log1p(planted) + math.log(0.99))):
        expected = stats.nct.sf(critical, blocks - 1, distance / error)
        assert share == pytest.approx(expected, abs=4 * math.sqrt(max(expected * (1 - expected), 0.005) / TRIALS))


def test_noise_is_taken_apart_into_that_of_blocks_and_that_of_runs(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    cases = [Case(workload="noop", iterations=number + 1) for number in range(12)]
    builder = CampaignBuilder(tmp_path / "campaign", cases, repetitions=20)
    shared = random.normal(0, 0.1, 20)
    for place, case in enumerate(cases):
        for block in range(1, 21):
            latency_ms = 10 * (place + 1) * math.exp(shared[block - 1] + random.normal(0, 0.02))
            builder.run(case, block, {"latency_mean_ms": latency_ms})
    noise = noise_of(load(builder.path))
    assert noise.own.shape == (12, 20)
    assert noise.own.std() == pytest.approx(0.02, rel=0.15)
    assert np.corrcoef(noise.shared, shared)[0, 1] > 0.99
    assert noise.pair_percent == pytest.approx(100 * math.sqrt(2) * 0.02, rel=0.2)


def test_a_campaign_of_few_blocks_is_refused(tmp_path: Path) -> None:
    case = Case(workload="noop")
    builder = CampaignBuilder(tmp_path / "campaign", [case], repetitions=2)
    for block in (1, 2):
        builder.run(case, block, {"latency_mean_ms": 1.0})
    with pytest.raises(ValueError, match="the same 5 blocks or more"):
        noise_of(load(builder.path))
