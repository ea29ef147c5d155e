# SPDX-License-Identifier: Apache-2.0
"""A whole campaign analysed: known truth recovered, verdicts right, everything left out counted."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest

import pybench.analysis
from pybench.analysis import Analysis, analyse
from pybench.analysis.findings.comparison import compare
from pybench.analysis.findings.contrasts import PairEffect
from pybench.analysis.findings.verdicts import CaseVerdict, Verdict
from pybench.analysis.measurements import collect
from pybench.campaign.layout import SUMMARY
from pybench.campaign.storage import write_json
from pybench.case import Case
from pybench.catalogue.data_sets import DATA_SETS
from pybench.catalogue.latency import LEFT_OUT
from pybench.dataset import load
from pybench.dataset.coverage import measure
from pybench.errors import CorruptError
from pybench.measure.quantity import Quantity
from pybench.measurement.result import Validity
from pybench.report.sections.reliability.doubts import doubts
from pybench.report.sections.results.method import paragraphs
from tests.support.campaigns import (
    IMAGES,
    INT8_ONLY_RIGHT,
    INT8_ONLY_WRONG,
    TRUE_LATENCY_RATIO,
    TRUE_TOKEN_RATE,
    CampaignBuilder,
    build_typical,
    finish_again,
    predictions_csv,
)
from tests.support.reasons import reasons_of

INFER = Case(workload="infer", model="digits-cnn", runtime="onnxruntime")
INT8 = INFER.with_factors(precision="int8")
AGAINST_FP32 = {"baseline": {"precision": "fp32"}, "accept": {"speedup_min": 1.2}}


@pytest.fixture(scope="module")
def typical(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    return analyse(load(build_typical(tmp_path_factory.mktemp("typical"), repetitions=8).path))


def _effect(analysis: Analysis, contrast: int, metric: str, wanted: Callable[[Case], bool]) -> PairEffect:
    return next(pair.effects[metric] for pair in analysis.contrasts[contrast].pairs if wanted(pair.pair.case))


def _verdict(analysis: Analysis, contrast: int, wanted: Callable[[Case], bool]) -> CaseVerdict:
    return next(verdict for verdict in analysis.verdicts[contrast] if wanted(verdict.subject.case))


def test_true_latency_ratios_lie_in_their_intervals(typical: Analysis) -> None:
    for batch, truth in ((1, 1.0), (8, TRUE_LATENCY_RATIO["int8"])):
        found = _effect(
            typical,
            0,
            "latency_mean_ms",
            lambda case, batch=batch: case.batch == batch and case.runtime == "onnxruntime",
        )  # type: ignore[misc]
        assert found.effect is not None
        estimate = found.effect.estimate
        assert estimate.lower is not None
        assert estimate.upper is not None
        assert estimate.lower <= truth <= estimate.upper
        assert estimate.upper - estimate.lower < 0.12


def test_true_token_rates_lie_in_their_intervals(typical: Analysis) -> None:
    for path, rate in TRUE_TOKEN_RATE.items():
        case = next(case for case in typical.cases if case.case.path == path)
        estimate = case.metrics["throughput_tokens_per_s"].estimate
        assert estimate is not None
        assert estimate.lower is not None
        assert estimate.upper is not None
        assert estimate.lower <= rate <= estimate.upper


def test_an_accuracy_difference_counts_the_images_that_changed_sides(typical: Analysis) -> None:
    found = _effect(typical, 0, "top1_percent", lambda case: case.workload == "accuracy")
    assert found.units is not None
    assert found.effect is not None
    pairs = found.units.pairs
    assert (pairs.only_candidate, pairs.only_baseline, pairs.n) == (INT8_ONLY_RIGHT, INT8_ONLY_WRONG, IMAGES)
    assert found.effect.estimate.value == pytest.approx(100 * (INT8_ONLY_RIGHT - INT8_ONLY_WRONG) / IMAGES)
    assert found.effect.estimate.n == IMAGES
    same = 100 * (IMAGES - INT8_ONLY_RIGHT - INT8_ONLY_WRONG) / IMAGES
    assert found.units.agreement.value == pytest.approx(same)


def test_verdicts_join_speed_with_accuracy(typical: Analysis) -> None:
    fast = _verdict(
        typical, 0, lambda case: case.workload == "infer" and case.batch == 8 and case.runtime == "onnxruntime"
    )
    assert fast.verdict is Verdict.ACCEPTED
    assert [judgement.criterion.name for judgement in fast.judgements] == ["speedup_min", "top1_delta_pp_min"]
    slow = _verdict(typical, 0, lambda case: case.workload == "infer" and case.batch == 1)
    assert slow.verdict is Verdict.REJECTED


def test_a_case_that_could_not_run_is_undecided_with_its_reason(typical: Analysis) -> None:
    verdict = _verdict(typical, 0, lambda case: case.runtime == "torch")
    assert verdict.verdict is Verdict.UNDECIDED
    assert verdict.judgements[0].why == "the case: unsupported: no_int8_kernels"
    assert "no accuracy case" in str(verdict.judgements[1].why)


def test_a_contrast_without_criteria_is_compared_and_not_judged(typical: Analysis) -> None:
    verdict = _verdict(typical, 2, lambda case: case.runtime == "torch" and case.precision == "fp32")
    assert verdict.verdict is None
    found = _effect(typical, 2, "latency_mean_ms", lambda case: case.precision == "fp32")
    assert found.declared
    assert found.effect is not None
    assert found.effect.estimate.value == pytest.approx(1.4, rel=0.05)


def test_holm_covers_what_is_declared_and_nothing_else(typical: Analysis) -> None:
    effects = [effect for contrast in typical.contrasts for pair in contrast.pairs for effect in pair.effects.values()]
    declared = [effect for effect in effects if effect.declared and effect.effect is not None]
    assert declared
    for effect in declared:
        assert effect.effect is not None
        if effect.effect.p_value is not None:
            assert effect.p_adjusted is not None
            assert effect.p_adjusted >= effect.effect.p_value
    assert all(effect.p_adjusted is None for effect in effects if not effect.declared)


def test_estimates_of_energy_stay_bounds(typical: Analysis) -> None:
    finding = typical.cases[0].metrics["cpu_energy_per_sample_estimate_j"]
    assert finding.estimate is None
    assert finding.bounds is not None
    assert finding.bounds[0] < finding.bounds[1]
    assert typical.cases[0].metrics["cpu_energy_per_sample_j"].why_none == "no_rapl"


def test_the_size_of_a_file_is_exact(typical: Analysis) -> None:
    estimate = typical.cases[0].metrics["model_bytes"].estimate
    assert estimate is not None
    assert (estimate.method, estimate.lower, estimate.upper) == ("exact", 400_000.0, 400_000.0)


def test_everything_can_be_stored_as_json(typical: Analysis) -> None:
    stored = json.loads(json.dumps(typical.as_json(), allow_nan=False))
    assert stored["confidence"] == 0.95
    assert len(stored["cases"]) == 12


# --- made to order ---------------------------------------------------------------------------------------------------


def _pair(folder: Path, *, blocks: int = 4, declared: object = AGAINST_FP32) -> CampaignBuilder:
    return CampaignBuilder(folder / "c", [INFER, INT8], repetitions=blocks, declared=declared)


def test_invalid_values_are_excluded_and_counted_by_reason(tmp_path: Path) -> None:
    builder = _pair(tmp_path)
    for block in range(1, 5):
        valid = {"timing": Validity(False, reasons_of("not_steady"))} if block == 2 else {}
        builder.run(
            INFER,
            block,
            {"latency_mean_ms": 10.0 if block == 2 else 2.0 + 0.01 * block, "peak_host_bytes": 1e8},
            valid=valid,
        )
        builder.run(INT8, block, {"latency_mean_ms": 1.0 + 0.01 * block})
    analysis = analyse(load(builder.path))
    latency = analysis.cases[0].metrics["latency_mean_ms"]
    assert latency.excluded == {"timing: not_steady": 1}
    assert set(latency.points) == {1, 3, 4}
    assert analysis.cases[0].metrics["peak_host_bytes"].excluded == {}  # memory does not rest on timing
    effect = analysis.contrasts[0].pairs[0].effects["latency_mean_ms"].effect
    assert effect is not None
    assert (effect.pairing.blocks, effect.pairing.only_candidate, effect.pairing.only_baseline) == ((1, 3, 4), 1, 0)


def test_processor_time_does_not_rest_on_the_energy_sensor(tmp_path: Path) -> None:
    builder = _pair(tmp_path, blocks=3)
    for block in (1, 2, 3):
        measured = {"cpu_cores_ratio": 1.5, "cpu_energy_j": 3.0}
        builder.run(INFER, block, measured, valid={"energy": Validity(False, reasons_of("window_too_short"))})
    metrics = analyse(load(builder.path)).cases[0].metrics
    cores = metrics["cpu_cores_ratio"].estimate
    assert cores is not None
    assert (cores.value, cores.n) == (1.5, 3)
    assert metrics["cpu_energy_j"].why_none == "energy: window_too_short"


def test_an_energy_delay_product_rests_on_energy_and_timing(tmp_path: Path) -> None:
    builder = _pair(tmp_path, blocks=3)
    for block, kind in ((1, "energy"), (2, "timing"), (3, "accuracy")):
        valid = {kind: Validity(False, reasons_of("not_steady"))}
        builder.run(INFER, block, {"gpu_energy_delay_js": 2.0 + block}, valid=valid)
    product = analyse(load(builder.path)).cases[0].metrics["gpu_energy_delay_js"]
    assert product.points == {3: 5.0}
    assert product.excluded == {"energy: not_steady": 1, "timing: not_steady": 1}


def test_cores_in_use_end_at_the_cpus_that_the_runs_may_use(tmp_path: Path) -> None:
    """0.5 and 1.9 of two CPUs: the t of one degree of freedom reaches far beyond two."""
    builder = _pair(tmp_path, blocks=2)
    for block, cores in ((1, 0.5), (2, 1.9)):
        builder.run(INFER, block, {"cpu_cores_ratio": cores, "cpu_utilisation_ratio": cores / 2})
        builder.run(INT8, block, {"cpu_cores_ratio": cores})
    known, unknown = (case.metrics["cpu_cores_ratio"].estimate for case in analyse(load(builder.path)).cases)
    assert known is not None
    assert known.upper == pytest.approx(2.0)
    assert unknown is not None
    assert unknown.upper is not None
    assert unknown.upper > 100


def test_the_interval_of_a_share_ends_at_0_and_1(tmp_path: Path) -> None:
    """Of two runs with 62 % and 98 %, Student's t reaches from -1.5 to 3.1."""
    builder = _pair(tmp_path, blocks=2)
    for block, share in ((1, 0.62), (2, 0.98)):
        builder.run(INFER, block, {"wait_share_ratio": share, "loss_last_nats": share})
    metrics = analyse(load(builder.path)).cases[0].metrics
    found = {name: metrics[name].estimate for name in ("wait_share_ratio", "loss_last_nats")}
    share_estimate, loss = found["wait_share_ratio"], found["loss_last_nats"]
    assert share_estimate is not None
    assert loss is not None
    assert (share_estimate.value, share_estimate.lower, share_estimate.upper) == (pytest.approx(0.8), 0.0, 1.0)
    assert loss.upper is not None
    assert loss.upper > 1


