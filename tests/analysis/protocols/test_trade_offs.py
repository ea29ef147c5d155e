# SPDX-License-Identifier: Apache-2.0
"""Advantageous or not: known verdicts of the paper's campaign, each bound, and what leaves a case open."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pybench.analysis import Analysis, analyse
from pybench.analysis.findings.verdicts import Verdict as OwnVerdict
from pybench.analysis.protocols.trade_offs import TradeOff, TradeOffVerdict
from pybench.case import Case
from pybench.dataset import Dataset, load
from tests.support.campaigns import CampaignBuilder
from tests.support.precision_campaign import BATCHES, INFER, PRECISIONS, values_of

WELCH_MW = "welch-mann-whitney"


def rows_of(analysis: Analysis) -> dict[tuple[str, int], TradeOff]:
    return {(row.case.precision, row.case.batch): row for found in analysis.protocols[0].trade_offs for row in found}


def test_the_standing_of_each_precision_is_the_known_one(analysis: Analysis) -> None:
    standing = {key: row.standing.value for key, row in rows_of(analysis).items()}
    assert list(standing) == list(itertools.product(PRECISIONS, BATCHES))
    for batch in BATCHES:
        assert standing["fp32", batch] == "baseline"
        assert standing["fp16", batch] == "advantageous"
        assert standing["bf16", batch] == ("not advantageous" if batch == 1 else "advantageous")
        assert standing["int8+fp16", batch] == "not advantageous"


def test_figures_are_ratios_of_arithmetic_means(papers: Dataset, analysis: Analysis) -> None:
    row = rows_of(analysis)["int8+fp16", 32]
    latency, base = (values_of(papers, case, "latency_mean_ms").mean() for case in (row.case, row.baseline))
    energy, base_energy = (
        values_of(papers, case, "gpu_energy_per_sample_j").mean() for case in (row.case, row.baseline)
    )
    for figure, expected in (
        (row.speedup, base / latency),
        (row.energy_reduction_percent, 100 * (1 - energy / base_energy)),
        (row.top1_delta_pp, -3.0),
    ):
        assert figure.estimate is not None
        assert figure.estimate.value == pytest.approx(expected)
    assert row.figures["top1_percent"].estimate is not None
    assert row.figures["top1_percent"].estimate.value == pytest.approx(77.0)
    assert row.figures["gpu_energy_per_sample_j"].windows == ("energy",)
    assert row.figures["gpu_energy_per_sample_j"].methods == ("fused",)


def test_points_decide_where_the_intervals_do_not(analysis: Analysis) -> None:
    row = rows_of(analysis)["bf16", 8]  # -0.6 pp, whose interval reaches -1.7
    assert row.standing is TradeOffVerdict.ADVANTAGEOUS
    assert row.own_verdict is OwnVerdict.UNDECIDED


def test_a_missing_number_is_none_with_its_reason(analysis: Analysis) -> None:
    row = rows_of(analysis)["int8+fp16", 1]
    assert row.energy_reduction_percent.estimate is None
    assert row.energy_reduction_percent.why_none == "the case: energy: window_too_short"


def small(
    folder: Path,
    latency: Mapping[str, float],
    top1: Mapping[str, float],
    accept: Mapping[str, float] | None,
    *,
    declared: bool = True,
) -> dict[str, TradeOff]:
    """Four repetitions of some precisions at one batch, each with one latency and one Top-1."""
    speeds = {name: INFER.with_factors(precision=name) for name in latency}
    accuracies = {name: INFER.with_factors(workload="accuracy", precision=name) for name in top1}
    criteria = {"baseline": {"precision": "fp32"}, **({"accept": dict(accept)} if accept else {})} if declared else None
    builder = CampaignBuilder(
        folder, (*speeds.values(), *accuracies.values()), repetitions=4, protocols=[WELCH_MW], declared=criteria
    )
    for block in range(1, 5):
        for name, case in speeds.items():
            builder.run(case, block, {"latency_mean_ms": latency[name] * (1 + 0.001 * (block - 2.5))})
        for name, case in accuracies.items():
            builder.run(case, block, {"top1_percent": top1[name], "top5_percent": 99.0})
    (found,) = analyse(load(builder.path)).protocols
    return {row.case.precision: row for rows in found.trade_offs for row in rows}


@pytest.mark.parametrize(
    ("speedup", "loss_pp", "accept", "expected"),
    [
        (1.16, 0.9, None, TradeOffVerdict.ADVANTAGEOUS),
        (1.16, 1.0, None, TradeOffVerdict.ADVANTAGEOUS),  # the bound itself is kept
        (1.14, 0.0, None, TradeOffVerdict.NOT_ADVANTAGEOUS),
        (1.16, 1.1, None, TradeOffVerdict.NOT_ADVANTAGEOUS),
        (1.14, 0.0, {"speedup_min": 1.1}, TradeOffVerdict.ADVANTAGEOUS),
        (1.16, 0.0, {"speedup_min": 1.2}, TradeOffVerdict.NOT_ADVANTAGEOUS),
        (1.16, 1.1, {"top1_delta_pp_min": -2.0}, TradeOffVerdict.ADVANTAGEOUS),
        (1.16, 0.0, {"top5_delta_pp_min": 0.5}, TradeOffVerdict.NOT_ADVANTAGEOUS),  # every bound of the plan counts
    ],
)
def test_each_bound_decides(
    tmp_path: Path, speedup: float, loss_pp: float, accept: Mapping[str, float] | None, expected: TradeOffVerdict
) -> None:
    rows = small(tmp_path / "c", {"fp32": 1.0, "fp16": 1 / speedup}, {"fp32": 80.0, "fp16": 80.0 - loss_pp}, accept)
    assert rows["fp16"].standing is expected
    assert rows["fp32"].standing is TradeOffVerdict.BASELINE


def test_who_set_a_bound_is_kept(tmp_path: Path) -> None:
    rows = small(tmp_path / "c", {"fp32": 1.0, "fp16": 0.5}, {"fp32": 80.0, "fp16": 80.0}, {"speedup_min": 1.3})
    bounds = {one.criterion.name: (one.criterion.threshold, one.is_own) for one in rows["fp16"].bounded}
    assert bounds == {"speedup_min": (1.3, False), "top1_delta_pp_min": (-1.0, True)}


def test_without_criteria_the_protocol_compares_with_fp32(tmp_path: Path) -> None:
    rows = small(tmp_path / "c", {"fp32": 1.0, "fp16": 0.5}, {"fp32": 80.0, "fp16": 80.0}, None, declared=False)
    assert rows["fp16"].standing is TradeOffVerdict.ADVANTAGEOUS
    assert rows["fp16"].own_verdict is None


def test_without_an_accuracy_fast_is_not_judged_and_slow_is_refused(tmp_path: Path) -> None:
    rows = small(tmp_path / "c", {"fp32": 1.0, "fp16": 0.5, "bf16": 1.0}, {}, None)
    assert rows["fp16"].standing is TradeOffVerdict.NOT_JUDGED
    assert "no accuracy case" in str(rows["fp16"].why_not_judged)
    assert rows["bf16"].standing is TradeOffVerdict.NOT_ADVANTAGEOUS


def test_a_baseline_keeps_its_own_top_1_where_nothing_else_has_one(tmp_path: Path) -> None:
    rows = small(tmp_path / "c", {"fp32": 1.0, "fp16": 0.5}, {"fp32": 80.0}, None)
    assert rows["fp32"].figures["top1_percent"].estimate is not None
    assert rows["fp32"].figures["top1_percent"].estimate.value == 80.0
    assert rows["fp16"].figures["top1_percent"].estimate is None
    assert rows["fp16"].standing is TradeOffVerdict.NOT_JUDGED


def twice_judged(folder: Path, top1: Mapping[tuple[str, int], float | None]) -> tuple[TradeOff, ...]:
    """FP32 and FP16, twice as fast, each judged at two batches: precision and batch -> Top-1, None where it failed."""
    speeds = [INFER.with_factors(precision=name) for name in ("fp32", "fp16")]
    accuracies = [one.with_factors(workload="accuracy", batch=batch) for one in speeds for batch in (1, 32)]
    builder = CampaignBuilder(folder, (*speeds, *accuracies), repetitions=3, protocols=[WELCH_MW])
    for block in (1, 2, 3):
        for case in speeds:
            builder.run(case, block, {"latency_mean_ms": (2.0 if case.precision == "fp32" else 1.0) + block / 100})
        for case in accuracies:
            percent = top1[case.precision, case.batch]
            if percent is None:
                builder.run(case, block, outcome="oom", reason="out_of_memory")
            else:
                builder.run(case, block, {"top1_percent": percent})
    (found,) = analyse(load(builder.path)).protocols
    return found.trade_offs[0]


def test_of_several_accuracies_the_one_that_lost_most_decides(tmp_path: Path) -> None:
    top1 = {("fp32", 1): 80.0, ("fp32", 32): 80.0, ("fp16", 1): 80.0, ("fp16", 32): 78.5}
    _, half = twice_judged(tmp_path / "c", top1)
    assert half.top1_delta_pp.estimate is not None
    assert half.top1_delta_pp.estimate.value == pytest.approx(-1.5)
    assert half.standing is TradeOffVerdict.NOT_ADVANTAGEOUS


@pytest.mark.parametrize(
    ("loss_at_batch_1_pp", "expected"),
    [(0.0, TradeOffVerdict.NOT_JUDGED), (1.5, TradeOffVerdict.NOT_ADVANTAGEOUS)],
)
def test_an_accuracy_that_failed_leaves_a_case_open_unless_another_breaks_the_bound(
    tmp_path: Path, loss_at_batch_1_pp: float, expected: TradeOffVerdict
) -> None:
    top1 = {("fp32", 1): 80.0, ("fp32", 32): 80.0, ("fp16", 1): 80.0 - loss_at_batch_1_pp, ("fp16", 32): None}
    assert twice_judged(tmp_path / "c", top1)[1].standing is expected


def test_a_baselines_top_1_is_the_one_that_the_difference_is_taken_from(tmp_path: Path) -> None:
    top1 = {("fp32", 1): 80.0, ("fp32", 32): 79.5, ("fp16", 1): 80.0, ("fp16", 32): 79.0}
    baseline, half = twice_judged(tmp_path / "c", top1)
    numbers = [baseline.figures["top1_percent"], half.figures["top1_percent"], half.top1_delta_pp]
    assert [one.estimate.value for one in numbers if one.estimate] == pytest.approx([79.5, 79.0, -0.5])


def test_a_language_model_is_judged_by_speed_alone(tmp_path: Path) -> None:
    cases = [Case(workload="infer", model="tinylm-small", runtime="torch", precision=name) for name in ("fp32", "bf16")]
    builder = CampaignBuilder(tmp_path / "c", cases, repetitions=3, protocols=[WELCH_MW])
    for block in (1, 2, 3):
        for case, latency in zip(cases, (2.0, 1.0), strict=True):
            builder.run(case, block, {"latency_mean_ms": latency + block / 100})
    (found,) = analyse(load(builder.path)).protocols
    row = found.trade_offs[0][1]
    assert [one.criterion.name for one in row.bounded] == ["speedup_min"]
    assert row.standing is TradeOffVerdict.ADVANTAGEOUS


def with_driver(version: str) -> dict[str, Any]:
    """As a run on a GPU stores it."""
    gpu = {"uuid": "GPU-1", "name": "NVIDIA H200", "driver_version": version}
    return {"schema_version": 1, "pybench": "0.1.0", "packages": {}, "measuring": {"gpu": gpu}}


@pytest.mark.parametrize(
    ("drivers", "speedup"),
    [
        (["580.1"] * 4, 1.25),
        (["580.1", "580.1", "590.2", "590.2"], 1.0),  # only the first two are compared
        (["590.2"] * 4, None),
    ],
)
def test_blocks_of_other_software_are_not_in_a_ratio(tmp_path: Path, drivers: list[str], speedup: float | None) -> None:
    fp32, int8 = (INFER.with_factors(precision=name) for name in ("fp32", "int8"))
    declared = {"baseline": {"precision": "fp32"}, "accept": {"speedup_min": 1.1}}
    builder = CampaignBuilder(tmp_path, (fp32, int8), repetitions=4, protocols=[WELCH_MW], declared=declared)
    for block, driver in enumerate(drivers, start=1):
        faster = 2.0 if "590.2" in drivers and block <= 2 else 1.6
        builder.run(fp32, block, {"latency_mean_ms": 2.0}, environment=with_driver("580.1"))
        builder.run(int8, block, {"latency_mean_ms": faster}, environment=with_driver(driver))
    (found,) = analyse(load(builder.path)).protocols
    row = next(row for rows in found.trade_offs for row in rows if row.case.precision == "int8")
    assert (row.speedup.estimate and row.speedup.estimate.value) == (speedup and pytest.approx(speedup))
    by_speed = [one for one in row.bounded if one.criterion.name == "speedup_min"]
    assert [one.value for one in by_speed] == [speedup and pytest.approx(speedup)]
    if speedup is None:
        assert "driver 580.1 against 590.2" in (row.speedup.why_none or "")
