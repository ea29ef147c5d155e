# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pybench.case import Case
from pybench.recipe import in_making_order, recipes_of

INT8 = Case(workload="infer", model="digits-cnn", runtime="onnxruntime", precision="int8")


def test_an_int8_case_needs_its_whole_chain_in_order() -> None:
    kinds = [recipe.kind for recipe in in_making_order(recipes_of(INT8))]
    assert kinds == ["checkpoint", "onnx", "onnx-int8"]


def test_cases_that_differ_in_batch_or_workload_share_their_artefact() -> None:
    others = [INT8.with_factors(batch=64), INT8.with_factors(workload="accuracy"), INT8.with_factors(threads=1)]
    assert {recipes_of(case)["model"].digest for case in [INT8, *others]} == {recipes_of(INT8)["model"].digest}


def test_another_calibration_is_another_artefact_on_the_same_export() -> None:
    other = recipes_of(INT8.with_factors(calibration="entropy"))["model"]
    assert other.digest != recipes_of(INT8)["model"].digest
    assert other.needs == recipes_of(INT8)["model"].needs


def test_a_users_own_file_is_part_of_the_address() -> None:
    own = Case(
        workload="infer", model="own.onnx", runtime="onnxruntime", precision="int8", sources=(("model", "a" * 64),)
    )
    assert recipes_of(own)["model"].files == (("model", "own.onnx"),)
    assert (
        recipes_of(own)["model"].digest != recipes_of(own.with_factors(sources=(("model", "b" * 64),)))["model"].digest
    )
    assert recipes_of(own.with_factors(precision="fp32")) == {}


def test_torch_needs_weights_only_where_there_is_something_to_train() -> None:
    assert [*recipes_of(Case(workload="infer", model="digits-cnn", runtime="torch"))] == ["checkpoint"]
    assert recipes_of(Case(workload="infer", model="resnet50", runtime="torch")) == {}
    assert recipes_of(Case(workload="h2d")) == {}


def test_a_users_checkpoint_is_read_from_its_path_and_addressed_by_its_content() -> None:
    own = Case(
        workload="infer",
        model="digits-cnn",
        runtime="onnxruntime",
        checkpoint="mine/weights.pt",
        sources=(("checkpoint", "a" * 64),),
    )
    recipe = recipes_of(own)["model"]
    assert recipe.files == (("checkpoint", "mine/weights.pt"),)
    assert recipe.digest == recipes_of(own.with_factors(checkpoint="copy.pt"))["model"].digest
    assert recipe.digest != recipes_of(own.with_factors(sources=(("checkpoint", "b" * 64),)))["model"].digest
