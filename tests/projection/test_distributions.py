# SPDX-License-Identifier: Apache-2.0
"""Distributions of a scenario's inputs, judged by scipy's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from pybench.projection.distributions import Distribution, lognormal_of

PROBABILITIES = np.array([0.001, 0.1, 0.25, 0.5, 0.75, 0.9, 0.999])
SIGMA = math.log(600 / 150) / (2 * 0.6744897501960817)


OF_SCIPY = pytest.mark.parametrize(
    ("form", "numbers", "reference"),
    [
        ("uniform", (1.1, 1.3), stats.uniform(1.1, 0.2)),
        ("triangular", (0.2, 0.5, 0.9), stats.triang(0.3 / 0.7, 0.2, 0.7)),
        ("triangular", (0.2, 0.2, 0.9), stats.triang(0.0, 0.2, 0.7)),
        ("triangular", (0.2, 0.9, 0.9), stats.triang(1.0, 0.2, 0.7)),
        ("quartiles", (150.0, 600.0), stats.lognorm(SIGMA, scale=300.0)),
    ],
)


@OF_SCIPY
def test_quantiles_are_those_of_scipy(form: str, numbers: tuple[float, ...], reference: stats.rv_continuous) -> None:
    assert Distribution(form, numbers).ppf(PROBABILITIES) == pytest.approx(reference.ppf(PROBABILITIES), rel=1e-9)


@OF_SCIPY
def test_means_are_those_of_scipy(form: str, numbers: tuple[float, ...], reference: stats.rv_continuous) -> None:
    assert Distribution(form, numbers).mean == pytest.approx(reference.mean())


def test_listed_values_are_equally_likely() -> None:
    drawn = Distribution("values", (5.0, 1.0, 9.0)).ppf(np.linspace(0, 1, 3001))
    assert {float(value): int((drawn == value).sum()) for value in (5.0, 1.0, 9.0)} == {5.0: 1000, 1.0: 1000, 9.0: 1001}


def test_a_measured_value_keeps_its_interval() -> None:
    bounds = lognormal_of(2.0, math.log(1.25)).ppf(np.array([0.025, 0.5, 0.975]))
    assert bounds == pytest.approx([1.6, 2.0, 2.5])


@pytest.mark.parametrize("numbers", [(3.0, 3.0), (7.0, 7.0)])
def test_equal_bounds_are_a_constant(numbers: tuple[float, float]) -> None:
    for form in ("uniform", "quartiles"):
        distribution = Distribution(form, numbers)
        assert distribution.is_constant
        assert distribution.ppf(PROBABILITIES) == pytest.approx(numbers[0])
