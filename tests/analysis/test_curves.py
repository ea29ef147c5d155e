# SPDX-License-Identifier: Apache-2.0
"""Curves over a numeric factor: which lines there are, and where they cross, from numbers worked by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pybench.analysis import analyse
from pybench.analysis.curves import Curve
from pybench.case import Case
from pybench.dataset import load
from tests.support.campaigns import CampaignBuilder

TORCH = Case(workload="infer", model="digits-cnn", runtime="torch")
ONNX = Case(workload="infer", model="digits-cnn", runtime="onnxruntime")
BATCHES = (1, 4, 16)


def noise(block: int, batch: int) -> float:
    """About one percent, and not the same in any two cells."""
    return 1 + 0.01 * math.sin(block * 12.9898 + batch * 78.233)


def falling(case: Case, block: int) -> float:
    """torch costs 2 ms whatever the batch; onnxruntime 0.5 ms a sample: they are equal at a batch of 4."""
    latency_ms = 2.0 if case.runtime == "torch" else 0.5 * case.batch
    return latency_ms * noise(block, case.batch + (100 if case.runtime == "torch" else 0))


def curves(
    folder: Path,
    latency_ms: Callable[[Case, int], float] = falling,
    batches: tuple[int, ...] = BATCHES,
    blocks: int = 6,
    **more: Any,
) -> tuple[Curve, ...]:
    cases = [case.with_factors(batch=batch) for case in (TORCH, ONNX) for batch in batches]
    builder = CampaignBuilder(folder / "c", cases, repetitions=blocks, **more)
    for block in range(1, blocks + 1):
        for case in cases:
            builder.run(case, block, {"latency_mean_ms": latency_ms(case, block)})
    return analyse(load(builder.path)).curves


def test_a_factor_with_three_values_has_a_curve_of_the_headline(tmp_path: Path) -> None:
    (curve,) = curves(tmp_path)
    assert (curve.factor, curve.workload, curve.metric.name) == ("batch", "infer", "latency_mean_ms")
    assert curve.contrast is None
    assert [line.case.runtime for line in curve.lines] == ["torch", "onnxruntime"]
    assert [[point.at for point in line.points] for line in curve.lines] == [[1, 4, 16], [1, 4, 16]]


def test_two_values_are_no_curve(tmp_path: Path) -> None:
    assert curves(tmp_path, batches=(1, 4)) == ()


def test_lines_cross_between_two_values(tmp_path: Path) -> None:
    """A line of slope 1 in logarithms meets a level of 2 ms where 0.5 ms times the batch is 2 ms."""
    (curve,) = curves(tmp_path, batches=(1, 2, 8, 16))
    (crossing,) = curve.crossings
    assert crossing.at == pytest.approx(4, rel=0.02)
    assert crossing.lower is not None
    assert crossing.upper is not None
    assert crossing.lower < crossing.at < crossing.upper
    assert crossing.upper - crossing.lower < 0.3
    assert crossing.share == 1.0


def test_lines_that_meet_at_a_value_cross_there(tmp_path: Path) -> None:
    def meeting(case: Case, block: int) -> float:
        return float(case.batch) if case.runtime == "torch" else 2.0

    (curve,) = curves(tmp_path, meeting, batches=(1, 2, 4))
    assert [crossing.at for crossing in curve.crossings] == [2]


def test_few_blocks_give_a_crossing_without_an_interval(tmp_path: Path) -> None:
    (curve,) = curves(tmp_path, batches=(1, 2, 8), blocks=3)
    (crossing,) = curve.crossings
    assert (crossing.lower, crossing.upper, crossing.share) == (None, None, None)


def test_lines_that_barely_cross_have_a_small_share(tmp_path: Path) -> None:
    """They cross where as many resampled blocks are above as below, which is 20 of 64 resamples."""

    def close(case: Case, block: int) -> float:
        return 1.0 if case.runtime == "onnxruntime" else 1 + 0.0005 * (case.batch - 3) + 0.01 * (-1) ** block

    (curve,) = curves(tmp_path, close, batches=(1, 2, 4))
    (crossing,) = curve.crossings
    assert (crossing.lower, crossing.upper) == (None, None)
    assert crossing.share is not None
    assert 0.1 < crossing.share < 0.5


def test_lines_that_do_not_cross_have_no_crossing(tmp_path: Path) -> None:
    def apart(case: Case, block: int) -> float:
        return (1.0 if case.runtime == "torch" else 3.0) * case.batch * noise(block, case.batch)

    (curve,) = curves(tmp_path, apart)
    assert curve.crossings == ()


def test_a_judged_ratio_has_a_curve_of_its_own(tmp_path: Path) -> None:
    declared = {"baseline": {"runtime": "torch"}, "accept": {"speedup_min": 1.0}}
    metric, ratio = curves(tmp_path, declared=declared)
    assert metric.contrast is None
    assert ratio.contrast is not None
    assert ratio.inverse
    (line,) = ratio.lines
    assert [point.estimate.value for point in line.points] == pytest.approx([4.0, 1.0, 0.25], rel=0.03)
