# SPDX-License-Identifier: Apache-2.0
"""Two campaigns compared: regressions found, noise not, what cannot be joined listed."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pybench.analysis.findings.changes import PERCENT, Change
from pybench.analysis.findings.comparison import Comparison, compare
from pybench.case import Case
from pybench.catalogue.cautions import Caution, CautionCode
from pybench.dataset import load
from pybench.report.comparison_tables import comparison_markdown, comparison_sentences, comparison_tables
from pybench.report.numbers import factor_above_one
from tests.support.campaigns import IMAGES, CampaignBuilder, build_typical, predictions_csv

_JUDGED = (Change.WORSE, Change.BETTER, Change.SAME, Change.UNCLEAR)
INFER = Case(workload="infer", model="digits-cnn", runtime="onnxruntime")
RELABELLED = 60  # images of one side, in the test of labels


def _compare(folder: Path, slowdown: float, repetitions: int = 6, metrics: Sequence[str] | None = None) -> Comparison:
    before = build_typical(folder / "a", repetitions=repetitions, seed=1)
    after = build_typical(folder / "b", repetitions=repetitions, seed=2, slowdown=slowdown)
    return compare(load(before.path), load(after.path), metrics=metrics)


def _campaign(folder: Path, cases: Mapping[Case, Mapping[str, Sequence[float]]]) -> Path:
    """Metric -> values of the blocks, for each case."""
    blocks = max(len(values) for metrics in cases.values() for values in metrics.values())
    builder = CampaignBuilder(folder, list(cases), repetitions=blocks)
    for block in range(blocks):
        for case, metrics in cases.items():
            builder.run(case, block + 1, {name: values[block] for name, values in metrics.items()})
    return builder.path


def _latencies(cases: int, ratio: float, spread: float) -> dict[Case, dict[str, list[float]]]:
    """Cases of batch 1, 2, ... whose median latencies are all alike: four blocks around `ratio`."""
    values = [ratio * math.exp(spread * step) for step in (-1, 1, -1, 1)]
    return {INFER.with_factors(batch=number): {"latency_p50_ms": values} for number in range(1, cases + 1)}


def test_a_campaign_repeated_shows_no_regression(tmp_path: Path) -> None:
    assert _compare(tmp_path, 1.0).regressions == ()


def test_a_slowdown_is_found_in_latency_and_throughput_alike(tmp_path: Path) -> None:
    names = ["latency_mean_ms", "throughput_samples_per_s", "throughput_tokens_per_s"]
    found = _compare(tmp_path, 1.3, metrics=names)
    assert {change.metric.name for change in found.regressions} == set(names)
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
    assert counts[Change.NOT_JUDGED] > counts[Change.WORSE] > 0
    judged = [f"{counts[change]} {change.value}" for change in (*_JUDGED, Change.NOT_JUDGED, Change.NOT_COMPARED)]
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
    sides = [load(builder.path) for builder in builders]
    slower, fewer = (compare(*sides, metrics=[name]) for name in ("latency_mean_ms", "throughput_samples_per_s"))
    lower, upper = slower.changes[0].estimate, fewer.changes[0].estimate
    assert lower is not None
    assert lower.lower is not None
    assert slower.found_from == pytest.approx([1.05 * lower.value / lower.lower])
    assert upper is not None
    assert upper.upper is not None
    assert fewer.found_from == pytest.approx([1.05 * upper.upper / upper.value])
    both = compare(*sides, metrics=["latency_mean_ms", "throughput_samples_per_s"])
    assert min(both.found_from) > max(*slower.found_from, *fewer.found_from)  # the correction asks for more


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


def _scored(folder: Path, case: Case, metric: str, tables: Sequence[str], tolerance_pp: float = 1.0) -> Comparison:
    """Two campaigns of one run, whose predictions are `tables`."""
    sides = []
    for name, table in zip("ab", tables, strict=True):
        builder = CampaignBuilder(folder / name, [case], repetitions=1)
        builder.run(case, 1, {metric: 90.0}, predictions=table)
        sides.append(load(builder.path))
    return compare(*sides, metrics=[metric], tolerance_pp=tolerance_pp)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("wrong", "tolerance_pp", "verdict"),
    [
        (0, 2.0, Change.UNCLEAR),
        (0, PERCENT * RELABELLED / IMAGES, Change.UNCLEAR),
        (0, 20.0, Change.SAME),
        (60, 1.0, Change.UNCLEAR),
        (200, 1.0, Change.WORSE),
    ],
)
def test_images_that_are_not_compared_count_as_if_all_had_changed(
    tmp_path: Path, wrong: int, tolerance_pp: float, verdict: Change, turned: bool
) -> None:
    """Those with other labels tell no change; they take a verdict away only where they could undo it."""
    header, *before = predictions_csv("fp32").splitlines()
    after = [re.sub(r",(\d),", r",1\1,", line, count=1) for line in before[:RELABELLED]]
    after += [re.sub(r",\d,true", ",99,true", line) for line in before[RELABELLED:][:wrong]]
    after += before[len(after) :]
    tables = ["\n".join([header, *rows]) + "\n" for rows in (before, after)]
    case = INFER.with_factors(workload="accuracy")
    sides = tables[::-1] if turned else tables
    (change,) = _scored(tmp_path, case, "top1_percent", sides, tolerance_pp=tolerance_pp).changes
    assert change.change is (Change.BETTER if turned and verdict is Change.WORSE else verdict)
    could = "; they could change the verdict" if verdict is Change.UNCLEAR else ""
    assert change.why == f"{RELABELLED} images left out: on one side only, or with different labels{could}"


@pytest.mark.parametrize(("times", "verdict"), [(1.0, Change.UNCLEAR), (0.5, Change.UNCLEAR), (2.0, Change.WORSE)])
def test_only_a_worse_perplexity_is_one_whatever_a_missing_unit_would_say(
    tmp_path: Path, times: float, verdict: Change
) -> None:
    """A unit can have any perplexity, so it could hide a regression; it must not let one pass."""
    nats = [2 + 0.01 * math.sin(unit) for unit in range(50)]
    sides = (nats, [one + math.log(times) for one in nats[:-1]])
    tables = ["\n".join(["unit_id,nats", *(f"w-{at},{one}" for at, one in enumerate(side))]) + "\n" for side in sides]
    case = Case(workload="accuracy", model="tinylm-small", runtime="torch")
    (change,) = _scored(tmp_path, case, "perplexity", tables).changes
    assert change.change is verdict
    assert change.why is not None
    assert " left out: on one side only, or with different labels" in change.why


def test_two_blocks_and_many_tests_overflow_nothing(tmp_path: Path) -> None:
    """With one quiet side there is one degree of freedom, and Bonferroni's bound is beyond any float."""
    cases = [INFER.with_factors(batch=number) for number in range(1, 301)]
    sides = [
        load(_campaign(tmp_path / name, {case: {"latency_p50_ms": values} for case in cases}))
        for name, values in (("a", [1.00, 1.01]), ("b", [1.0, 1.6]))
    ]
    found = compare(*sides)
    assert found.found_from == [math.inf] * len(cases)
    assert found.as_json()["worse_is_found_from_ratio"] == {"least": None, "median": None}
    assert comparison_sentences(found)


