# SPDX-License-Identifier: Apache-2.0
"""The simulation of campaigns that stop judges what pybench computes, and what it says is within its bounds."""

from __future__ import annotations

import numpy as np
import pytest

from bench.intervals.methods import Draw, skew_adjusted
from bench.intervals.populations import populations
from bench.intervals.stopping import draw, run
from pybench.analysis.statistics.estimate import Sample
from pybench.analysis.statistics.intervals import estimate_mean
from pybench.analysis.statistics.sequential import confidence_among
from pybench.case.repetitions import looks_until

CAMPAIGNS = 2000
LOOKS = looks_until(20)
NORMAL = next(one for one in populations() if one.name == "normal")


@pytest.mark.parametrize("tests", [1, 8, 32])
def test_the_interval_judged_is_the_one_of_the_analysis(tests: int) -> None:
    rng = np.random.default_rng(tests)
    values, confidence = rng.lognormal(0, 0.6, size=(20, 5)), confidence_among(tests)
    judged = skew_adjusted(Draw(values, rng), (1 - confidence) / 2)
    found = [estimate_mean(Sample.of(one), confidence) for one in values]
    assert list(judged.lower) == pytest.approx([one.lower for one in found])
    assert list(judged.upper) == pytest.approx([one.upper for one in found])


@pytest.mark.parametrize("questions", [1, 4])
@pytest.mark.parametrize("distance", [0.0, 1.0])
def test_wrong_verdicts_are_rare_and_intervals_hold_where_campaigns_stop(questions: int, distance: float) -> None:
    stops = run(draw(NORMAL, CAMPAIGNS, questions, LOOKS[-1]), distance, LOOKS, is_corrected=True)
    assert stops.is_wrong.mean() <= 0.05
    assert stops.is_decided_wrongly.mean() <= 0.05
    assert stops.covered.mean() >= 0.95
    if distance:
        assert stops.is_decided.mean() > 0.5
        assert 3 < stops.blocks.mean() < LOOKS[-1]


def test_without_the_correction_they_would_not() -> None:
    stops = run(draw(NORMAL, CAMPAIGNS, 1, LOOKS[-1]), 0.0, LOOKS, is_corrected=False)
    assert stops.is_wrong.mean() > 0.06
    assert stops.covered.mean() < 0.90


def test_a_campaign_stops_at_its_first_look_that_decides() -> None:
    rising = np.concatenate([np.tile([1.0, -1.0], 4), np.full(12, 9.0) + np.tile([0.1, -0.1], 6)])
    values = np.stack([np.tile([0.01, -0.01], 10), rising])[:, None, :]
    stops = run(values, 1.0, LOOKS, is_corrected=True)
    assert list(stops.is_decided) == [True, True]
    assert stops.blocks[0] == 3
    assert stops.blocks[1] > 3
