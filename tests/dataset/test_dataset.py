# SPDX-License-Identifier: Apache-2.0
"""A campaign read into tidy frames: nothing dropped, corrupt runs named, a thousand runs in seconds."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import pybench
from pybench.analysis import analyse
from pybench.campaign.layout import COMPLETE, ITERATIONS, PREDICTIONS, RUN, SUMMARY
from pybench.case import Case
from pybench.case.factors import FACTORS
from pybench.catalogue.cautions import Caution, CautionCode
from pybench.catalogue.reasons import Reason, ReasonCode
from pybench.dataset import load
from pybench.errors import CorruptError, UsageError
from pybench.measure.quantity import Quantity
from pybench.measurement.result import Validity
from pybench.worker.storing import csv_text
from tests.support.campaigns import IMAGES, CampaignBuilder, build_typical, finish_again, predictions_csv, unguard
from tests.support.reasons import reasons_of

INFER = Case(workload="infer", model="digits-cnn", runtime="onnxruntime")


def test_load_gives_one_row_a_run_and_metric_with_the_promised_columns(tmp_path: Path) -> None:
    builder = CampaignBuilder(tmp_path / "c", [INFER], repetitions=2)
    for block in (1, 2):
        builder.run(INFER, block, {"latency_mean_ms": 2.0 + block, "latency_p99_ms": 9.0})
    frame = pybench.load(builder.path)
    assert frame.columns[: len(FACTORS)] == list(FACTORS)
    promised = ["case_id", "block", "attempt", "outcome", "metric", "unit", "window", "value", "u_standard", "lower"]
    assert set(promised) <= set(frame.columns)
    rows = frame.select("block", "metric", "value", "unit", "valid_timing").rows()
    assert rows == [
        (1, "latency_mean_ms", 3.0, "ms", True),
        (1, "latency_p99_ms", 9.0, "ms", True),
        (2, "latency_mean_ms", 4.0, "ms", True),
        (2, "latency_p99_ms", 9.0, "ms", True),
    ]


def test_a_failed_run_keeps_a_row_without_a_metric(tmp_path: Path) -> None:
    builder = CampaignBuilder(tmp_path / "c", [INFER], repetitions=1)
    builder.run(INFER, 1, outcome="oom", reason="cgroup", detail="memory.events counted an oom kill")
    frame = load(builder.path).frame
    assert frame.select("outcome", "metric", "value").rows() == [("oom", None, None)]


def test_a_missing_number_is_null_with_its_reason_and_an_estimate_only_bounds(tmp_path: Path) -> None:
    builder = CampaignBuilder(tmp_path / "c", [INFER], repetitions=1)
    energy = {"cpu_energy_j": Quantity(reasons=("no_rapl",)), "cpu_energy_estimate_j": Quantity(interval=(1.0, 4.0))}
    builder.run(INFER, 1, energy)
    rows = load(builder.path).frame.select("metric", "value", "lower", "upper", "reason").rows()
    assert rows == [("cpu_energy_j", None, None, None, "no_rapl"), ("cpu_energy_estimate_j", None, 1.0, 4.0, None)]


def test_the_latest_complete_attempt_counts(tmp_path: Path) -> None:
    builder = CampaignBuilder(tmp_path / "c", [INFER], repetitions=1)
    builder.run(INFER, 1, outcome="killed", attempt=1)
    builder.run(INFER, 1, {"latency_mean_ms": 5.0}, attempt=2)
    builder.run(INFER, 1, {"latency_mean_ms": 6.0}, attempt=3, complete=False)
    rows = load(builder.path).frame.select("attempt", "outcome", "value").rows()
    assert rows == [(2, "ok", 5.0)]


def test_runs_that_the_plan_does_not_ask_for_are_no_part_of_the_tables(tmp_path: Path) -> None:
    """A plan cut from three repetitions to two, and a case taken out of it: `run` says that those runs do not count."""
    builder = CampaignBuilder(tmp_path / "c", [INFER], repetitions=2)
    caution = Caution(CautionCode.OUTLIERS, "3 of 100", "latency_mean_ms")
    for block in (1, 2, 3):
        builder.run(INFER, block, {"latency_mean_ms": float(block)}, cautions=[caution] if block == 3 else [])
    builder.run(INFER.with_factors(batch=8), 1, {"latency_mean_ms": 9.0})
    dataset = load(builder.path)
    assert dataset.frame["value"].to_list() == [1.0, 2.0]
    assert (dataset.runs.height, dataset.cautions.height, set(dataset.cases)) == (2, 0, {INFER.id})
    assert dataset.environments["schema_version"].total() == 2
    assert (dataset.beyond, dict(dataset.orphans)) == (1, {INFER.with_factors(batch=8).id: 1})
    assert dataset.unfinished == frozenset()


def test_a_run_without_complete_counts_as_unfinished(tmp_path: Path) -> None:
    builder = CampaignBuilder(tmp_path / "c", [INFER], repetitions=1)
    builder.run(INFER, 1, {"latency_mean_ms": 5.0}, complete=False)
    dataset = load(builder.path)
    assert dataset.runs.height == 0
    assert dataset.unfinished == {(INFER.id, 1)}


@pytest.mark.parametrize("name", ["summary.json", "run.json", "case.json", "environment.json"])
@pytest.mark.parametrize("damage", ["truncated", "removed", "not utf-8", "a list"])
@pytest.mark.parametrize("is_guarded", [True, False])
def test_a_complete_run_with_a_damaged_file_is_corrupt_and_named(
    tmp_path: Path, name: str, damage: str, is_guarded: bool
) -> None:
    builder = CampaignBuilder(tmp_path / "c", [INFER], repetitions=1)
    file = builder.run(INFER, 1, {"latency_mean_ms": 5.0}).file(name)
    if not is_guarded:
        unguard(file.parent)
    content = file.read_bytes()
    if damage == "removed":
        file.unlink()
    else:
        file.write_bytes(
            {"truncated": content[: len(content) // 2], "not utf-8": b"\xff\xfe{}", "a list": b"[]"}[damage]
        )
    with pytest.raises(CorruptError, match=name):
        load(builder.path)


def test_every_corrupt_run_is_named_at_once(tmp_path: Path) -> None:
    builder = build_typical(tmp_path / "c", repetitions=2)
    for file in sorted(builder.path.rglob(SUMMARY))[:3]:
        file.write_text("{")
    with pytest.raises(CorruptError) as caught:
        load(builder.path)
    assert caught.value.message.count(SUMMARY) == 3
    assert caught.value.hint


def _cut(file: Path) -> None:
    """Half of a table, cut at the end of a line: what is left still reads as one."""
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[: len(lines) // 2]))


def test_many_corrupt_runs_are_counted_not_listed(tmp_path: Path) -> None:
    builder = build_typical(tmp_path / "c", repetitions=2)
    for file in builder.path.rglob(RUN):
        file.write_text("{")
    with pytest.raises(CorruptError, match="and 14 more"):
        load(builder.path)


@pytest.mark.parametrize(
    "edit",
    [
        lambda stored: stored["metrics"].update(latency_mean_ms={"value": "fast"}),
        lambda stored: stored.update(metrics=[]),
        lambda stored: stored.update(labels=None),
        lambda stored: stored.update(windows=[1]),
        lambda stored: stored.update(schema_version=99),
    ],
)
def test_a_summary_of_the_wrong_shape_is_corrupt(tmp_path: Path, edit: object) -> None:
    builder = CampaignBuilder(tmp_path / "c", [INFER], repetitions=1)
    file = builder.run(INFER, 1, {"latency_mean_ms": 5.0}).file(SUMMARY)
    stored = json.loads(file.read_text())
    edit(stored)  # type: ignore[operator]
    file.write_text(json.dumps(stored))
    finish_again(file.parent)
    with pytest.raises(CorruptError):
        load(builder.path)


@pytest.mark.parametrize(
    "damage", [{"outcome": None}, {"outcome": "fine"}, {"outcome": ["ok"]}, {"cautions": 5}, {"cautions": [5]}]
)
def test_a_run_record_of_the_wrong_shape_is_corrupt(tmp_path: Path, damage: dict[str, object]) -> None:
    builder = CampaignBuilder(tmp_path / "c", [INFER], repetitions=1)
    file = builder.run(INFER, 1, {"latency_mean_ms": 5.0}).file(RUN)
    file.write_text(json.dumps(json.loads(file.read_text()) | damage))
    finish_again(file.parent)
    with pytest.raises(CorruptError, match=r"outcome|cautions"):
        load(builder.path)


def test_a_run_moved_into_another_block_is_corrupt(tmp_path: Path) -> None:
    builder = CampaignBuilder(tmp_path / "c", [INFER], repetitions=2)
    folder = builder.run(INFER, 1, {"latency_mean_ms": 5.0}).path.parent
    shutil.copytree(folder, folder.with_name("block-002"))
    with pytest.raises(CorruptError, match="block 1"):
        load(builder.path)


@pytest.mark.parametrize("hash_all", [False, True])
def test_a_copy_of_a_run_is_no_later_attempt_at_it(tmp_path: Path, hash_all: bool) -> None:
    builder = CampaignBuilder(tmp_path / "c", [INFER], repetitions=1)
    folder = builder.run(INFER, 1, {"latency_mean_ms": 5.0}).path
    shutil.copytree(folder, folder.with_name("attempt-07"))
    with pytest.raises(CorruptError, match=r"attempt-07: run\.json is of .*, block 1, attempt 1"):
        load(builder.path, hash_all=hash_all)


@pytest.mark.parametrize(
    "text",
    [
        "image_id,label\na,1\n",
        "image_id,label,top1,top5_hit\na,one,1,true\n",
        "image_id,label,top1,top5_hit\na,1,1,true\na,1,1,true\n",
        "image_id,label,top1,top5_hit\na,1,,true\n",
        "image_id,label,top1,top5_hit\na,1,1,perhaps\n",
        "",
    ],
)
def test_malformed_predictions_are_corrupt(tmp_path: Path, text: str) -> None:
    case = INFER.with_factors(workload="accuracy")
    builder = CampaignBuilder(tmp_path / "c", [case], repetitions=1)
    builder.run(case, 1, {"top1_percent": 90.0}, predictions=text)
    with pytest.raises(CorruptError, match=PREDICTIONS):
        load(builder.path)


def test_scores_of_other_units_are_read_with_their_groups(tmp_path: Path) -> None:
    case = INFER.with_factors(workload="accuracy", model="unet3d")
    builder = CampaignBuilder(tmp_path / "c", [case], repetitions=1)
    text = "unit_id,group,dice_percent,dice_inner_percent\nv-0,a,80.5,nan\nv-1,a,90.5,88.0\n"
    builder.run(case, 1, {"dice_percent": 85.5}, predictions=text)
    read = load(builder.path).predictions
    assert read.select("unit_id", "group", "dice_percent", "top1").rows() == [
        ("v-0", "a", 80.5, None),
        ("v-1", "a", 90.5, None),
    ]


def test_scores_that_are_no_numbers_are_missing(tmp_path: Path) -> None:
    case = INFER.with_factors(workload="accuracy", model="c2p")
    builder = CampaignBuilder(tmp_path / "c", [case], repetitions=1)
    lost = Quantity(samples=3, reasons=(Reason(ReasonCode.NOT_FINITE, "2 of 3 states"),))
    text = csv_text({"unit_id": np.array(["a", "b", "c"]), "absolute_error": np.array([0.5, np.nan, np.inf])})
    builder.run(
        case, 1, {"l1_error": lost}, valid={"accuracy": Validity(False, reasons_of("not_finite"))}, predictions=text
    )
    dataset = load(builder.path)
    assert dataset.predictions["absolute_error"].to_list() == [0.5, None, np.inf]
    assert analyse(dataset).cases[0].metrics["l1_error"].estimate is None


@pytest.mark.parametrize("damage", [lambda file: file.write_bytes(b"\x00\xff"), lambda file: file.unlink(), _cut])
def test_iterations_that_are_missing_or_cut_are_corrupt(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    builder = CampaignBuilder(tmp_path / "c", [INFER], repetitions=1)
    run = builder.run(INFER, 1, {"latency_mean_ms": 5.0})
    damage(run.file(ITERATIONS))
    unguard(run.path)
    with pytest.raises(CorruptError, match=ITERATIONS):
        load(builder.path)


@pytest.mark.parametrize("damage", [lambda file: file.unlink(), _cut])
def test_predictions_that_are_missing_or_cut_are_corrupt(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    case = INFER.with_factors(workload="accuracy")
    builder = CampaignBuilder(tmp_path / "c", [case], repetitions=1)
    top1 = Quantity(value=90.0, samples=IMAGES)
    run = builder.run(case, 1, {"top1_percent": top1}, predictions=predictions_csv("fp32"))
    damage(run.file(PREDICTIONS))
    unguard(run.path)
    with pytest.raises(CorruptError, match=PREDICTIONS):
        load(builder.path)


def test_predictions_that_repeat_are_read_once_and_counted(tmp_path: Path) -> None:
    case = INFER.with_factors(workload="accuracy")
    builder = CampaignBuilder(tmp_path / "c", [case], repetitions=3)
    for block in (1, 2, 3):
        text = predictions_csv("int8" if block == 3 else "fp32").replace("true", "1" if block < 3 else "true")
        builder.run(case, block, {"top1_percent": 90.0}, predictions=text)
    dataset = load(builder.path)
    assert dataset.predictions["block"].unique().sort().to_list() == [1, 3]
    assert sorted(dataset.prediction_runs[case.id].values()) == [(1, 2), (3,)]
    assert dataset.predictions["top5_hit"].all()


def test_cautions_reasons_and_environments_are_kept(tmp_path: Path) -> None:
    builder = CampaignBuilder(tmp_path / "c", [INFER], repetitions=2)
    caution = Caution(CautionCode.OUTLIERS, "3 of 100", "latency_mean_ms")
    invalid = {"timing": Validity(False, reasons_of("not_steady"))}
    builder.run(INFER, 1, {"latency_mean_ms": 5.0}, cautions=[caution], valid=invalid)
    builder.run(INFER, 2, {"latency_mean_ms": 5.0}, environment={"schema_version": 1, "host": {"name": "other"}})
    dataset = load(builder.path)
    assert dataset.cautions.select("block", "code", "detail").rows() == [(1, "outliers", "3 of 100")]
    assert dataset.runs["reasons_timing"].to_list() == [["not_steady"], []]
    assert dict(dataset.environments["host.name"]) == {"bench-1": 1, "other": 1}
    assert dataset.environments["schema_version"].total() == 2


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir(), lambda path: path.write_text("x")])
def test_what_is_no_campaign_is_a_usage_error(tmp_path: Path, make: object) -> None:
    path = tmp_path / "nothing"
    make(path)  # type: ignore[operator]
    with pytest.raises(UsageError) as caught:
        load(path)
    assert caught.value.hint


def test_a_truncated_resolved_plan_is_corrupt(tmp_path: Path) -> None:
    builder = CampaignBuilder(tmp_path / "c", [INFER], repetitions=1)
    plan = builder.campaign.plan_resolved
    plan.write_bytes(plan.read_bytes()[:-20])
    with pytest.raises(CorruptError, match=r"plan\.resolved\.json"):
        load(builder.path)


@pytest.mark.slow
@pytest.mark.timeout(100)
def test_a_thousand_runs_are_read_and_analysed_in_seconds(tmp_path: Path) -> None:
    """The size of the larger paper's campaign: 1,018 runs. Measured: 0.4 s and 1 s; the bound leaves room for a busy
    machine."""
    from pybench.analysis import analyse

    builder = build_typical(tmp_path / "c", repetitions=85)
    dataset = load(builder.path)
    analyse(dataset)
    assert dataset.runs.height == 1020
    assert len(list(builder.path.rglob(COMPLETE))) == 1020
    assert dataset.frame.filter(pl.col("metric") == "latency_mean_ms")["value"].null_count() == 0