def test_a_metric_without_a_row_is_counted_and_named(tmp_path: Path) -> None:
    """As a later pybench, or a package of the user's own, may have stored it."""
    builder = _pair(tmp_path, blocks=2, declared=None)
    for block in (1, 2):
        run = builder.run(INFER, block, {"latency_mean_ms": 2.0})
        stored = json.loads(run.file(SUMMARY).read_text())
        stored["metrics"]["acme_widgets_per_s"] = {**stored["metrics"]["latency_mean_ms"], "unit": "1/s"}
        write_json(run.file(SUMMARY), stored)
        finish_again(run.path)
    dataset = load(builder.path)
    analysis = analyse(dataset)
    assert analysis.as_json()["unknown_metrics"] == {"acme_widgets_per_s": 2}
    assert compare(dataset, dataset).as_json()["unknown_metrics"] == {"acme_widgets_per_s": 4}
    assert analysis.cases[0].metrics.keys() == {"latency_mean_ms"}
    (doubt,) = [one.plain for one in doubts(dataset, analysis, measure(dataset)) if "Unknown" in one.lead]
    assert "acme_widgets_per_s (2 values)" in doubt


def test_a_run_of_the_wrong_precision_counts_for_nothing(tmp_path: Path) -> None:
    builder = _pair(tmp_path, blocks=2)
    for block in (1, 2):
        builder.run(INFER, block, {"latency_mean_ms": 2.0})
        builder.run(
            INT8, block, {"latency_mean_ms": 1.0}, valid={"precision": Validity(False, reasons_of("no_int8_nodes"))}
        )
    analysis = analyse(load(builder.path))
    assert analysis.cases[1].metrics["latency_mean_ms"].why_none == "precision: no_int8_nodes"
    assert analysis.verdicts[0][0].judgements[0].why == "the case: precision: no_int8_nodes"


