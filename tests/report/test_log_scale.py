# SPDX-License-Identifier: Apache-2.0
"""The logarithmic axis draws what matplotlib's own does."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.scale import LogScale

from pybench.report.log_scale import PlainLogScale


def test_coordinates_are_those_of_matplotlib_within_a_rounding() -> None:
    axis = Figure().subplots().xaxis
    own, theirs = PlainLogScale(axis).get_transform(), LogScale(axis).get_transform()
    values = np.geomspace(1e-12, 1e12, 97)
    np.testing.assert_array_max_ulp(own.transform(values), theirs.transform(values), 2)
    np.testing.assert_allclose(own.inverted().transform(own.transform(values)), values, rtol=1e-13)
    assert own.inverted().inverted().transform(100.0) == 2.0


def test_what_has_no_logarithm_is_clipped_and_missing_stays_missing() -> None:
    transform = PlainLogScale(Figure().subplots().xaxis).get_transform()
    assert list(transform.transform(np.array([0.0, -1.0]))) == [-1000.0, -1000.0]
    assert np.isnan(transform.transform(np.array([np.nan]))).all()
    assert np.isinf(transform.inverted().transform(np.array([1e4]))).all()
