# SPDX-License-Identifier: Apache-2.0
"""Image models at other sizes of images than their own."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from pybench.campaign.recipe import recipes_of
from pybench.case import Case, case_from_json, case_to_json
from pybench.catalogue.models import MODELS, Model
from pybench.models.building import build
from pybench.models.export import export_onnx
from tests.models.parameters import parameter_count
from tests.support.making import run

SIZED = [row for row in MODELS.values() if row.least_size is not None]


@pytest.mark.parametrize("row", SIZED, ids=lambda row: row.name)
def test_a_model_takes_its_least_size(row: Model) -> None:
    small = row.at_size(row.least_size)
    with torch.inference_mode():
        logits = build(small)(torch.zeros(1, *small.shape))
    assert logits.shape == (1, row.outputs)


def test_the_first_linear_layer_of_vgg16_has_the_inputs_that_its_features_give() -> None:
    with torch.device("meta"):
        counts = {size: MODELS["vgg16"].at_size(size) for size in (48, 128, 224)}
        layers = {size: build(row, outputs=10).get_submodule("classifier.0") for size, row in counts.items()}
    assert [layer.in_features for layer in layers.values()] == [512, 8192, 25088]
    assert parameter_count(build(counts[48], outputs=10)) == 33_638_218


@pytest.mark.slow
def test_vgg16_at_48_is_exported_without_a_chain_that_computes_windows(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    small = MODELS["vgg16"].at_size(48)
    module = build(small)
    module.classifier = module.get_submodule("classifier")[:1]  # type: ignore[index]  # the rest is large and says nothing
    export_onnx(module, small, tmp_path / "vgg16.onnx", {})
    operators = {node.op_type for node in onnx.load(tmp_path / "vgg16.onnx").graph.node}
    assert "Conv" in operators
    assert not {"Gather", "GatherND", "Where"} & operators


def test_operations_grow_with_the_pixels() -> None:
    row = MODELS["resnet50"]
    assert row.at_size(112).multiply_adds == row.multiply_adds / 4
    assert row.at_size(224) is row
    assert MODELS["tinylm-tiny"].at_size(48) is MODELS["tinylm-tiny"]


def test_a_models_own_size_is_the_same_case() -> None:
    case = Case(workload="infer", model="resnet50", runtime="onnxruntime")
    assert case.with_factors(image_size=224) == case
    small = case.with_factors(image_size=48)
    assert small.id != case.id
    assert case_from_json(case_to_json(small)) == small
    assert small.model_row is not None
    assert small.model_row.shape == (3, 48, 48)


def test_what_is_made_of_a_model_depends_on_the_size_only_where_it_is_set() -> None:
    case = Case(workload="infer", model="resnet50", runtime="onnxruntime", precision="int8")
    recipe, small = recipes_of(case)["model"], recipes_of(case.with_factors(image_size=48))["model"]
    assert "image_size" not in dict(recipe.parameters)
    assert dict(small.parameters)["image_size"] == 48
    assert dict(dict(small.needs)["onnx"].parameters)["image_size"] == 48


def test_training_makes_no_weights_first_unless_it_is_asked_to() -> None:
    train = Case(workload="train", model="digits-cnn", runtime="torch")
    assert recipes_of(train) == {}
    assert "checkpoint" in recipes_of(train.with_factors(checkpoint="synthetic-100"))


@pytest.mark.parametrize("runtime", ["torch", "onnxruntime"])
def test_an_image_model_infers_at_another_size(runtime: str) -> None:
    case = Case(
        workload="infer", model="digits-cnn", runtime=runtime, image_size=16, device="cpu", threads=1, iterations=2,
        warmup_iterations=0, idle_window_s=0.0, batch=2,
    )  # fmt: skip
    assert run(case).metrics["throughput_samples_per_s"].value > 0
