# SPDX-License-Identifier: Apache-2.0
"""Criteria: the closed list, the stored form, and which case is compared with which."""

from __future__ import annotations

import math
from typing import Any

import pytest

from pybench.case import Case
from pybench.case.contrasts import Contrast, from_json, parse, to_json
from pybench.case.factors import idle_factors
from pybench.case.pairing import Pair, joined, pairs
from pybench.case.yields import metrics_of
from pybench.catalogue.criteria import CRITERIA
from pybench.catalogue.metrics import METRICS
from pybench.catalogue.workloads import WORKLOADS
from pybench.errors import UsageError

FP32 = {"baseline": {"precision": "fp32"}}


def infer(**factors: Any) -> Case:
    return Case(**{"workload": "infer", "model": "digits-cnn", "runtime": "onnxruntime", **factors})


def accuracy(**factors: Any) -> Case:
    return Case(
        **{"workload": "accuracy", "model": "digits-cnn", "runtime": "onnxruntime", "images": "digits", **factors}
    )


def contrast(declared: dict[str, Any]) -> Contrast:
    return parse(declared)[0]


def test_every_criterion_names_a_metric_and_bounds_it_on_its_better_side() -> None:
    for kind in CRITERIA.values():
        metric = METRICS[kind.metric]
        higher_is_better = (metric.better == "higher") != kind.inverse
        assert kind.sense == ("min" if higher_is_better else "max"), kind.name
        assert kind.kind in (metric.scale, "absolute"), kind.name
        assert kind.name.endswith(f"_{kind.sense}"), kind.name


def test_every_metric_of_every_workload_exists() -> None:
    for workload in WORKLOADS:
        assert metrics_of(Case(workload=workload, model="tinylm-small")) <= set(METRICS)


def test_only_language_models_yield_tokens_in_infer() -> None:
    assert "throughput_tokens_per_s" in metrics_of(infer(model="tinylm-small"))
    assert "throughput_tokens_per_s" not in metrics_of(infer(model="resnet50"))


def test_energy_above_idle_is_a_matter_of_cases_with_idle_windows() -> None:
    assert {name for name in metrics_of(infer(model="tinylm-small")) if name.startswith("gpu_net_")} == {
        "gpu_net_energy_j", "gpu_net_energy_per_sample_j", "gpu_net_energy_per_token_j"
    }  # fmt: skip
    assert "gpu_net_energy_per_gb_j" in metrics_of(Case(workload="h2d"))
    restless = metrics_of(infer(model="tinylm-small", idle_window_s=0.0))
    assert "gpu_energy_per_sample_j" in restless
    assert not any(name.startswith("gpu_net_") for name in restless)


def test_a_speedup_is_the_baselines_latency_over_the_cases() -> None:
    speedup = contrast({**FP32, "accept": {"speedup_min": 1.5}}).accept[0]
    assert speedup.compare(case_value=2.0, baseline_value=3.0) == 1.5
    assert speedup.holds(1.5)
    assert not speedup.holds(1.49)


def test_a_ratio_is_the_case_over_the_baseline_and_a_difference_the_case_minus_it() -> None:
    size, top1 = contrast({**FP32, "accept": {"model_bytes_ratio_max": 0.3, "top1_delta_pp_min": -1}}).accept
    assert size.compare(25.0, 100.0) == 0.25
    assert size.holds(0.25)
    assert top1.compare(75.0, 76.5) == -1.5
    assert not top1.holds(-1.5)


def test_the_stored_form_reads_back_as_the_same_contrasts() -> None:
    declared: list[dict[str, Any]] = [
        {"name": "int8", **FP32, "accept": {"speedup_min": 1.15, "top1_delta_pp_min": -1}, "where": {"batch": [1, 8]}},
        {"baseline": {"path": "python"}},
    ]
    contrasts = parse(declared)
    assert from_json(to_json(contrasts)) == contrasts
    assert contrasts[0].title() == "int8"
    assert contrasts[1].title() == "baseline path=python"


