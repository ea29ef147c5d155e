# SPDX-License-Identifier: Apache-2.0
"""Variance between builds and of runs in a block: by hand, by statsmodels' mixed model and analysis of variance, and
the coverage of the interval under drift."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from statsmodels.regression.linear_model import OLS
from statsmodels.regression.mixed_linear_model import MixedLM

from pybench.analysis import analyse
from pybench.analysis.comparability import Comparability, SoftwareComparisons
from pybench.analysis.findings.build_variance import BuildVariance, split_variances
from pybench.analysis.measurements import Measurements, MetricValues
from pybench.dataset import load
from pybench.report import write_report
from tests.support.campaigns import CampaignBuilder
from tests.support.environments import environment
from tests.support.precision_campaign import INFER

NO_SOFTWARE = SoftwareComparisons({})


def split(values: NDArray[np.float64], metric: str = "latency_mean_ms") -> BuildVariance:
    """`values`: one row a build."""
    cases = [INFER.with_factors(build=index) for index in range(1, len(values) + 1)]
    cells = {
        (case.id, metric): MetricValues(values=dict(enumerate(map(float, row))))
        for case, row in zip(cases, values, strict=True)
    }
    (found,) = split_variances(cases, Measurements(cells, {}, {}), NO_SOFTWARE)
    return found


def test_two_builds_worked_by_hand() -> None:
    # logs 1 2 3 and 5 7 6: means 2 and 6, of blocks 3, 4.5 and 4.5. So MS_build = 3 (4 + 4) = 24, residuals 0 and
    # +-0.5, MS_residual = 4 * 0.25 / 2 = 0.5. Then s_b^2 = 23.5 / 3, share (23.5/3) / (23.5/3 + 0.5) = 47/50
    found = split(np.exp(np.array([[1.0, 2.0, 3.0], [5.0, 7.0, 6.0]])))
    assert found.is_relative
    assert (found.blocks, found.blocks_left_out) == (3, 0)
    assert found.share.value == pytest.approx(47 / 50)
    assert found.between == pytest.approx((23.5 / 3) ** 0.5)
    assert found.residual == pytest.approx(0.5**0.5)
    # F(0.975; 1, 2) = 38.506: (48/38.506 - 1) / (48/38.506 - 1 + 3) = 0.0759
    assert found.share.lower == pytest.approx(0.0759, abs=1e-4)
    assert found.share.upper is not None
    assert found.share.upper > 0.99


def test_a_mixed_model_fitted_by_restricted_likelihood_agrees() -> None:
    """Blocks as fixed effects: what is left to the builds is the same as with random ones where every block is full."""
    generator = np.random.default_rng(4)
    logs = generator.normal(0, 0.03, (6, 1)) + generator.normal(0, 0.05, 12) + generator.normal(0, 0.01, (6, 12))
    found = split(np.exp(logs))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fitter's own, about its path
        blocks = np.tile(np.eye(12), (6, 1))
        fitted = MixedLM(logs.ravel(), blocks, groups=np.repeat(np.arange(6), 12)).fit(reml=True)
    assert found.between**2 == pytest.approx(float(fitted.cov_re[0][0]), rel=1e-3)
    assert found.residual**2 == pytest.approx(float(fitted.scale), rel=1e-3)


def test_the_ratio_is_that_of_a_two_way_analysis_of_variance() -> None:
    generator = np.random.default_rng(5)
    logs = generator.normal(0, 0.01, (4, 1)) + generator.normal(0, 0.05, 7) + generator.normal(0, 0.01, (4, 7))
    blocks, builds = np.tile(np.eye(7), (4, 1)), np.repeat(np.eye(4), 7, axis=0)
    without = OLS(logs.ravel(), blocks).fit()
    _, p_value, _ = OLS(logs.ravel(), np.hstack([blocks, builds[:, 1:]])).fit().compare_f_test(without)
    assert split(np.exp(logs)).p_value == pytest.approx(p_value)


def test_builds_that_are_more_alike_than_runs_have_no_share() -> None:
    found = split(np.exp(np.array([[1.0, 2.0, 3.0], [1.1, 2.1, 2.9]])))
    assert (found.share.value, found.between, found.share.lower) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("drift", [0.0, 0.05])
def test_the_interval_of_the_share_holds_the_truth_as_often_as_it_says(drift: float) -> None:
    """Builds vary as much as runs do; blocks drift not at all, and five times as much."""
    generator = np.random.default_rng(8)
    held = found_apart = 0
    for _ in range(600):
        noise = generator.normal(0, drift, 10) + generator.normal(0, 0.01, (5, 10))
        found = split(np.exp(generator.normal(0, 0.01, (5, 1)) + noise))
        assert found.share.lower is not None
        assert found.share.upper is not None
        held += found.share.lower <= 0.5 <= found.share.upper
        found_apart += found.p_value < 0.05
    assert 0.925 < held / 600 < 0.975  # standard error 0.009
    assert found_apart / 600 > 0.9  # drift takes none of the power


def test_builds_that_are_equal_are_told_apart_five_times_in_a_hundred_under_drift() -> None:
    generator = np.random.default_rng(9)
    p_values = [
        split(np.exp(generator.normal(0, 0.05, 10) + generator.normal(0, 0.01, (5, 10)))).p_value for _ in range(600)
    ]
    assert 0.025 < float(np.mean(np.array(p_values) < 0.05)) < 0.075  # standard error 0.009


def test_a_block_that_lacks_a_build_is_left_out_and_counted() -> None:
    logs = np.array([[1.0, 2.0, 3.0], [5.0, 7.0, 6.0]])
    whole = split(np.exp(logs))
    cases = [INFER.with_factors(build=index) for index in (1, 2, 3)]
    values = [{block: float(np.exp(log)) for block, log in enumerate(row, 1)} for row in logs]
    values[0][4] = 1e6  # whatever stands there does not count
    runs = [*values, {1: 1.0}]  # one run makes no build
    cells = {(case.id, "latency_mean_ms"): MetricValues(values=own) for case, own in zip(cases, runs, strict=True)}
    (found,) = split_variances(cases, Measurements(cells, {}, {}), NO_SOFTWARE)
    assert (found.blocks, found.blocks_left_out, len(found.cases)) == (3, 1, 2)
    assert found.share == whole.share


def test_builds_that_share_fewer_than_two_blocks_are_not_split() -> None:
    cases = [INFER.with_factors(build=index) for index in (1, 2)]
    runs = ({1: 1.0, 2: 1.1, 3: 1.2}, {3: 1.1, 4: 1.0, 5: 1.3})
    cells = {(case.id, "latency_mean_ms"): MetricValues(values=own) for case, own in zip(cases, runs, strict=True)}
    assert split_variances(cases, Measurements(cells, {}, {}), NO_SOFTWARE) == ()


def test_runs_without_any_spread_in_a_block_have_nothing_to_be_set_against() -> None:
    cases = [INFER.with_factors(build=index) for index in (1, 2)]
    cells = {
        (case.id, "latency_mean_ms"): MetricValues(values={1: 1.0 * case.build, 2: 1.1 * case.build}) for case in cases
    }
    assert split_variances(cases, Measurements(cells, {}, {}), NO_SOFTWARE) == ()


def test_builds_of_different_engines_are_not_mixed(tmp_path: Path) -> None:
    cases = [INFER.with_factors(precision=p, build=b) for p in ("fp32", "fp16") for b in (1, 2)]
    builder = CampaignBuilder(tmp_path / "c", cases, repetitions=3)
    for block in (1, 2, 3):
        for index, case in enumerate(cases):
            builder.run(case, block, {"latency_mean_ms": 1.0 + index + block / 10})
    analysis = analyse(load(builder.path))
    assert [[case.precision for case in one.cases] for one in analysis.builds] == [["fp32"] * 2, ["fp16"] * 2]
    page = write_report(load(builder.path))
    assert "Variance between builds" in page.read_text()
    assert (page.parent / "tables" / "builds.tex").exists()


def test_a_block_whose_builds_ran_with_two_drivers_is_left_out_counted_and_named(tmp_path: Path) -> None:
    cases = [INFER.with_factors(build=index) for index in (1, 2)]
    builder = CampaignBuilder(tmp_path / "c", cases, repetitions=4)
    for block in (1, 2, 3, 4):
        for case in cases:
            given = environment(gpu={"driver_version": "590.2"}) if (block, case.build) == (2, 2) else environment()
            latency_ms = (1 + 0.1 * case.build) * (1 + 0.01 * (block * case.build % 3))
            builder.run(case, block, {"latency_mean_ms": latency_ms}, environment=given)
    analysis = analyse(load(builder.path))
    (found,) = analysis.builds
    assert (found.blocks, found.blocks_left_out) == (3, 1)
    (pair,) = analysis.excluded
    assert [one.text() for one in analysis.excluded[pair].differences] == ["driver 580.1 against 590.2"]
    page = write_report(load(builder.path)).read_text()
    assert "1 pair of runs in 1 comparison is excluded, because its two runs differ in driver" in page


def test_builds_that_never_ran_with_one_driver_are_not_split(tmp_path: Path) -> None:
    cases = [INFER.with_factors(build=index) for index in (1, 2)]
    builder = CampaignBuilder(tmp_path / "c", cases, repetitions=3)
    for block in (1, 2, 3):
        for case, driver in zip(cases, ("580.1", "590.2"), strict=True):
            given = environment(gpu={"driver_version": driver})
            builder.run(case, block, {"latency_mean_ms": 1.0 + 0.1 * block * case.build}, environment=given)
    analysis = analyse(load(builder.path))
    assert analysis.builds == ()
    assert [one.status for one in analysis.excluded.values()] == [Comparability.NOT_COMPARABLE]