def test_a_larger_file_is_a_regression_after_one_repetition(tmp_path: Path) -> None:
    sides = []
    for name, size in (("a", 100.0), ("b", 120.0)):
        builder = CampaignBuilder(tmp_path / name, [INFER], repetitions=1)
        builder.run(INFER, 1, {"model_bytes": size, "latency_mean_ms": size})
        sides.append(load(builder.path))
    compared = compare(*sides, metrics=["model_bytes", "latency_mean_ms"])
    changes = {change.metric.name: change.change for change in compared.changes}
    assert changes == {"model_bytes": Change.WORSE, "latency_mean_ms": Change.UNCLEAR}
    assert compared.tests == 0  # a counted size is no test, and one repetition gives none


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


# --- what is judged --------------------------------------------------------------------------------------------------


def test_context_is_shown_and_not_judged_unless_it_is_named(tmp_path: Path) -> None:
    sides = [
        load(_campaign(tmp_path / name, {INFER: {"latency_p50_ms": [1.0, 1.01, 0.99], "compile_s": compiled}}))
        for name, compiled in (("a", [1.0, 1.01, 0.99]), ("b", [3.0, 3.03, 2.97]))
    ]
    found = compare(*sides)
    changes = {change.metric.name: change for change in found.changes}
    assert found.regressions == ()
    assert changes["latency_p50_ms"].change is Change.SAME
    assert changes["compile_s"].change is Change.NOT_JUDGED
    assert changes["compile_s"].estimate is not None
    assert changes["compile_s"].estimate.value == pytest.approx(3.0)
    assert [change.metric.name for change in compare(*sides, metrics=["compile_s"]).regressions] == ["compile_s"]
    judged, context = (
        next(table for table in comparison_tables(found) if table.name == name) for name in ("changes", "context")
    )
    assert [row[1].text for row in judged.rows] == ["p50 latency"]
    assert [row[1].text for row in context.rows] == ["Compile time"]
    assert any("`--metric NAME` judges a metric" in sentence for sentence in comparison_sentences(found))
    stored = {change["metric"]: change for change in found.as_json()["changes"]}
    assert [stored[name]["judged"] for name in ("latency_p50_ms", "compile_s")] == [True, False]


