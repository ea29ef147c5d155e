# SPDX-License-Identifier: Apache-2.0
"""Variance between builds and between runs: by hand, by statsmodels' mixed model, and the coverage of the interval."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from statsmodels.regression.mixed_linear_model import MixedLM

from pybench.analysis import analyse
from pybench.analysis.build_variance import BuildVariance, split_variances
from pybench.analysis.measurements import Cell, Measurements
from pybench.dataset import load
from pybench.report import write_report
from tests.campaigns import CampaignBuilder
from tests.precision_campaign import INFER


def split(values: NDArray[np.float64], metric: str = "latency_mean_ms") -> BuildVariance:
    """`values`: one row a build."""
    cases = [INFER.with_factors(build=index) for index in range(1, len(values) + 1)]
    cells = {
        (case.id, metric): Cell(values=dict(enumerate(map(float, row))))
        for case, row in zip(cases, values, strict=True)
    }
    (found,) = split_variances(cases, Measurements(cells, {}))
    return found


def test_two_builds_worked_by_hand() -> None:
    # logs 1 2 3 and 5 6 7: means 2 and 6, MSB = 3 (4 + 4) = 24, MSW = 1; s_b^2 = 23/3, share (23/3)/(26/3) = 23/26
    found = split(np.exp(np.array([[1.0, 2.0, 3.0], [5.0, 6.0, 7.0]])))
    assert found.is_relative
    assert found.share.value == pytest.approx(23 / 26)
    assert (found.between, found.within) == (pytest.approx((23 / 3) ** 0.5), pytest.approx(1.0))
    # F(0.975; 1, 4) = 12.218: (24/12.218 - 1)/(24/12.218 - 1 + 3) = 0.2432
    assert found.share.lower == pytest.approx(0.2432, abs=1e-4)
    assert found.share.upper is not None
    assert found.share.upper > 0.99


def test_a_mixed_model_fitted_by_restricted_likelihood_agrees() -> None:
    generator = np.random.default_rng(4)
    logs = generator.normal(0, 0.03, (6, 1)) + generator.normal(0, 0.01, (6, 12))
    found = split(np.exp(logs))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fitter's own, about its path
        fitted = MixedLM(logs.ravel(), np.ones(72), groups=np.repeat(np.arange(6), 12)).fit(reml=True)
    assert found.between**2 == pytest.approx(float(fitted.cov_re[0][0]), rel=1e-3)
    assert found.within**2 == pytest.approx(float(fitted.scale), rel=1e-3)


def test_builds_that_are_more_alike_than_runs_have_no_share() -> None:
    found = split(np.exp(np.array([[1.0, 2.0, 3.0], [1.1, 2.1, 2.9]])))
    assert (found.share.value, found.between, found.share.lower) == (0.0, 0.0, 0.0)


def test_the_interval_of_the_share_holds_the_truth_as_often_as_it_says() -> None:
    generator = np.random.default_rng(8)
    held = 0
    for _ in range(400):
        found = split(np.exp(generator.normal(0, 0.01, (4, 1)) + generator.normal(0, 0.01, (4, 10)))).share
        assert found.lower is not None
        assert found.upper is not None
        held += found.lower <= 0.5 <= found.upper
    assert 0.92 < held / 400 < 0.98  # standard error 0.011


def test_runs_without_any_spread_have_nothing_to_be_set_against() -> None:
    cases = [INFER.with_factors(build=index) for index in (1, 2)]
    cells = {(case.id, "latency_mean_ms"): Cell(values={1: 1.0 * case.build, 2: 1.0 * case.build}) for case in cases}
    assert split_variances(cases, Measurements(cells, {})) == ()


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
