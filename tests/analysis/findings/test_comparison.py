# SPDX-License-Identifier: Apache-2.0
"""Two campaigns compared: regressions found, noise not, what cannot be joined listed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pybench.analysis.findings.comparison import Change, Comparison, compare
from pybench.case import Case
from pybench.dataset import load
from pybench.report.comparison_tables import comparison_sentences
from pybench.report.numbers import factor_above_one
from tests.support.campaigns import CampaignBuilder, build_typical, predictions_csv

_JUDGED = (Change.WORSE, Change.BETTER, Change.SAME, Change.UNCLEAR)
INFER = Case(workload="infer", model="digits-cnn", runtime="onnxruntime")


def _compare(folder: Path, slowdown: float, repetitions: int = 6) -> Comparison:
    before = build_typical(folder / "a", repetitions=repetitions, seed=1)
    after = build_typical(folder / "b", repetitions=repetitions, seed=2, slowdown=slowdown)
    return compare(load(before.path), load(after.path))


def test_a_campaign_repeated_shows_no_regression(tmp_path: Path) -> None:
    assert _compare(tmp_path, 1.0).regressions == ()


def test_a_slowdown_is_found_in_latency_and_throughput_alike(tmp_path: Path) -> None:
    found = _compare(tmp_path, 1.3)
    names = {change.metric.name for change in found.regressions}
    assert {"latency_mean_ms", "throughput_samples_per_s", "throughput_tokens_per_s"} <= names
    change = next(change for change in found.changes if change.metric.name == "latency_mean_ms" and change.estimate)
    assert change.estimate is not None
    assert change.estimate.lower is not None
    assert change.estimate.upper is not None
    assert change.estimate.lower <= 1.3 <= change.estimate.upper


def test_an_improvement_is_better_and_no_regression(tmp_path: Path) -> None:
    found = _compare(tmp_path, 0.7)
    assert found.regressions == ()
    assert Change.BETTER in {change.change for change in found.changes}


def test_a_campaign_against_itself_is_the_same(tmp_path: Path) -> None:
    dataset = load(build_typical(tmp_path / "a", repetitions=3).path)
    changes = compare(dataset, dataset).changes
    assert {change.estimate.value for change in changes if change.estimate and change.metric.scale == "ratio"} == {1.0}
    assert Change.WORSE not in {change.change for change in changes}


def test_the_answer_counts_verdicts_and_says_what_could_have_been_found(tmp_path: Path) -> None:
    found = _compare(tmp_path, 1.3)
    counts = found.counts
    assert counts[Change.WORSE] == len(found.regressions)
    assert sum(counts.values()) == len(found.changes)
    told = comparison_sentences(found)
    judged = [f"{counts[change]} {change.value}" for change in (*_JUDGED, Change.NOT_COMPARED)]
    assert told[0] == f"From A to B: {', '.join(judged)}."
    assert any(one.startswith("Unclear does not mean the same: ") for one in told) == (counts[Change.UNCLEAR] > 0)
    least = found.found_from[0]
    assert 1.05 < least < 1.3
    assert f"about a factor of {factor_above_one(least)};" in " ".join(told)
    assert "byte for byte" not in " ".join(told)
    stored = json.loads(json.dumps(found.as_json()))
    assert stored["counts"] == {change.value: count for change, count in counts.items()}
    assert stored["worse_is_found_from_ratio"]["least"] == least
    assert stored["runs_shared"] == 0


def test_what_is_found_from_is_the_tolerance_widened_by_the_interval(tmp_path: Path) -> None:
    builders = [CampaignBuilder(tmp_path / name, [INFER], repetitions=4) for name in "ab"]
    for builder, times in zip(builders, ([1.0, 1.1, 0.9, 1.0], [1.2, 1.1, 1.0, 1.1]), strict=True):
        for block, value in enumerate(times, start=1):
            builder.run(INFER, block, {"latency_mean_ms": value, "throughput_samples_per_s": 1000 / value})
    found = compare(*(load(builder.path) for builder in builders))
    slower, fewer = (change.estimate for change in found.changes)
    assert slower is not None
    assert fewer is not None
    assert slower.lower is not None
    assert fewer.upper is not None
    widths = [slower.value / slower.lower, fewer.upper / fewer.value]
    assert found.found_from == pytest.approx(sorted(1.05 * width for width in widths))


def test_a_campaign_compared_with_its_copy_is_noticed(tmp_path: Path) -> None:
    dataset = load(build_typical(tmp_path / "a", repetitions=2).path)
    shutil.copytree(tmp_path / "a", tmp_path / "copy")
    found = compare(dataset, load(tmp_path / "copy"))
    assert found.runs_shared == found.runs_after == int((dataset.runs["outcome"] == "ok").sum())
    told = comparison_sentences(found)[-1]
    assert told.startswith(f"{found.runs_after} of {found.runs_after} runs of B are runs of A, byte for byte")
    assert found.as_json()["runs_shared"] == found.runs_after


def test_accuracy_is_compared_image_by_image(tmp_path: Path) -> None:
    case = INFER.with_factors(workload="accuracy")
    sides = []
    for name, lost in (("a", 0), ("b", 60)):
        builder = CampaignBuilder(tmp_path / name, [case], repetitions=1)
        lines = predictions_csv("fp32").splitlines()
        text = "\n".join(
            line.replace(",0,0,", ",0,9,") if index <= 10 * lost else line for index, line in enumerate(lines)
        )
        builder.run(case, 1, {"top1_percent": 90.0}, predictions=text + "\n")
        sides.append(load(builder.path))
    found = compare(*sides, metrics=["top1_percent"], tolerance_pp=1.0)
    change = found.changes[0]
    assert change.change is Change.WORSE
    assert change.estimate is not None
    assert change.estimate.method == "Tango score"
    assert compare(*sides, metrics=["top1_percent"], tolerance_pp=50.0).changes[0].change is Change.SAME


def test_a_larger_file_is_a_regression_after_one_repetition(tmp_path: Path) -> None:
    sides = []
    for name, size in (("a", 100.0), ("b", 120.0)):
        builder = CampaignBuilder(tmp_path / name, [INFER], repetitions=1)
        builder.run(INFER, 1, {"model_bytes": size, "latency_mean_ms": size})
        sides.append(load(builder.path))
    changes = {change.metric.name: change.change for change in compare(*sides).changes}
    assert changes == {"model_bytes": Change.WORSE, "latency_mean_ms": Change.UNCLEAR}


@pytest.mark.parametrize("value", [0.0, None])
def test_what_cannot_be_compared_says_why(tmp_path: Path, value: float | None) -> None:
    sides = []
    for name, metrics in (("a", {"latency_mean_ms": 1.0}), ("b", {} if value is None else {"latency_mean_ms": value})):
        builder = CampaignBuilder(tmp_path / name, [INFER], repetitions=1)
        builder.run(INFER, 1, metrics)
        sides.append(load(builder.path))
    change = compare(*sides).changes[0]
    assert change.change is Change.NOT_COMPARED
    assert change.why


def test_cases_of_one_side_are_listed(tmp_path: Path) -> None:
    other = INFER.with_factors(batch=8)
    sides = [
        load(CampaignBuilder(tmp_path / name, [case], repetitions=1).path)
        for name, case in (("a", INFER), ("b", other))
    ]
    found = compare(*sides)
    assert (found.only_before, found.only_after, found.changes) == ((INFER,), (other,), ())
    json.dumps(found.as_json(), allow_nan=False)


def test_the_ratio_is_that_of_the_means_beside_it(tmp_path: Path) -> None:
    sides = []
    for name, values in (("a", (1.0, 4.0, 16.0)), ("b", (2.0, 2.5, 50.0))):
        builder = CampaignBuilder(tmp_path / name, [INFER], repetitions=3)
        for block, value in enumerate(values, start=1):
            builder.run(INFER, block, {"latency_mean_ms": value})
        sides.append(load(builder.path))
    change = compare(*sides).changes[0]
    assert change.before == pytest.approx(4.0)
    assert change.after is not None
    assert change.estimate is not None
    assert change.estimate.value == pytest.approx(change.after / 4.0)