def test_null_validity_does_not_exclude(tmp_path: Path) -> None:
    builder = _pair(tmp_path, blocks=1)
    builder.run(INFER, 1, {"latency_mean_ms": 2.0}, valid={"timing": Validity(None)})
    assert collect(load(builder.path)).cell(INFER.id, "latency_mean_ms").values == {1: 2.0}


@pytest.mark.parametrize(
    ("ratio", "spread", "verdict"),
    [(0.5, 0.01, Verdict.ACCEPTED), (0.95, 0.01, Verdict.REJECTED), (1 / 1.2, 0.05, Verdict.UNDECIDED)],
)
def test_a_verdict_follows_the_whole_interval(tmp_path: Path, ratio: float, spread: float, verdict: Verdict) -> None:
    builder = _pair(tmp_path)
    for block, sign in zip(range(1, 5), (1, -1, 1, -1), strict=True):
        builder.run(INFER, block, {"latency_mean_ms": 2.0})
        builder.run(INT8, block, {"latency_mean_ms": 2.0 * ratio * (1 + sign * spread)})
    assert analyse(load(builder.path)).verdicts[0][0].verdict is verdict


def test_one_repetition_decides_nothing(tmp_path: Path) -> None:
    builder = _pair(tmp_path, blocks=1)
    builder.run(INFER, 1, {"latency_mean_ms": 2.0})
    builder.run(INT8, 1, {"latency_mean_ms": 0.1})
    judgement = analyse(load(builder.path)).verdicts[0][0].judgements[0]
    assert (judgement.verdict, judgement.why) == (Verdict.UNDECIDED, "one repetition gives no interval")


