# SPDX-License-Identifier: Apache-2.0
"""Curves over a numeric factor: which lines there are, and where they cross, from numbers worked by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from pybench.analysis import analyse
from pybench.analysis.findings.curves import Curve
from pybench.analysis.statistics.paired import compare_paired
from pybench.case import Case
from pybench.dataset import load
from tests.support.campaigns import CampaignBuilder
from tests.support.environments import environment

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
    other_driver: tuple[Case, int | None] | None = None,
    left_out: int | None = None,
    **more: Any,
) -> tuple[Curve, ...]:
    """`other_driver`: a case, and the block in which it ran with it; None is every block."""
    cases = [case.with_factors(batch=batch) for case in (TORCH, ONNX) for batch in batches]
    builder = CampaignBuilder(folder / "c", cases, repetitions=blocks, **more)
    for block in range(1, blocks + 1):
        for case in cases if block != left_out else ():
            is_other = other_driver in ((case, block), (case, None))
            given = environment(gpu={"driver_version": "590.2"}) if is_other else environment()
            builder.run(case, block, {"latency_mean_ms": latency_ms(case, block)}, environment=given)
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
    assert crossing.is_shown
    assert (crossing.blocks, crossing.blocks_excluded) == (6, 0)


@pytest.mark.parametrize(
    ("declared", "compared"),
    [
        ({}, [("fp32", "fp32"), ("bf16", "bf16")]),
        (
            {"declared": {"baseline": {"runtime": "torch", "precision": "bf16"}}},
            list(product(("fp32", "bf16"), repeat=2)),
        ),
    ],
)
def test_lines_cross_that_differ_in_one_factor_or_in_what_a_baseline_names(
    tmp_path: Path, declared: dict[str, Any], compared: list[tuple[str, str]]
) -> None:
    """Each line of onnxruntime meets both of torch, whatever their precisions."""
    lines = [one.with_factors(precision=precision) for one in (TORCH, ONNX) for precision in ("fp32", "bf16")]
    cases = [line.with_factors(batch=batch) for line in lines for batch in BATCHES]
    builder = CampaignBuilder(tmp_path / "c", cases, repetitions=3, **declared)
    for case, block in product(cases, (1, 2, 3)):
        builder.run(case, block, {"latency_mean_ms": falling(case, block)}, environment=environment())
    curve = analyse(load(builder.path)).curves[0]
    assert [(one.first.case.precision, one.second.case.precision) for one in curve.crossings] == compared


def test_lines_that_meet_at_a_value_cross_there(tmp_path: Path) -> None:
    def meeting(case: Case, block: int) -> float:
        return float(case.batch) if case.runtime == "torch" else 2.0

    (curve,) = curves(tmp_path, meeting, batches=(1, 2, 4))
    assert [crossing.at for crossing in curve.crossings] == [2]


def test_one_block_gives_a_crossing_without_an_interval(tmp_path: Path) -> None:
    (curve,) = curves(tmp_path, batches=(1, 2, 8), blocks=1)
    (crossing,) = curve.crossings
    assert (crossing.lower, crossing.upper, crossing.is_shown) == (None, None, False)


def test_where_lines_are_not_shown_to_differ_the_interval_ends_with_what_was_measured(tmp_path: Path) -> None:
    def close(case: Case, block: int) -> float:
        return 1.0 if case.runtime == "onnxruntime" else 1 + 0.0005 * (case.batch - 3) + 0.01 * (-1) ** block

    (curve,) = curves(tmp_path, close, batches=(1, 2, 4))
    (crossing,) = curve.crossings
    assert crossing.at == pytest.approx(3, rel=0.05)
    assert (crossing.lower, crossing.upper, crossing.is_shown) == (1, 4, False)


def test_the_interval_has_the_places_at_which_the_effect_may_be_none(tmp_path: Path) -> None:
    """Lines are straight in logarithms, so the latency at any batch is known, and its paired effect, too."""
    (curve,) = curves(tmp_path, batches=(1, 2, 8))
    (crossing,) = curve.crossings
    assert crossing.lower is not None
    assert crossing.upper is not None
    share = {place: math.log(place / 2) / math.log(4) for place in (crossing.lower, crossing.upper)}
    for place, above in ((crossing.lower, True), (crossing.upper, False)):
        torch, onnx = (
            {
                block: math.exp(
                    (1 - share[place]) * math.log(falling(line.with_factors(batch=2), block))
                    + share[place] * math.log(falling(line.with_factors(batch=8), block))
                )
                for block in range(1, 7)
            }
            for line in (TORCH, ONNX)
        )
        effect = compare_paired(torch, onnx, "ratio")
        assert effect is not None
        assert (effect.estimate.lower if above else effect.estimate.upper) == pytest.approx(1, abs=1e-9)


def test_an_interval_reaches_beyond_a_measured_value(tmp_path: Path) -> None:
    """They cross next to batch 4, where they are not shown to differ; at 1 and at 16 they are."""

    def near(case: Case, block: int) -> float:
        return falling(case, block) * (1.001 if case.runtime == "onnxruntime" else 1)

    (curve,) = curves(tmp_path, near)
    (crossing,) = curve.crossings
    assert crossing.lower is not None
    assert crossing.upper is not None
    assert 1 < crossing.lower < 4 < crossing.upper < 16


@pytest.mark.parametrize("case", [TORCH.with_factors(batch=2), ONNX.with_factors(batch=8)])
def test_blocks_with_two_drivers_are_left_out_of_a_crossing_counted_and_named(tmp_path: Path, case: Case) -> None:
    (curve,) = curves(tmp_path, batches=(1, 2, 8), other_driver=(case, 3))
    (crossing,) = curve.crossings
    assert (crossing.blocks, crossing.blocks_excluded) == (5, 1)
    (without,) = curves(tmp_path / "without", batches=(1, 2, 8), left_out=3)
    assert (crossing.at, crossing.lower, crossing.upper) == (
        without.crossings[0].at,
        without.crossings[0].lower,
        without.crossings[0].upper,
    )
    excluded = analyse(load(tmp_path / "c")).excluded
    assert {difference.text() for one in excluded.values() for difference in one.differences} <= {
        "driver 580.1 against 590.2",
        "driver 590.2 against 580.1",
    }
    assert all(case in (pair.case, pair.baseline) for pair in excluded)


def test_lines_that_never_ran_with_one_driver_do_not_cross(tmp_path: Path) -> None:
    (curve,) = curves(tmp_path, batches=(1, 2, 8), other_driver=(TORCH.with_factors(batch=2), None))
    assert curve.crossings == ()


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