@pytest.mark.parametrize(
    ("declared", "part"),
    [
        ({**FP32, "accept": {"speed_up_min": 1.1}}, "speedup_min"),
        ({"baseline": {"precison": "fp32"}}, "precision"),
        ({"baseline": {}}, "baseline"),
        ({**FP32, "acept": {}}, "accept"),
        ({**FP32, "accept": {"speedup_min": -1}}, "a ratio from 1e-09"),
        ({**FP32, "accept": {"speedup_min": math.nan}}, "a ratio from 1e-09"),
        ({**FP32, "accept": {"top1_delta_pp_min": math.inf}}, "finite"),
        ({**FP32, "accept": {"speedup_min": True}}, "number"),
    ],
)
def test_a_wrong_declaration_is_refused_with_the_nearest_name(declared: dict[str, Any], part: str) -> None:
    with pytest.raises(UsageError, match=part):
        parse(declared)


def test_the_title_of_one_of_several_with_a_baseline_says_where_it_is() -> None:
    baseline = {"precision": "fp32"}
    alone = {"baseline": baseline, "where": {"batch": [1, 2]}}
    assert [one.title() for one in parse(alone)] == ["baseline precision=fp32"]
    several = parse([alone, {"baseline": baseline}, {"baseline": baseline, "where": {"batch": 8}, "name": "eight"}])
    titles = ["baseline precision=fp32 where batch=1 or 2", "baseline precision=fp32", "eight"]
    assert [one.title() for one in several] == titles
    assert [one.title() for one in from_json(to_json(several))] == titles


def test_a_case_is_paired_with_the_baseline_that_equals_it_in_every_other_factor() -> None:
    cases = [infer(precision=precision, batch=batch) for precision in ("fp32", "int8") for batch in (1, 8)]
    found = pairs(cases, contrast(FP32))
    assert [(pair.case.batch, pair.baseline.batch) for pair in found] == [(1, 1), (8, 8)]
    assert all(pair.case.precision == "int8" and pair.baseline.precision == "fp32" for pair in found)


def test_workloads_are_never_paired_with_each_other() -> None:
    assert pairs([infer(precision="fp32"), accuracy(precision="int8")], contrast(FP32)) == ()


def test_each_calibration_is_compared_with_the_one_baseline_that_has_none() -> None:
    cases = [infer(), *(infer(precision="int8", calibration=name) for name in ("minmax", "entropy"))]
    assert [pair.baseline for pair in pairs(cases, contrast(FP32))] == [cases[0], cases[0]]


def test_a_baseline_that_two_cases_fit_asks_for_the_factor_they_differ_in() -> None:
    cases = [infer(), *(infer(precision="int8", calibration=name) for name in ("minmax", "entropy"))]
    with pytest.raises(UsageError, match="calibration") as raised:
        pairs(cases, contrast({"baseline": {"precision": "int8"}}))
    assert raised.value.hint is not None
    assert len(pairs(cases, contrast({"baseline": {"precision": "int8", "calibration": "entropy"}}))) == 2


def test_a_followers_value_still_counts_where_both_cases_use_it() -> None:
    cases = [
        Case(workload="tokenize", model="tinylm-small", path="hf", corpus=name) for name in ("python-stdlib", "mine")
    ]
    cases.append(Case(workload="tokenize", model="tinylm-small", path="rust", corpus="mine"))
    cases.append(Case(workload="tokenize", model="tinylm-small"))
    assert [pair.baseline.corpus for pair in pairs(cases[:3], contrast({"baseline": {"path": "hf"}}))] == ["mine"]
    assert len(pairs(cases, contrast({"baseline": {"path": "none"}}))) == 3


def test_the_content_of_files_counts_like_a_factor() -> None:
    ours = [infer(model="own.onnx", precision=name, sources=(("model", "a" * 64),)) for name in ("fp32", "int8")]
    other = infer(model="own.onnx", precision="int8", sources=(("model", "b" * 64),))
    assert [pair.case for pair in pairs([*ours, other], contrast(FP32))] == [ours[1]]


