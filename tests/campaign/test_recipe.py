# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pybench.campaign.recipe import Recipe, in_making_order, packages_of, recipes_of
from pybench.case import Case
from pybench.case.data import data_of
from pybench.case.quantising import quantiser_of

INT8 = Case(workload="infer", model="digits-cnn", runtime="onnxruntime", precision="int8")


def test_an_int8_case_needs_its_whole_chain_in_order() -> None:
    kinds = [recipe.kind for recipe in in_making_order(recipes_of(INT8))]
    assert kinds == ["checkpoint", "onnx", "onnx-quantised"]


def test_cases_that_differ_in_batch_or_workload_share_their_artefact() -> None:
    others = [INT8.with_factors(batch=64), INT8.with_factors(workload="accuracy"), INT8.with_factors(threads=1)]
    assert {recipes_of(case)["model"].digest for case in [INT8, *others]} == {recipes_of(INT8)["model"].digest}


def test_another_calibration_is_another_artefact_on_the_same_export() -> None:
    other = recipes_of(INT8.with_factors(calibration="percentile"))["model"]
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


def test_a_decoders_file_has_its_cache_where_it_generates_and_no_other_file_changes() -> None:
    generating = Case(workload="generate", model="tinylm-tiny", runtime="onnxruntime")
    recipes = [recipes_of(case)["model"] for case in (generating, generating.with_factors(workload="infer"))]
    assert [dict(recipe.parameters).get("cached") for recipe in recipes] == [True, None]
    assert recipes[0].digest != recipes[1].digest
    assert recipes_of(generating.with_factors(new_tokens=9, batch=4))["model"] == recipes[0]


def test_weights_trained_on_the_generated_set_are_an_artefact_and_bring_its_images() -> None:
    case = Case(workload="accuracy", model="resnet50", runtime="onnxruntime", precision="int8",
                checkpoint="synthetic-100")  # fmt: skip
    kinds = [recipe.kind for recipe in in_making_order(recipes_of(case))]
    assert kinds == ["checkpoint", "onnx", "onnx-quantised"]
    checkpoint = in_making_order(recipes_of(case))[0]
    assert dict(checkpoint.parameters)["images"] == 500_000
    assert dict(recipes_of(case)["model"].parameters)["images"] == "synthetic-100"
    assert data_of(case) == "synthetic-100"
    assert data_of(case.with_factors(images="mine")) == "mine"
    assert data_of(case.with_factors(checkpoint="mine.pt")) is None


def test_parts_have_engines_of_their_own_which_are_those_of_any_number_of_heads() -> None:
    streams = Case(workload="infer", model="vit-heads", runtime="tensorrt", dispatch="streams", precision="fp16")
    found = recipes_of(streams.with_factors(heads=6), "a GPU")
    assert list(found) == ["engine-backbone", "engine-depth", "engine-boxes", "engine-classes"]
    assert found == recipes_of(streams.with_factors(heads=4), "a GPU")
    assert recipes_of(streams.with_factors(heads=1), "a GPU") == {role: found[role] for role in list(found)[:2]}
    kinds = [recipe.kind for recipe in in_making_order(found)]
    assert sorted(kinds) == sorted(4 * ["onnx", "onnx-converted", "engine"])
    assert {dict(recipe.parameters)["part"] for recipe in in_making_order({"": found["engine-boxes"]})} == {"boxes"}


def test_weights_of_a_file_are_of_so_many_heads_and_other_dispatches_and_runtimes_open_models_whole() -> None:
    streams = Case(workload="infer", model="vit-heads", runtime="tensorrt", dispatch="streams")
    own = streams.with_factors(heads=2, checkpoint="own.pt", sources=(("checkpoint", "a" * 64),))
    assert dict(recipes_of(own, "a GPU")["engine-depth"].parameters)["heads"] == 2
    assert list(recipes_of(streams.with_factors(dispatch="one-engine"), "a GPU")) == ["engine"]
    assert streams.with_factors(runtime="torch").parts is None
    assert streams.with_factors(model="mlp").parts is None


def test_an_engine_is_bound_to_a_sequence_only_where_the_model_takes_one() -> None:
    engines = {
        name: dict(recipes_of(Case(workload="infer", model=name, runtime="tensorrt"), "a GPU")["engine"].parameters)
        for name in ("resnet50", "distilbert", "tinylm-small", "unet3d", "mlp")
    }
    assert {name: parameters["seq_len"] for name, parameters in engines.items()} == {
        "resnet50": None, "distilbert": 128, "tinylm-small": 128, "unet3d": None, "mlp": None,
    }  # fmt: skip


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


TENSORRT = INT8.with_factors(runtime="tensorrt")


def kinds_of(case: Case) -> list[str]:
    return [recipe.kind for recipe in in_making_order(recipes_of(case, "TensorRT 10.6.0 on a GPU"))]


def test_an_engine_is_built_from_a_graph_in_its_precision() -> None:
    assert kinds_of(TENSORRT.with_factors(precision="fp32")) == ["checkpoint", "onnx", "engine"]
    assert kinds_of(TENSORRT.with_factors(precision="bf16")) == ["checkpoint", "onnx", "onnx-converted", "engine"]
    chain = ["checkpoint", "onnx", "calibration", "onnx-quantised", "engine"]
    assert kinds_of(TENSORRT) == kinds_of(TENSORRT.with_factors(precision="fp8+fp16")) == chain
    assert kinds_of(TENSORRT.with_factors(quantiser="modelopt")) == [kind for kind in chain if kind != "calibration"]

    aware = TENSORRT.with_factors(quantiser="qat", precision="int8+fp16")
    assert kinds_of(aware) == [kind for kind in chain if kind != "calibration"]
    quantised = dict(recipes_of(aware, "here")["engine"].needs)["onnx"]
    assert set(dict(quantised.needs)) == {"onnx", "checkpoint"}


