# SPDX-License-Identifier: Apache-2.0
"""The simulation of crossings judges what pybench computes."""

from __future__ import annotations

import numpy as np
import pytest

from bench.intervals.crossings import METHODS, Gaps, draw_gaps
from bench.intervals.populations import populations
from pybench.analysis.comparability import SoftwareComparisons
from pybench.analysis.findings.crossings import Crossing, CurveLine, CurvePoint, find_crossings
from pybench.analysis.statistics.estimate import Sample
from pybench.analysis.statistics.intervals import estimate_geometric_mean
from pybench.case import Case
from pybench.catalogue.metrics import METRICS

TORCH, ONNX = (Case(workload="infer", model="digits-cnn", runtime=runtime) for runtime in ("torch", "onnxruntime"))


def crossing_of(left: np.ndarray, right: np.ndarray) -> tuple[Crossing, ...]:
    """Of a line with these logarithms at batch 1 and at batch 2, and one that is always 1."""
    lines = []
    for case, logs in ((TORCH, (left, right)), (ONNX, (0 * left, 0 * right))):
        points = []
        for batch, values in zip((1, 2), np.exp(logs), strict=True):
            estimate = estimate_geometric_mean(Sample.of(values))
            points.append(CurvePoint(batch, case.with_factors(batch=batch), estimate, dict(enumerate(values))))
        lines.append(CurveLine(tuple(points)))
    return find_crossings(lines, METRICS["latency_mean_ms"], SoftwareComparisons({}), "batch", ())


@pytest.mark.parametrize("n", [2, 3, 8])
@pytest.mark.parametrize("change", [20.0, 3.0])
def test_the_method_judged_is_the_one_of_the_analysis(n: int, change: float) -> None:
    skewed = next(one for one in populations() if one.name == "lognormal")
    drawn = draw_gaps(skewed, change, 0.3, n, 30)
    gaps = Gaps(drawn.left / 20, drawn.right / 20, drawn.rng)
    judged = METHODS["skew-adjusted t, inverted"](gaps)
    found = [crossing_of(left, right) for left, right in zip(gaps.left, gaps.right, strict=True)]
    assert [bool(one) for one in found] == [bool(np.isfinite(lower)) for lower in judged.lower]
    for crossings, lower, upper in zip(found, judged.lower, judged.upper, strict=True):
        for crossing in crossings:
            assert crossing.lower == pytest.approx(2**lower, abs=1e-6)
            assert crossing.upper == pytest.approx(2**upper, abs=1e-6)