def test_where_selects_cases_but_not_their_baselines() -> None:
    cases = [infer(precision=name) for name in ("fp32", "int8", "fp16")]
    found = pairs(cases, contrast({**FP32, "where": {"precision": ["int8"]}}))
    assert [pair.case.precision for pair in found] == ["int8"]


def test_speed_is_joined_with_the_accuracy_of_the_same_model_runtime_and_precision() -> None:
    cases = [make(precision=name) for make in (infer, accuracy) for name in ("fp32", "int8")]
    cases += [infer(precision=name, batch=8) for name in ("fp32", "int8")]
    result = joined(pairs(cases, contrast(FP32)))
    assert [(one.speed.case.batch if one.speed else None, len(one.accuracy)) for one in result] == [(1, 1), (8, 1)]
    assert result[0].accuracy[0].case == accuracy(precision="int8")


def test_accuracy_without_speed_stands_alone() -> None:
    cases = [accuracy(precision=name) for name in ("fp32", "int8")]
    result = joined(pairs(cases, contrast(FP32)))
    assert [(one.speed, len(one.accuracy)) for one in result] == [(None, 1)]


def test_images_are_idle_in_infer_and_never_in_accuracy() -> None:
    assert "images" in idle_factors(infer())
    assert "images" not in idle_factors(infer(precision="int8"))
    assert "images" not in idle_factors(accuracy())


def test_a_cache_is_emptied_only_between_replays_of_a_graph() -> None:
    served = infer(model="resnet50", runtime="tensorrt", device="cuda")
    assert "cache" not in idle_factors(served)
    assert "cache" not in idle_factors(infer(model="resnet50", runtime="torch-graph"))
    for changed in (
        {"launch": "enqueue"}, {"transfers": True}, {"arrivals": "fixed", "arrival_rate_per_s": 9.0},
        {"runtime": "torch"}, {"runtime": "onnxruntime"},
    ):  # fmt: skip
        assert "cache" in idle_factors(served.with_factors(**changed)), changed
    assert "cache" in idle_factors(infer(model="tinylm-small", runtime="torch-graph", path="rust"))
    assert "gpu_slow_p95_energy_j" in metrics_of(served)
    assert "gpu_slow_p95_energy_j" not in metrics_of(served.with_factors(cache="cold"))


def test_capturing_is_idle_where_onnxruntime_cannot_be_on_cuda() -> None:
    """Without a provider CUDA's is taken where there is a GPU: a plan's `launch: enqueue` must not become `graph`."""
    served = infer(runtime="onnxruntime", device="cuda", launch="enqueue")
    assert "launch" not in idle_factors(served)
    assert "launch" not in idle_factors(served.with_factors(provider="cuda"))
    assert "launch" in idle_factors(served.with_factors(provider="tensorrt"))
    assert "launch" in idle_factors(served.with_factors(device="cpu"))


def test_training_with_rounding_finds_its_ranges_by_itself() -> None:
    trained = infer(model="digits-cnn", precision="int8", quantiser="qat")
    assert {"calibration", "calibration_images", "images"} <= idle_factors(trained)
    assert "quantiser" not in idle_factors(trained)


def test_a_tokenizer_is_idle_with_synthetic_ids_unless_they_are_drawn_from_its_vocabulary() -> None:
    assert "tokenizer" in idle_factors(infer(model="tinylm-small"))
    assert "tokenizer" not in idle_factors(Case(workload="tokenize", model="tinylm-small"))


def test_a_speed_is_not_joined_with_the_accuracy_of_another_calibration() -> None:
    """Calibrated on other images it is another graph, whatever else is equal."""
    infer = Case(workload="infer", model="resnet50", runtime="tensorrt", precision="int8")
    judged = infer.with_factors(workload="accuracy", images="pictures", sources=(("images", "a" * 64),))
    calibrated = infer.with_factors(images="pictures", sources=(("images", "a" * 64),))
    found = [Pair(case, case.with_factors(precision="fp32")) for case in (infer, calibrated, judged)]
    by_images = {each.speed.case.images: len(each.accuracy) for each in joined(found) if each.speed is not None}
    assert by_images == {None: 0, "pictures": 1}