def test_tf32_and_fp32_are_two_engines_of_one_graph() -> None:
    fp32, tf32 = (recipes_of(TENSORRT.with_factors(precision=name), "here")["engine"] for name in ("fp32", "tf32"))
    assert fp32.needs == tf32.needs
    assert fp32.digest != tf32.digest


def test_int8_and_fp8_share_their_ranges() -> None:
    quantised = [
        dict(recipes_of(TENSORRT.with_factors(precision=name), "here")["engine"].needs)["onnx"]
        for name in ("int8", "fp8+fp16")
    ]
    assert len({dict(each.needs)["calibration"].digest for each in quantised}) == 1
    assert len({each.digest for each in quantised}) == 2


def test_an_engine_belongs_to_its_platform_batch_and_build() -> None:
    engines = [
        recipes_of(TENSORRT, "TensorRT 10.6.0 on a GPU"),
        recipes_of(TENSORRT, "TensorRT 11.4.0 on a GPU"),
        recipes_of(TENSORRT.with_factors(batch=8), "TensorRT 10.6.0 on a GPU"),
        recipes_of(TENSORRT.with_factors(build=2), "TensorRT 10.6.0 on a GPU"),
    ]
    assert len({engine["engine"].digest for engine in engines}) == 4


def test_a_placement_that_was_measured_belongs_to_its_platform_and_shapes_and_not_to_its_build() -> None:
    searched = TENSORRT.with_factors(quantiser="modelopt-autotune")
    usual = graph_of(searched, "TensorRT 10.6.0 on a GPU")
    assert set(usual.parameters) >= {("platform", "TensorRT 10.6.0 on a GPU"), ("search", "default"), ("batch", 1)}
    others = [
        graph_of(searched, "TensorRT 10.9.0 on a GPU"),
        graph_of(searched, "TensorRT 10.6.0 on another GPU"),
        graph_of(searched.with_factors(batch=8), "TensorRT 10.6.0 on a GPU"),
    ]
    assert len({usual.digest, *(other.digest for other in others)}) == 4
    assert graph_of(searched.with_factors(build=2), "TensorRT 10.6.0 on a GPU") == usual
    by_rules = [graph_of(TENSORRT.with_factors(quantiser="modelopt"), platform) for platform in ("here", "there")]
    assert by_rules[0] == by_rules[1]
    assert {"modelopt", "tensorrt"} <= set(packages_of(searched))


def graph_of(case: Case, platform: str) -> Recipe:
    return dict(recipes_of(case, platform)["engine"].needs)["onnx"]


def test_an_engine_is_compared_with_the_fp32_graph_on_images_that_only_a_calibration_lets_a_case_choose() -> None:
    for precision, shared in (("fp32", True), ("fp16", True), ("int8", False)):
        cases = [TENSORRT.with_factors(precision=precision, images=images) for images in (None, "synthetic-100")]
        engines = [recipes_of(case, "here")["engine"] for case in cases]
        assert (engines[0].digest == engines[1].digest) is shared
        origin = dict(engines[0].needs).get("origin")
        assert (origin.kind if origin else None) == (None if precision == "fp32" else "onnx")


def test_a_users_own_graph_is_built_as_it_is() -> None:
    own = Case(workload="infer", model="own.onnx", runtime="tensorrt", sources=(("model", "a" * 64),))
    engine = recipes_of(own, "here")["engine"]
    assert (engine.needs, engine.files) == ((), (("model", "own.onnx"),))


def test_tensorrt_inside_onnxruntime_gets_symmetric_ranges() -> None:
    inside = INT8.with_factors(provider="tensorrt")
    assert {quantiser_of(case).name for case in (INT8, INT8.with_factors(provider="cpu"))} == {"onnxruntime"}
    assert quantiser_of(inside).name == "pybench"
    assert recipes_of(inside)["model"] == recipes_of(TENSORRT, "here")["engine"].needs[0][1]


def test_what_has_to_be_installed_follows_from_what_is_made() -> None:
    assert packages_of(Case(workload="noop")) == ()
    assert packages_of(Case(workload="tokenize", path="hf")) == ("hf",)
    assert packages_of(INT8) == ("onnxruntime", "torch", "onnx", "onnxscript")
    assert packages_of(INT8.with_factors(quantiser="modelopt"))[-1] == "modelopt"
    own = Case(workload="infer", model="own.onnx", runtime="tensorrt", sources=(("model", "a" * 64),))
    assert packages_of(own) == ("tensorrt", "cuda_python", "onnx", "onnxruntime")
    assert packages_of(own.with_factors(runtime="onnxruntime")) == ("onnxruntime",)


def test_a_line_for_people_has_no_seed_and_no_hash() -> None:
    assert [recipe.title() for recipe in in_making_order(recipes_of(INT8))] == [
        "checkpoint digits-cnn digits",
        "onnx digits-cnn",
        "onnx-quantised digits-cnn int8 onnxruntime asymmetric minmax calibration_images=100 digits",
    ]
