# SPDX-License-Identifier: Apache-2.0
"""Which accuracies belong to a speed: those that agree in every factor that changes a model's answers."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from pybench.case import Case
from pybench.case.factors import FACTORS, Factors
from pybench.case.pairing import Pair, join_key
from pybench.catalogue.workloads import WORKLOADS

WEIGHT_ONLY = {"quantiser": "weight-only", "precision": "int8"}
SOLVER = {"model": "c2p-small", "runtime": "solver"}
STACK = {"model": "stack", "block_type": "conv"}
HEADS = {"model": "vit-heads", "runtime": "torch"}
PICTURES = {"images": "pictures"}
# Factor -> (a case in which it means something, another value). Of the others: digits-cnn in int8, quantised to.
CHANGES: dict[str, tuple[dict[str, Any], Any]] = {
    "model": ({}, "resnet50"),
    "shapes": ({}, "{image: {height: [32]}}"),
    "checkpoint": ({}, "synthetic-100"),
    "trained_in": ({}, "amp-bf16"),
    "training_seed": ({}, 1),
    "runtime": ({}, "torch"),
    "precision": ({}, "int8+fp16"),
    "environment": ({}, "torch-2.11"),
    "keep_fp32": ({}, "/head/"),
    "keep_error_max": ({}, 0.05),
    "quantiser": ({}, "qat"),
    "calibration": ({}, "entropy"),
    "calibration_images": ({}, 50),
    "scheme": ({}, "asymmetric"),
    "range": ({}, "full"),
    "granularity": ({}, "tensor"),
    "block_size": (WEIGHT_ONLY, 64),
    "placement": ({"quantiser": "pybench"}, "naive"),
    "provider": ({}, "cpu"),
    "solver": (SOLVER, "numpy"),
    "image_size": ({}, 32),
    "block_type": (STACK, "depthwise"),
    "depth": (STACK, 8),
    "width": (STACK, 128),
    "heads": (HEADS, 2),
    "dispatch": (HEADS, "sequential"),
    "images": ({}, "synthetic-100"),
    "crop_share": (PICTURES, 0.5),
    "interpolation": (PICTURES, "bicubic"),
    "normalisation": (PICTURES, "half"),
    "data": ({}, "mine.npz"),
}


def case(workload: str, **factors: Any) -> Case:
    return Case(
        **{"workload": workload, "model": "digits-cnn", "runtime": "onnxruntime", "precision": "int8"} | factors
    )


def test_every_factor_says_whether_it_changes_answers() -> None:
    assert not [one.name for one in fields(Factors) if "answers" not in one.metadata]


def test_each_factor_that_changes_answers_tells_speeds_apart_and_no_other_does() -> None:
    assert set(CHANGES) == {name for name, factor in FACTORS.items() if factor.answers}
    for name, (rest, value) in CHANGES.items():
        assert join_key(case("infer", **rest)) != join_key(case("infer", **rest | {name: value})), name
    others = [name for name in FACTORS if name not in CHANGES and name != "workload"]
    assert not [name for name in others if name in dict(entry[:2] for entry in join_key(case("infer"))[1:])]


def test_a_factor_that_changes_answers_is_of_a_workload_that_judges() -> None:
    judging = [row for row in WORKLOADS.values() if row.judges is not None]
    assert all(any(row.uses(FACTORS[name].group) for row in judging) for name in CHANGES)


@pytest.mark.parametrize(
    "ran", [{"batch": 32, "iterations": 7}, {"device": "cpu", "threads": 1}, {"build": 2}, {"seq_len": 64}], ids=str
)
def test_how_fast_a_case_runs_keeps_no_accuracy_from_it(ran: dict[str, Any]) -> None:
    assert join_key(case("infer", **ran)) == join_key(case("accuracy"))


@pytest.mark.parametrize("factor", [{"trained_in": "amp-bf16"}, {"training_seed": 3}], ids=str)
def test_a_speed_has_the_accuracy_of_its_own_weights(factor: dict[str, Any]) -> None:
    assert join_key(case("infer", **factor)) == join_key(case("accuracy", **factor))
    assert join_key(case("infer", **factor)) != join_key(case("accuracy"))


def test_a_speed_with_random_weights_has_the_accuracy_of_every_training() -> None:
    """The network that it runs is never trained: inference of it has no data set."""
    speed = case("infer", model="c2p")
    assert join_key(speed) == join_key(case("accuracy", model="c2p"))
    assert join_key(speed) == join_key(case("accuracy", model="c2p", training_seed=3))


def test_images_count_where_ranges_are_found_on_them() -> None:
    named = {"images": "pictures", "sources": (("images", "a" * 64),)}
    for precision, is_same in (("int8", False), ("fp16", True)):
        speed = case("infer", precision=precision, model="resnet50")
        assert (
            join_key(speed) == join_key(case("accuracy", precision=precision, model="resnet50", **named))
        ) is is_same
    weights = {"quantiser": "weight-only", "model": "resnet50"}
    assert join_key(case("infer", **weights)) == join_key(case("accuracy", **weights, **named))


def test_a_speed_that_is_fed_with_samples_has_the_accuracy_on_them() -> None:
    own: dict[str, Any] = {
        "model": "own.onnx",
        "data": "mine.npz",
        "sources": (("data", "a" * 64), ("model", "b" * 64)),
    }
    other = own | {"sources": (("data", "c" * 64), ("model", "b" * 64))}
    for precision, is_same in (("fp32", True), ("int8", False)):
        speed = join_key(case("infer", precision=precision, inputs="data", **own))
        assert speed == join_key(case("accuracy", precision=precision, task="regression", **own))
        assert (speed == join_key(case("accuracy", precision=precision, task="regression", **other))) is is_same


def test_the_content_of_a_file_counts_like_its_name() -> None:
    one, other = (case("infer", model="own.onnx", sources=(("model", digit * 64),)) for digit in "ab")
    assert join_key(one) != join_key(other)


@pytest.mark.parametrize(
    ("case", "headline"),
    [
        pytest.param({"workload": "infer", "model": "digits-cnn"}, "throughput_samples_per_s", id="images"),
        pytest.param({"workload": "infer", "model": "tinylm-tiny"}, "throughput_tokens_per_s", id="tokens"),
        pytest.param({"workload": "infer", "model": "mine.onnx"}, "throughput_samples_per_s", id="a file"),
        pytest.param({"workload": "generate", "model": "tinylm-tiny"}, "output_tokens_per_s", id="generation"),
        pytest.param({"workload": "train", "model": "digits-cnn"}, "throughput_samples_per_s", id="a rate already"),
    ],
)
def test_iterations_of_unequal_numbers_of_samples_compete_by_their_rates(case: dict[str, Any], headline: str) -> None:
    one = Case(**case)
    assert Pair(one.with_factors(batch=8), one).headline == headline
    assert Pair(one.with_factors(precision="fp16"), one).headline == one.headline


def test_a_request_that_arrives_by_itself_is_judged_by_its_wait() -> None:
    served = Case(workload="infer", model="digits-cnn", arrivals="poisson")
    assert Pair(served.with_factors(batch=8), served).headline == "latency_mean_ms"