def test_a_slower_case_among_many_has_to_be_slower_than_chance_among_as_many(tmp_path: Path) -> None:
    """Its interval alone is beyond the tolerance; among ten cases one such interval is no surprise."""
    one = [load(_campaign(tmp_path / name, _latencies(1, ratio, 0.04))) for name, ratio in (("a", 1.0), ("b", 1.17))]
    alone = compare(*one).changes[0]
    assert alone.change is Change.WORSE
    assert alone.p_value is not None
    assert alone.p_adjusted == alone.p_value < 0.05
    before, after = (_latencies(10, 1.0, 0.04) for _ in "ab")
    after |= _latencies(1, 1.17, 0.04)
    found = compare(*(load(_campaign(tmp_path / name, cases)) for name, cases in (("c", before), ("d", after))))
    slower = found.changes[0]
    assert slower.change is Change.UNCLEAR
    assert slower.why == "not beyond the tolerance after correction for 10 tests"
    assert (slower.estimate, slower.p_value) == (alone.estimate, alone.p_value)
    assert slower.p_adjusted == pytest.approx(10 * alone.p_value)
    assert found.as_json()["tests"] == found.tests == 10


@pytest.mark.parametrize("ratio", [0.8, 1.0, 1.06, 1.12, 1.3])
def test_p_is_below_five_percent_where_the_interval_is_beyond_the_tolerance(tmp_path: Path, ratio: float) -> None:
    rng = np.random.default_rng(3)
    sides = [
        load(_campaign(tmp_path / name, {INFER: {"latency_p50_ms": list(centre * np.exp(rng.normal(0, 0.03, 6)))}}))
        for name, centre in (("a", 1.0), ("b", ratio))
    ]
    change = compare(*sides).changes[0]
    assert change.estimate is not None
    assert change.estimate.lower is not None
    assert change.estimate.upper is not None
    assert change.p_value is not None
    assert (change.p_value < 0.05) == (change.estimate.lower > 1.05 or change.estimate.upper < 1 / 1.05)


def test_an_accuracy_that_fell_has_a_p_value_that_agrees_with_its_interval(tmp_path: Path) -> None:
    case = INFER.with_factors(workload="accuracy")
    sides = []
    for name, precision in (("a", "fp32"), ("b", "int8")):
        builder = CampaignBuilder(tmp_path / name, [case], repetitions=1)
        builder.run(case, 1, {"top1_percent": 90.0}, predictions=predictions_csv(precision))
        sides.append(load(builder.path))
    for tolerance_pp in (0.0, 0.5, 1.0, 3.0):
        change = compare(*sides, tolerance_pp=tolerance_pp).changes[0]
        assert change.estimate is not None
        assert change.estimate.upper is not None
        assert change.p_value is not None
        assert (change.p_value < 0.05) == (change.estimate.upper < -tolerance_pp)