def test_one_repetition_decides_about_the_size_of_a_file(tmp_path: Path) -> None:
    builder = _pair(
        tmp_path, blocks=1, declared={"baseline": {"precision": "fp32"}, "accept": {"model_bytes_ratio_max": 0.5}}
    )
    builder.run(INFER, 1, {"model_bytes": 400.0})
    builder.run(INT8, 1, {"model_bytes": 110.0})
    assert analyse(load(builder.path)).verdicts[0][0].verdict is Verdict.ACCEPTED


def test_sides_on_different_devices_are_flagged(tmp_path: Path) -> None:
    builder = _pair(tmp_path, blocks=2)
    for block in (1, 2):
        builder.run(INFER, block, {"latency_mean_ms": 2.0})
        builder.run(INT8, block, {"latency_mean_ms": 1.0}, labels={"device": "GPU-1234"})
    assert analyse(load(builder.path)).contrasts[0].pairs[0].same_device is False


def test_sides_whose_latency_is_not_one_thing_are_flagged(tmp_path: Path) -> None:
    builder = _pair(tmp_path, blocks=2)
    for block in (1, 2):
        builder.run(INFER, block, {"latency_mean_ms": 2.0}, labels={"latency": "as the host sees it"})
        builder.run(INT8, block, {"latency_mean_ms": 1.0}, labels={"latency": "between GPU events"})
    pair = analyse(load(builder.path)).contrasts[0].pairs[0]
    assert pair.same_latency is False
    assert pair.as_json()["latencies"] == {"case": ["between GPU events"], "baseline": ["as the host sees it"]}


def test_what_is_left_out_of_latencies_makes_no_other_kind_of_them(tmp_path: Path) -> None:
    builder = _pair(tmp_path, blocks=2)
    for block in (1, 2):
        builder.run(INFER, block, {"latency_mean_ms": 2.0}, labels={"latency": "between GPU events"})
        builder.run(INT8, block, {"latency_mean_ms": 1.0}, labels={"latency": f"between GPU events{LEFT_OUT}"})
    assert analyse(load(builder.path)).contrasts[0].pairs[0].same_latency is True


def test_a_value_of_zero_gives_no_ratio_and_says_so(tmp_path: Path) -> None:
    builder = _pair(tmp_path, blocks=2)
    for block in (1, 2):
        builder.run(INFER, block, {"latency_mean_ms": 0.0})
        builder.run(INT8, block, {"latency_mean_ms": 1.0})
    assert "not positive" in str(analyse(load(builder.path)).contrasts[0].pairs[0].effects["latency_mean_ms"].why_none)


