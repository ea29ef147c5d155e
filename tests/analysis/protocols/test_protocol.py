# SPDX-License-Identifier: Apache-2.0
"""A named protocol on whole campaigns: every pair by scipy itself, and campaigns that differ from the paper's."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from pybench.analysis import Analysis, analyse
from pybench.analysis.protocols import protocol
from pybench.analysis.protocols.protocol import ProtocolFinding
from pybench.case import Case
from pybench.dataset import Dataset, load
from pybench.errors import CorruptError
from pybench.processes import Processes
from tests.support.campaigns import CampaignBuilder, build_typical
from tests.support.precision_campaign import BATCHES, INFER, PRECISIONS, REPETITIONS, values_of

WELCH_MW = "welch-mann-whitney"


def test_four_precisions_make_six_pairs_per_batch_and_metric(finding: ProtocolFinding) -> None:
    assert [tuple(case.precision for case in setting.cases) for setting in finding.settings] == [PRECISIONS] * 3
    assert [setting.cases[0].batch for setting in finding.settings] == list(BATCHES)
    for setting in finding.settings:
        assert len(setting.scenarios) == 3
        for scenario in setting.scenarios:
            assert [(pair.second, pair.first) for pair in scenario.tested_pairs] == list(
                itertools.combinations(setting.cases, 2)
            )


@pytest.mark.process
def test_two_processes_find_what_one_finds(papers: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "_TASK_SETTINGS", 1)
    processes = Processes(2)
    try:
        shared = analyse(papers, processes)
    finally:
        processes.close()
    assert len(shared.protocols[0].settings) == 3
    assert shared == analyse(papers)


def test_every_pair_is_what_scipy_says(papers: Dataset, finding: ProtocolFinding) -> None:
    chosen = set()
    for setting in finding.settings:
        for scenario in setting.scenarios:
            for pair in scenario.tested_pairs:
                if pair.test is None:
                    continue
                first, second = (values_of(papers, case, scenario.metric.name) for case in (pair.first, pair.second))
                normal = all(stats.shapiro(side).pvalue >= 0.05 for side in (first, second))
                judge = stats.ttest_ind(first, second, equal_var=False) if normal else stats.mannwhitneyu(first, second)
                assert pair.test.p_value == pytest.approx(judge.pvalue, rel=1e-9)
                assert pair.test.test == ("Welch t" if normal else "Mann-Whitney U")
                chosen.add(pair.test.test)
    assert chosen == {"Welch t", "Mann-Whitney U"}


def test_holm_covers_every_pair_of_the_campaign(finding: ProtocolFinding) -> None:
    tested = [pair for pair in finding.tested_pairs if pair.test is not None and pair.test.p_value is not None]
    assert len(tested) == 3 * 3 * 6 - 3  # the energy of one case is invalid
    judge = multipletests([pair.test.p_value for pair in tested if pair.test], method="holm")[1]
    assert [pair.p_adjusted for pair in tested] == pytest.approx(list(judge))


def test_means_have_students_interval(papers: Dataset, finding: ProtocolFinding) -> None:
    sample = finding.settings[2].scenarios[0].samples[3]
    values = values_of(papers, sample.case, "latency_mean_ms")
    assert sample.estimate is not None
    assert (sample.estimate.n, sample.estimate.value) == (REPETITIONS, pytest.approx(values.mean()))
    judge = stats.t.interval(0.95, REPETITIONS - 1, values.mean(), stats.sem(values))
    assert (sample.estimate.lower, sample.estimate.upper) == pytest.approx(judge)


def test_anova_runs_in_the_one_scenario_whose_assumptions_hold(finding: ProtocolFinding) -> None:
    ran = {}
    for setting in finding.settings:
        for scenario in setting.scenarios:
            if scenario.variances is not None:
                ran[setting.cases[0].batch, scenario.metric.name] = scenario.variances.why_omitted
                assert all(
                    (pair.p_tukey is None) == (scenario.variances.p_value is None) for pair in scenario.tested_pairs
                )
    assert [key for key, why in ran.items() if why is None] == [(8, "latency_mean_ms")]
    assert "Brown-Forsythe" in str(ran[1, "latency_mean_ms"])
    assert "residuals" in str(ran[32, "latency_mean_ms"])
    assert (1, "gpu_energy_per_sample_j") not in ran  # one case has no value


def test_a_case_without_valid_values_has_its_reason_in_place_of_a_test(finding: ProtocolFinding) -> None:
    scenario = next(s for s in finding.settings[0].scenarios if s.metric.name == "gpu_energy_per_sample_j")
    assert scenario.samples[3].why_none == "energy: window_too_short"
    without = [pair for pair in scenario.tested_pairs if pair.first.precision == "int8+fp16"]
    assert [(pair.test, pair.p_adjusted, pair.why_none) for pair in without] == [
        (None, None, "energy: window_too_short")
    ] * 3


def test_the_paired_ratio_stands_beside_every_test(analysis: Analysis, finding: ProtocolFinding) -> None:
    own = {
        pair.pair.case.id: pair.effects["latency_mean_ms"].effect
        for pair in analysis.contrasts[0].pairs
        if pair.pair.case.workload == "infer"
    }
    for setting in finding.settings:
        for pair in setting.scenarios[0].tested_pairs:
            assert pair.paired is not None
            if pair.second.precision == "fp32":
                assert pair.paired == own[pair.first.id]


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
    assert scenario.metric.name == "throughput_tokens_per_s"
    assert len(scenario.tested_pairs) == 3
    assert scenario.variances is None
    for pair in scenario.tested_pairs:
        sides = [values_of(dataset, one, scenario.metric.name) for one in (pair.first, pair.second)]
        assert pair.test is not None
        assert pair.test.p_value == pytest.approx(stats.mannwhitneyu(*sides).pvalue)
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
    assert (len(found.tested_pairs), len(found.distinct_pairs), len(found.distinct_samples)) == (6, 3, 3)
    by_pair = {frozenset((one.first, one.second)): one.test.p_value for one in found.tested_pairs if one.test}
    judge = multipletests([p for p in by_pair.values() if p is not None], method="holm")[1]
    expected = dict(zip(by_pair, judge, strict=True))
    for pair in found.tested_pairs:
        assert pair.p_adjusted == pytest.approx(expected[frozenset((pair.first, pair.second))])


def test_one_repetition_is_no_sample(tmp_path: Path) -> None:
    cases = [INFER, INFER.with_factors(precision="fp16")]
    builder = CampaignBuilder(tmp_path / "c", cases, repetitions=1, protocols=[WELCH_MW])
    for case, latency in zip(cases, (2.0, 1.0), strict=True):
        builder.run(case, 1, {"latency_mean_ms": latency})
    (found,) = analyse(load(builder.path)).protocols
    (pair,) = found.tested_pairs
    assert pair.test is not None
    assert pair.test.p_value is None
    assert not pair.is_significant
    assert pair.p_adjusted is None


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
    assert len(found.tested_pairs) == 3
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