def test_a_case_whose_runs_failed_in_b_is_told(tmp_path: Path) -> None:
    both = _latencies(2, 1.0, 0.01)
    before = load(_campaign(tmp_path / "a", both))
    builder = CampaignBuilder(tmp_path / "b", list(both), repetitions=4)
    kept, failed = both
    for block, value in enumerate(both[kept]["latency_p50_ms"], start=1):
        builder.run(kept, block, {"latency_p50_ms": value})
        builder.run(failed, block, outcome="oom", reason="host_memory")
    told = comparison_sentences(compare(before, load(builder.path)))
    said = "Only A has 1 value that would be judged, such as latency_p50_ms of "
    assert any(sentence.startswith(said) for sentence in told)
    assert not any("Only A has" in sentence for sentence in comparison_sentences(compare(before, before)))


# --- what no interval contains ---------------------------------------------------------------------------------------


def test_all_ratios_that_got_worse_together_look_like_a_slower_machine(tmp_path: Path) -> None:
    before, after = _latencies(4, 1.0, 0.01), _latencies(4, 1.3, 0.01)
    sides = [load(_campaign(tmp_path / name, cases)) for name, cases in (("a", before), ("b", after))]
    found = compare(*sides)
    assert len(found.regressions) == 4
    assert "as on a slower machine: run A's plan again" in comparison_sentences(found)[-1]
    after[INFER.with_factors(batch=4)] = {"latency_p50_ms": [0.99, 0.98, 0.99, 0.98]}
    some = compare(sides[0], load(_campaign(tmp_path / "c", after)))
    assert len(some.regressions) == 3
    assert some.shift is None
    assert "slower machine" not in " ".join(comparison_sentences(some))


def test_the_time_between_two_campaigns_is_told_unless_they_ran_in_turns(tmp_path: Path) -> None:
    sides = [load(_campaign(tmp_path / name, _latencies(2, ratio, 0.01))) for name, ratio in (("a", 1.0), ("b", 1.001))]
    assert compare(*sides).apart_s == 0  # both began at one time
    assert " apart: " not in " ".join(comparison_sentences(compare(*sides)))
    later = sides[1].runs.with_columns(
        sides[1].runs[name].str.replace("2026-01-01T12", "2026-01-01T15") for name in ("started_utc", "finished_utc")
    )
    found = compare(sides[0], replace(sides[1], runs=later))
    assert found.apart_s == pytest.approx(3 * 3600 - 80)  # eight runs of ten seconds
    assert found.as_json()["seconds_apart"] == found.apart_s
    told = "The two campaigns ran 3.0 h apart: what changed of the machine between them is in no interval."
    assert told in comparison_sentences(found)


def test_runs_that_others_disturbed_are_told_of_both_sides(tmp_path: Path) -> None:
    builders = [CampaignBuilder(tmp_path / name, [INFER], repetitions=3) for name in ("a", "b")]
    doubts = [Caution(code, "as seen") for code in (CautionCode.BUSY_MACHINE, CautionCode.OUTLIERS)]
    for builder, disturbed in zip(builders, (0, 2), strict=True):
        for block in (1, 2, 3):
            value = {"latency_p50_ms": 1.0 + (block + disturbed) / 1000}
            builder.run(INFER, block, value, cautions=doubts if block <= disturbed else [])
    found = compare(*(load(builder.path) for builder in builders))
    told = (
        "Busy machine (other processes used the CPUs while this run was measured): 0 of 3 runs of A, 2 of 3 runs of B."
    )
    assert told in comparison_sentences(found)
    assert not any("outliers" in sentence.lower() for sentence in comparison_sentences(found))
    assert found.as_json()["disturbed_runs"] == {"busy_machine": {"before": 0, "after": 2}}


def test_context_is_folded_in_markdown(tmp_path: Path) -> None:
    text = comparison_markdown(_compare(tmp_path, 1.3))
    folded = text.partition("<details><summary>Context that is not judged</summary>")[2].partition("</details>")[0]
    assert "Mean latency" in folded
    assert "Changes from A to B" not in folded


def test_markdown_has_the_sentences_and_every_table(tmp_path: Path) -> None:
    found = _compare(tmp_path, 1.3)
    text = comparison_markdown(found)
    assert text.startswith(f"- {comparison_sentences(found)[0]}\n")
    for table in comparison_tables(found):
        assert (f"**{table.title}**" in text) == bool(table.rows)