def test_images_missing_or_relabelled_on_one_side_are_left_out_and_counted(tmp_path: Path) -> None:
    cases = [case.with_factors(workload="accuracy") for case in (INFER, INT8)]
    builder = CampaignBuilder(tmp_path / "c", cases, repetitions=1, declared={"baseline": {"precision": "fp32"}})
    lines = predictions_csv("fp32").splitlines()
    builder.run(cases[0], 1, {"top1_percent": 90.0}, predictions="\n".join(lines[:-10]) + "\n")
    builder.run(
        cases[1],
        1,
        {"top1_percent": 90.0},
        predictions="\n".join([*lines[:1], "digits-0000,9,9,true", *lines[2:]]) + "\n",
    )
    units = analyse(load(builder.path)).contrasts[0].pairs[0].effects["top1_percent"].units
    assert units is not None
    assert (units.pairs.n, units.unmatched, units.relabelled) == (IMAGES - 11, 10, 1)


def test_predictions_that_vary_between_repetitions_are_reported(tmp_path: Path) -> None:
    case = INFER.with_factors(workload="accuracy")
    builder = CampaignBuilder(tmp_path / "c", [case], repetitions=2)
    for block, precision in ((1, "fp32"), (2, "int8")):
        builder.run(case, block, {"top1_percent": 90.0}, predictions=predictions_csv(precision))
    assert analyse(load(builder.path)).varying == {case.id: 2}


def test_an_accuracy_without_predictions_has_an_interval_over_runs(tmp_path: Path) -> None:
    cases = [case.with_factors(workload="accuracy") for case in (INFER, INT8)]
    builder = CampaignBuilder(tmp_path / "c", cases, repetitions=3, declared={"baseline": {"precision": "fp32"}})
    for block in (1, 2, 3):
        builder.run(cases[0], block, {"top1_percent": 90.0 + 0.1 * block})
        builder.run(cases[1], block, {"top1_percent": 89.0})
    effect = analyse(load(builder.path)).contrasts[0].pairs[0].effects["top1_percent"].effect
    assert effect is not None
    assert (effect.estimate.n, effect.estimate.value) == (3, pytest.approx(-1.2))


def test_tokenizer_paths_with_equal_ids_pass(typical: Analysis) -> None:
    assert [(finding.equal, finding.blocks) for finding in typical.token_paths] == [(True, 8)]


def test_tokenizer_paths_with_different_ids_are_caught_in_their_block(tmp_path: Path) -> None:
    cases = [Case(workload="tokenize", model="tinylm-small", runtime="torch", path=path) for path in ("hf", "rust")]
    builder = CampaignBuilder(tmp_path / "c", cases, repetitions=3)
    for block in (1, 2, 3):
        for case in cases:
            digest = "bad" if (block, case.path) == (2, "rust") else f"good-{block}"
            builder.run(case, block, {"throughput_tokens_per_s": 1e6}, labels={"ids_sha256": digest})
    finding = analyse(load(builder.path)).token_paths[0]
    assert (finding.equal, finding.differing, finding.blocks) == (False, (2,), 3)


def test_paths_that_never_ran_in_one_block_cannot_be_compared(tmp_path: Path) -> None:
    cases = [Case(workload="tokenize", model="tinylm-small", runtime="torch", path=path) for path in ("hf", "rust")]
    builder = CampaignBuilder(tmp_path / "c", cases, repetitions=2)
    for block, case in enumerate(cases, start=1):
        builder.run(case, block, {"throughput_tokens_per_s": 1e6}, labels={"ids_sha256": "same"})
    assert analyse(load(builder.path)).token_paths[0].equal is None


def test_criteria_of_another_version_are_corrupt_not_a_traceback(tmp_path: Path) -> None:
    builder = _pair(tmp_path)
    plan = builder.campaign.plan_resolved
    stored = json.loads(plan.read_text())
    stored["criteria"][0]["accept"][0]["name"] = "beauty_min"
    plan.write_text(json.dumps(stored))
    with pytest.raises(CorruptError, match="beauty_min"):
        analyse(load(builder.path))


