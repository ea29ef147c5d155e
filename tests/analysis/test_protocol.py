# SPDX-License-Identifier: Apache-2.0
"""A named protocol on whole campaigns: every pair by scipy itself, verdicts that are known, and what changes them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from pybench.analysis import Analysis, analyse
from pybench.analysis.protocol import ProtocolFinding
from pybench.analysis.trade_offs import Standing, TradeOff
from pybench.analysis.verdicts import Verdict as OwnVerdict
from pybench.case import Case
from pybench.dataset import Dataset, load
from pybench.errors import CorruptError
from tests.campaigns import CampaignBuilder, build_typical
from tests.precision_campaign import BATCHES, INFER, PRECISIONS, REPETITIONS, build_precisions

WELCH_MW = "welch-mann-whitney"


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return load(build_precisions(tmp_path_factory.mktemp("precisions") / "c"))


@pytest.fixture(scope="module")
def analysis(dataset: Dataset) -> Analysis:
    return analyse(dataset)


@pytest.fixture(scope="module")
def finding(analysis: Analysis) -> ProtocolFinding:
    (found,) = analysis.protocols
    return found


def values_of(dataset: Dataset, case: Case, metric: str) -> np.ndarray:
    frame = dataset.frame.filter((dataset.frame["case_id"] == case.id) & (dataset.frame["metric"] == metric))
    return frame.sort("block")["value"].to_numpy()


# --- the papers' campaign --------------------------------------------------------------------------------------------


def test_four_precisions_make_six_pairs_per_batch_and_metric(finding: ProtocolFinding) -> None:
    assert [tuple(case.precision for case in setting.cases) for setting in finding.settings] == [PRECISIONS] * 3
    assert [setting.cases[0].batch for setting in finding.settings] == list(BATCHES)
    for setting in finding.settings:
        assert len(setting.scenarios) == 3
        for scenario in setting.scenarios:
            assert [(duel.second, duel.first) for duel in scenario.duels] == list(
                itertools.combinations(setting.cases, 2)
            )


def test_every_pair_is_what_scipy_says(dataset: Dataset, finding: ProtocolFinding) -> None:
    chosen = set()
    for setting in finding.settings:
        for scenario in setting.scenarios:
            for duel in scenario.duels:
                if duel.test is None:
                    continue
                first, second = (values_of(dataset, case, scenario.metric) for case in (duel.first, duel.second))
                normal = all(stats.shapiro(side).pvalue >= 0.05 for side in (first, second))
                judge = stats.ttest_ind(first, second, equal_var=False) if normal else stats.mannwhitneyu(first, second)
                assert duel.test.p_value == pytest.approx(judge.pvalue, rel=1e-9)
                assert duel.test.test == ("Welch t" if normal else "Mann-Whitney U")
                chosen.add(duel.test.test)
    assert chosen == {"Welch t", "Mann-Whitney U"}


def test_holm_covers_every_pair_of_the_campaign(finding: ProtocolFinding) -> None:
    tested = [duel for duel in finding.duels if duel.test is not None and duel.test.p_value is not None]
    assert len(tested) == 3 * 3 * 6 - 3  # the energy of one case is invalid
    judge = multipletests([duel.test.p_value for duel in tested if duel.test], method="holm")[1]
    assert [duel.p_adjusted for duel in tested] == pytest.approx(list(judge))


def test_means_have_students_interval(dataset: Dataset, finding: ProtocolFinding) -> None:
    sample = finding.settings[2].scenarios[0].samples[3]
    values = values_of(dataset, sample.case, "latency_mean_ms")
    assert sample.estimate is not None
    assert (sample.estimate.n, sample.estimate.value) == (REPETITIONS, pytest.approx(values.mean()))
    judge = stats.t.interval(0.95, REPETITIONS - 1, values.mean(), stats.sem(values))
    assert (sample.estimate.lower, sample.estimate.upper) == pytest.approx(judge)


def test_anova_runs_in_the_one_scenario_whose_assumptions_hold(finding: ProtocolFinding) -> None:
    ran = {}
    for setting in finding.settings:
        for scenario in setting.scenarios:
            if scenario.variances is not None:
                ran[setting.cases[0].batch, scenario.metric] = scenario.variances.why_omitted
                assert all((duel.p_tukey is None) == (scenario.variances.p_value is None) for duel in scenario.duels)
    assert [key for key, why in ran.items() if why is None] == [(8, "latency_mean_ms")]
    assert "Brown-Forsythe" in str(ran[1, "latency_mean_ms"])
    assert "residuals" in str(ran[32, "latency_mean_ms"])
    assert (1, "gpu_energy_per_sample_j") not in ran  # one case has no value


def test_a_case_without_valid_values_has_its_reason_in_place_of_a_test(finding: ProtocolFinding) -> None:
    scenario = next(s for s in finding.settings[0].scenarios if s.metric == "gpu_energy_per_sample_j")
    assert scenario.samples[3].why_none == "energy: window_too_short"
    without = [duel for duel in scenario.duels if duel.first.precision == "int8+fp16"]
    assert [(duel.test, duel.p_adjusted, duel.why_none) for duel in without] == [
        (None, None, "energy: window_too_short")
    ] * 3


def test_the_paired_ratio_stands_beside_every_test(analysis: Analysis, finding: ProtocolFinding) -> None:
    own = {
        pair.pair.case.id: pair.effects["latency_mean_ms"].effect
        for pair in analysis.contrasts[0].pairs
        if pair.pair.case.workload == "infer"
    }
    for setting in finding.settings:
        for duel in setting.scenarios[0].duels:
            assert duel.paired is not None
            if duel.second.precision == "fp32":
                assert duel.paired == own[duel.first.id]


# --- advantageous or not ---------------------------------------------------------------------------------------------


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


def test_figures_are_ratios_of_arithmetic_means(dataset: Dataset, analysis: Analysis) -> None:
    row = rows_of(analysis)["int8+fp16", 32]
    latency, base = (values_of(dataset, case, "latency_mean_ms").mean() for case in (row.case, row.baseline))
    energy, base_energy = (
        values_of(dataset, case, "gpu_energy_per_sample_j").mean() for case in (row.case, row.baseline)
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
    assert row.standing is Standing.ADVANTAGEOUS
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
        (1.16, 0.9, None, Standing.ADVANTAGEOUS),
        (1.16, 1.0, None, Standing.ADVANTAGEOUS),  # the bound itself is kept
        (1.14, 0.0, None, Standing.NOT_ADVANTAGEOUS),
        (1.16, 1.1, None, Standing.NOT_ADVANTAGEOUS),
        (1.14, 0.0, {"speedup_min": 1.1}, Standing.ADVANTAGEOUS),
        (1.16, 0.0, {"speedup_min": 1.2}, Standing.NOT_ADVANTAGEOUS),
        (1.16, 1.1, {"top1_delta_pp_min": -2.0}, Standing.ADVANTAGEOUS),
        (1.16, 0.0, {"top5_delta_pp_min": 0.5}, Standing.NOT_ADVANTAGEOUS),  # every bound of the plan counts
    ],
)
def test_each_bound_decides(
    tmp_path: Path, speedup: float, loss_pp: float, accept: Mapping[str, float] | None, expected: Standing
) -> None:
    rows = small(tmp_path / "c", {"fp32": 1.0, "fp16": 1 / speedup}, {"fp32": 80.0, "fp16": 80.0 - loss_pp}, accept)
    assert rows["fp16"].standing is expected
    assert rows["fp32"].standing is Standing.BASELINE


def test_who_set_a_bound_is_kept(tmp_path: Path) -> None:
    rows = small(tmp_path / "c", {"fp32": 1.0, "fp16": 0.5}, {"fp32": 80.0, "fp16": 80.0}, {"speedup_min": 1.3})
    bounds = {one.criterion.name: (one.criterion.threshold, one.is_own) for one in rows["fp16"].bounded}
    assert bounds == {"speedup_min": (1.3, False), "top1_delta_pp_min": (-1.0, True)}


def test_without_criteria_the_protocol_compares_with_fp32(tmp_path: Path) -> None:
    rows = small(tmp_path / "c", {"fp32": 1.0, "fp16": 0.5}, {"fp32": 80.0, "fp16": 80.0}, None, declared=False)
    assert rows["fp16"].standing is Standing.ADVANTAGEOUS
    assert rows["fp16"].own_verdict is None


def test_without_an_accuracy_fast_is_not_judged_and_slow_is_refused(tmp_path: Path) -> None:
    rows = small(tmp_path / "c", {"fp32": 1.0, "fp16": 0.5, "bf16": 1.0}, {}, None)
    assert rows["fp16"].standing is Standing.NOT_JUDGED
    assert "no accuracy case" in str(rows["fp16"].why_not_judged)
    assert rows["bf16"].standing is Standing.NOT_ADVANTAGEOUS


def test_a_baseline_keeps_its_own_top_1_where_nothing_else_has_one(tmp_path: Path) -> None:
    rows = small(tmp_path / "c", {"fp32": 1.0, "fp16": 0.5}, {"fp32": 80.0}, None)
    assert rows["fp32"].figures["top1_percent"].estimate is not None
    assert rows["fp32"].figures["top1_percent"].estimate.value == 80.0
    assert rows["fp16"].figures["top1_percent"].estimate is None
    assert rows["fp16"].standing is Standing.NOT_JUDGED


def test_of_several_accuracies_the_one_that_lost_most_decides(tmp_path: Path) -> None:
    speeds = [INFER.with_factors(precision=name) for name in ("fp32", "fp16")]
    accuracies = [one.with_factors(workload="accuracy", batch=batch) for one in speeds for batch in (1, 32)]
    builder = CampaignBuilder(tmp_path / "c", (*speeds, *accuracies), repetitions=3, protocols=[WELCH_MW])
    for block in (1, 2, 3):
        for case in speeds:
            builder.run(case, block, {"latency_mean_ms": (2.0 if case.precision == "fp32" else 1.0) + block / 100})
        for case in accuracies:
            lost = 1.5 if (case.precision, case.batch) == ("fp16", 32) else 0.0
            builder.run(case, block, {"top1_percent": 80.0 - lost})
    (found,) = analyse(load(builder.path)).protocols
    assert found.trade_offs[0][1].top1_delta_pp.estimate is not None
    assert found.trade_offs[0][1].top1_delta_pp.estimate.value == pytest.approx(-1.5)
    assert found.trade_offs[0][1].standing is Standing.NOT_ADVANTAGEOUS


@pytest.mark.parametrize(
    ("loss_at_batch_1_pp", "expected"),
    [(0.0, Standing.NOT_JUDGED), (1.5, Standing.NOT_ADVANTAGEOUS)],
)
def test_an_accuracy_that_failed_leaves_a_case_open_unless_another_breaks_the_bound(
    tmp_path: Path, loss_at_batch_1_pp: float, expected: Standing
) -> None:
    speeds = [INFER.with_factors(precision=name) for name in ("fp32", "fp16")]
    accuracies = [one.with_factors(workload="accuracy", batch=batch) for one in speeds for batch in (1, 32)]
    builder = CampaignBuilder(tmp_path / "c", (*speeds, *accuracies), repetitions=3, protocols=[WELCH_MW])
    for block in (1, 2, 3):
        for case in speeds:
            builder.run(case, block, {"latency_mean_ms": (2.0 if case.precision == "fp32" else 1.0) + block / 100})
        for case in accuracies:
            if (case.precision, case.batch) == ("fp16", 32):
                builder.run(case, block, outcome="oom", reason="out_of_memory")
            else:
                top1 = 80.0 - (loss_at_batch_1_pp if case.precision == "fp16" else 0.0)
                builder.run(case, block, {"top1_percent": top1})
    (found,) = analyse(load(builder.path)).protocols
    assert found.trade_offs[0][1].standing is expected


def test_a_baselines_top_1_is_the_one_that_the_difference_is_taken_from(tmp_path: Path) -> None:
    speeds = [INFER.with_factors(precision=name) for name in ("fp32", "fp16")]
    accuracies = [one.with_factors(workload="accuracy", batch=batch) for one in speeds for batch in (1, 32)]
    builder = CampaignBuilder(tmp_path / "c", (*speeds, *accuracies), repetitions=3, protocols=[WELCH_MW])
    top1 = {("fp32", 1): 80.0, ("fp32", 32): 79.5, ("fp16", 1): 80.0, ("fp16", 32): 79.0}
    for block in (1, 2, 3):
        for case in speeds:
            builder.run(case, block, {"latency_mean_ms": (2.0 if case.precision == "fp32" else 1.0) + block / 100})
        for case in accuracies:
            builder.run(case, block, {"top1_percent": top1[case.precision, case.batch]})
    (found,) = analyse(load(builder.path)).protocols
    baseline, half = found.trade_offs[0]
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
    assert row.standing is Standing.ADVANTAGEOUS


# --- other campaigns -------------------------------------------------------------------------------------------------


def test_no_protocol_but_the_houses_own_finds_nothing_more(tmp_path: Path) -> None:
    assert analyse(load(build_typical(tmp_path / "c", repetitions=2).path)).protocols == ()


def test_an_unknown_protocol_is_a_corrupt_campaign(tmp_path: Path) -> None:
    builder = CampaignBuilder(tmp_path / "c", [INFER], protocols=["anova-only"])
    with pytest.raises(CorruptError, match="unknown protocol 'anova-only'"):
        analyse(load(builder.path))


def test_the_second_papers_protocol_tests_all_pairs_by_ranks(tmp_path: Path) -> None:
    case = Case(workload="infer", model="tinylm-small", runtime="torch")
    cases = [case.with_factors(path=path) for path in ("none", "hf", "go_rust")]
    builder = CampaignBuilder(
        tmp_path / "c",
        cases,
        repetitions=12,
        protocols=["bootstrap-mann-whitney"],
        declared={"baseline": {"path": "none"}},
    )
    generator = np.random.default_rng(2)
    for block in range(1, 13):
        for rate, one in zip((500.0, 480.0, 470.0), cases, strict=True):
            builder.run(one, block, {"throughput_tokens_per_s": rate + generator.normal(0, 2), "latency_mean_ms": 1.0})
    dataset = load(builder.path)
    (found,) = analyse(dataset).protocols
    (scenario,) = found.settings[0].scenarios
    assert scenario.metric == "throughput_tokens_per_s"
    assert len(scenario.duels) == 3
    assert scenario.variances is None
    for duel in scenario.duels:
        sides = [values_of(dataset, one, scenario.metric) for one in (duel.first, duel.second)]
        assert duel.test is not None
        assert duel.test.p_value == pytest.approx(stats.mannwhitneyu(*sides).pvalue)
    assert all(one.estimate is not None and one.estimate.method == "BCa bootstrap" for one in scenario.samples)
    assert found.trade_offs == ((),)


def test_a_pair_of_several_contrasts_is_one_test(tmp_path: Path) -> None:
    """Both contrasts hold fp16 against bf16, the second in the other order."""
    cases = [INFER.with_factors(precision=name) for name in ("fp32", "fp16", "bf16")]
    declared = [{"baseline": {"precision": "fp32"}}, {"baseline": {"precision": "bf16"}}]
    builder = CampaignBuilder(tmp_path / "c", cases, repetitions=8, protocols=[WELCH_MW], declared=declared)
    generator = np.random.default_rng(3)
    for block in range(1, 9):
        for case, latency in zip(cases, (1.0, 1.01, 1.02), strict=True):
            builder.run(case, block, {"latency_mean_ms": latency + generator.normal(0, 0.01)})
    (found,) = analyse(load(builder.path)).protocols
    assert (len(found.duels), len(found.distinct_duels), len(found.distinct_samples)) == (6, 3, 3)
    by_pair = {frozenset((one.first, one.second)): one.test.p_value for one in found.duels if one.test}
    judge = multipletests([p for p in by_pair.values() if p is not None], method="holm")[1]
    expected = dict(zip(by_pair, judge, strict=True))
    for duel in found.duels:
        assert duel.p_adjusted == pytest.approx(expected[frozenset((duel.first, duel.second))])


def test_one_repetition_is_no_sample(tmp_path: Path) -> None:
    cases = [INFER, INFER.with_factors(precision="fp16")]
    builder = CampaignBuilder(tmp_path / "c", cases, repetitions=1, protocols=[WELCH_MW])
    for case, latency in zip(cases, (2.0, 1.0), strict=True):
        builder.run(case, 1, {"latency_mean_ms": latency})
    (found,) = analyse(load(builder.path)).protocols
    (duel,) = found.duels
    assert duel.test is not None
    assert duel.test.p_value is None
    assert not duel.is_significant
    assert duel.p_adjusted is None


@pytest.mark.parametrize(
    "change",
    [
        lambda case: case.with_factors(precision="int8+fp16", quantiser="modelopt", calibration="entropy"),
        lambda case: case.with_factors(precision="fp8+fp16", keep_fp32="/fc/.*"),
        lambda case: case.with_factors(precision="tf32"),
    ],
)
def test_precisions_of_tensorrt_are_compared_with_fp32_build_by_build(
    tmp_path: Path, change: Callable[[Case], Case]
) -> None:
    base = [INFER.with_factors(build=build) for build in (1, 2)]
    cases = [*base, *(change(case) for case in base)]
    builder = CampaignBuilder(tmp_path / "c", cases, repetitions=4, protocols=[WELCH_MW])
    for block in range(1, 5):
        for index, case in enumerate(cases):
            builder.run(case, block, {"latency_mean_ms": 1.0 + index + block / 100})
    (found,) = analyse(load(builder.path)).protocols
    assert [[case.build for case in setting.cases] for setting in found.settings] == [[1, 1], [2, 2]]


def test_two_builds_of_one_engine_are_cases_that_can_be_compared(tmp_path: Path) -> None:
    cases = [INFER.with_factors(build=build) for build in (1, 2, 3)]
    builder = CampaignBuilder(
        tmp_path / "c", cases, repetitions=4, protocols=[WELCH_MW], declared={"baseline": {"build": 1}}
    )
    for block in range(1, 5):
        for case in cases:
            builder.run(case, block, {"latency_mean_ms": case.build + block / 100})
    (found,) = analyse(load(builder.path)).protocols
    assert len(found.duels) == 3
    speedups = [row.speedup.estimate.value for row in found.trade_offs[0] if row.speedup.estimate is not None]
    assert speedups == pytest.approx([1.0, 1.025 / 2.025, 1.025 / 3.025])


def test_all_of_it_is_json(analysis: Analysis) -> None:
    stored = json.loads(json.dumps(analysis.as_json(), allow_nan=False))["protocols"][0]
    assert stored["name"] == WELCH_MW
    assert len(stored["threats"]) >= 3
    scenario = stored["settings"][1]["scenarios"][0]
    assert len(scenario["pairs"]) == 6
    assert scenario["anova"]["tukey_p"][0][0] == 1.0
    assert {row["standing"] for row in stored["trade_offs"][0]["cases"]} == {
        "baseline",
        "advantageous",
        "not advantageous",
    }
