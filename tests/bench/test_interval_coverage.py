# SPDX-License-Identifier: Apache-2.0
"""The simulation judges what pybench computes, and its methods are those of the literature."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bench.intervals.methods import METHODS, Draw, Method
from bench.intervals.populations import Population, populations
from bench.intervals.unpaired import UNPAIRED, TwoDraws
from pybench.analysis.statistics.estimate import Sample
from pybench.analysis.statistics.intervals import estimate_difference, estimate_mean, student_mean


def draw_of(n: int, samples: int = 20) -> Draw:
    rng = np.random.default_rng(n)
    return Draw(rng.lognormal(0, 0.6, size=(samples, n)), rng)


@pytest.mark.parametrize("n", [3, 7, 20])
def test_the_method_judged_is_the_one_of_the_analysis(n: int) -> None:
    draw = draw_of(n)
    for name, twin in (("skew-adjusted t", estimate_mean), ("Student t", student_mean)):
        judged = METHODS[name](draw)
        estimates = [twin(Sample.of(values)) for values in draw.values]
        assert list(judged.lower) == pytest.approx([one.lower for one in estimates])
        assert list(judged.upper) == pytest.approx([one.upper for one in estimates])


def test_the_unpaired_method_judged_is_the_one_of_the_analysis() -> None:
    pair = TwoDraws(draw_of(5), draw_of(12))
    judged = UNPAIRED["skew-adjusted Welch t"](pair)
    samples = [[Sample.of(values) for values in side.values] for side in (pair.first, pair.second)]
    estimates = [estimate_difference(first, second) for first, second in zip(*samples, strict=True)]
    assert list(judged.lower) == pytest.approx([one.lower for one in estimates])
    assert list(judged.upper) == pytest.approx([one.upper for one in estimates])


@pytest.mark.parametrize("name", ["percentile", "BCa"])
def test_bootstraps_are_scipys(name: str) -> None:
    draw = draw_of(30, samples=6)
    method: Method = METHODS[name]
    judged = method(draw)
    for index, values in enumerate(draw.values):
        judge = stats.bootstrap((values,), np.mean, n_resamples=4999, method=name, rng=1).confidence_interval
        width = judge.high - judge.low
        assert judged.lower[index] == pytest.approx(judge.low, abs=0.08 * width)
        assert judged.upper[index] == pytest.approx(judge.high, abs=0.08 * width)


def test_hodges_lehmann_and_sign_test_have_their_tabled_ranks() -> None:
    # Six values: the signed-rank interval is from the smallest to the largest, as is the sign test's (both 96.9 %).
    # Ten values: Walsh averages 9 and 47 of 55 (P(W <= 8) = 0.0244), order statistics 2 and 9 (0.0107).
    six, ten = draw_of(6, 1), draw_of(10, 1)
    for name in ("Hodges-Lehmann", "sign test"):
        bounds = METHODS[name](six)
        assert (bounds.lower[0], bounds.upper[0]) == pytest.approx((six.values.min(), six.values.max()))
    ordered = np.sort(ten.values[0])
    walsh = np.sort([(a + b) / 2 for index, a in enumerate(ordered) for b in ordered[index:]])
    ranked, signed = METHODS["Hodges-Lehmann"](ten), METHODS["sign test"](ten)
    assert (ranked.lower[0], ranked.upper[0]) == pytest.approx((walsh[8], walsh[46]))
    assert (signed.lower[0], signed.upper[0]) == pytest.approx((ordered[1], ordered[8]))


@pytest.mark.parametrize(
    "population", [one for one in populations() if one.name != "p99 of a run"], ids=lambda p: p.name
)
def test_a_population_has_the_mean_that_it_states(population: Population) -> None:
    values = population.draw(4000, 20, np.random.default_rng(1))
    error = float(values.mean(axis=1).std() / 4000**0.5)
    assert float(values.mean()) == pytest.approx(population.truth, abs=4 * error)