def test_a_metric_that_this_version_does_not_know_is_left_to_the_frame(tmp_path: Path) -> None:
    builder = _pair(tmp_path, blocks=1)
    run = builder.run(INFER, 1, {"latency_mean_ms": Quantity(value=2.0)})
    stored = json.loads(run.file("summary.json").read_text())
    stored["metrics"]["beauty"] = {"value": 1.0, "unit": "1"}
    run.file("summary.json").write_text(json.dumps(stored))
    finish_again(run.path)
    dataset = load(builder.path)
    assert "beauty" in dataset.frame["metric"].to_list()
    assert set(analyse(dataset).cases[0].metrics) == {"latency_mean_ms"}


def test_a_comparison_uses_the_blocks_that_both_cases_have(tmp_path: Path) -> None:
    """The baseline runs in three blocks and the case in five: the last two blocks of the case have no partner."""
    builder = CampaignBuilder(tmp_path / "c", [INFER, INT8], repetitions=3, own={INT8: 5}, declared=AGAINST_FP32)
    for block in range(1, 6):
        builder.run(INT8, block, {"latency_mean_ms": 2.0 + 0.01 * block if block < 4 else 99.0})
        if block < 4:
            builder.run(INFER, block, {"latency_mean_ms": 4.0 + 0.02 * block})
    dataset = load(builder.path)
    found = analyse(dataset)
    assert measure(dataset).is_full
    effect = _effect(found, 0, "latency_mean_ms", lambda case: case == INT8).effect
    assert effect is not None
    assert (effect.pairing.blocks, effect.pairing.only_candidate) == ((1, 2, 3), 2)
    assert effect.estimate.value == pytest.approx(0.5)
    assert any("3 or 5 repetitions" in text for text in paragraphs(dataset))
    assert any("A timed run has 10 warm-up iterations, then 100 timed ones." in text for text in paragraphs(dataset))
    units = {row.unit for row in DATA_SETS.values()}
    assert any(all(unit in text for unit in units) for text in paragraphs(dataset) if "unit of accuracy" in text)


@pytest.mark.parametrize(("too_fast", "counting"), [(1, 3), (2, 0), (3, 0)])
def test_the_slow_runs_of_a_case_that_is_mostly_too_fast_for_the_clock_do_not_stand_for_it(
    tmp_path: Path, too_fast: int, counting: int
) -> None:
    builder = CampaignBuilder(tmp_path / "c", [INFER], repetitions=4)
    for block in range(1, 5):
        is_valid = block > too_fast
        timing = Validity(is_valid, () if is_valid else reasons_of("below_clock_resolution"))
        builder.run(INFER, block, {"latency_mean_ms": 0.002 if is_valid else 0.001}, valid={"timing": timing})
    cell = collect(load(builder.path)).cell(INFER.id, "latency_mean_ms")
    assert len(cell.values) == counting
    assert len(cell.values) + len(cell.excluded) == 4
    assert counting or "below_clock_resolution" in cell.why_empty()


def test_totals_of_windows_are_not_compared(tmp_path: Path) -> None:
    builder = _pair(tmp_path, blocks=2)
    for block in (1, 2):
        builder.run(INFER, block, {"gpu_energy_j": 200.0, "gpu_energy_per_sample_j": 2.0})
        builder.run(INT8, block, {"gpu_energy_j": 201.0 + block, "gpu_energy_per_sample_j": 1.0})
    effects = analyse(load(builder.path)).contrasts[0].pairs[0].effects
    assert "gpu_energy_per_sample_j" in effects
    assert "gpu_energy_j" not in effects


def test_the_tree_of_findings_has_each_of_them() -> None:
    drawn = re.findall(r"[├└]── (\w+) ", str(pybench.analysis.__doc__))
    assert set(drawn) == {one.name for one in fields(Analysis)} - {"name"}


@pytest.mark.parametrize(("ran", "why"), [(True, "its runs have no such number"), (False, "not measured")])
def test_a_case_that_ran_without_a_metric_is_not_called_unmeasured(tmp_path: Path, ran: bool, why: str) -> None:
    declared = {"baseline": {"precision": "fp32"}, "accept": {"gpu_energy_ratio_max": 0.5, "cosine_min": 0.9}}
    builder = _pair(tmp_path, blocks=1, declared=declared)
    builder.run(INFER, 1, {"gpu_energy_per_sample_j": 1.0})
    if ran:
        builder.run(INT8, 1, {"latency_mean_ms": 0.1})
    judgements = analyse(load(builder.path)).verdicts[0][0].judgements
    assert [judgement.why for judgement in judgements] == [f"the case: {why}", why]
