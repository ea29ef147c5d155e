# SPDX-License-Identifier: Apache-2.0
"""The stack of blocks: what its factors shape, and what its row says of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from pybench.campaign.recipe import recipes_of
from pybench.case import Case, case_from_json, case_to_json
from pybench.catalogue.blocks import BLOCKS
from pybench.catalogue.models import MODELS
from pybench.models.building import build
from tests.models.parameters import parameter_count
from tests.support.making import run

STACK = Case(workload="infer", model="stack", runtime="onnxruntime", width=32, depth=2)


@pytest.mark.parametrize("block", BLOCKS)
def test_the_row_counts_the_operations_that_the_layers_do(block: str) -> None:
    row = STACK.with_factors(block_type=block, depth=3, width=64).model_row
    assert row is not None
    with torch.inference_mode(), torch.device("cpu"), FlopCounterMode(display=False) as counter:
        logits = build(row)(torch.zeros(1, *row.shape))
    assert logits.shape == (1, 10)
    assert 2 * row.multiply_adds == pytest.approx(counter.get_total_flops())


def test_the_row_without_arguments_is_of_the_usual_shape() -> None:
    usual = Case(workload="infer", model="stack", runtime="torch").model_row
    assert usual is not None
    assert usual.multiply_adds == pytest.approx(MODELS["stack"].multiply_adds, rel=0.01)


def test_depth_adds_equal_blocks() -> None:
    counts = [
        parameter_count(build(row))
        for depth in (1, 2, 3)
        if (row := STACK.with_factors(depth=depth).model_row) is not None
    ]
    assert counts[2] - counts[1] == counts[1] - counts[0] == 9 * 32**2 + 2 * 32


def test_the_shape_is_part_of_the_case_and_of_what_is_made_for_it() -> None:
    deep = STACK.with_factors(depth=5, block_type="mlp")
    assert deep.id != STACK.id
    assert case_from_json(case_to_json(deep)) == deep
    parameters = dict(recipes_of(deep)["model"].parameters)
    assert (parameters["block_type"], parameters["depth"], parameters["width"]) == ("mlp", 5, 32)
    assert recipes_of(deep)["model"].digest != recipes_of(STACK)["model"].digest
    assert "depth" not in dict(recipes_of(STACK.with_factors(model="mlp"))["model"].parameters)
    assert "conv depth=2 width=32" in STACK.title()  # though a conv is the usual block


@pytest.mark.parametrize("block", BLOCKS)
def test_an_exported_stack_computes_what_torch_computes(block: str, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    from pybench.models.export import export_onnx

    row = STACK.with_factors(block_type=block).model_row
    assert row is not None
    module, images = build(row), torch.randn(3, *row.shape, generator=torch.Generator().manual_seed(1))
    export_onnx(module, row, tmp_path / "stack.onnx", {})
    session = onnxruntime.InferenceSession(tmp_path / "stack.onnx", providers=["CPUExecutionProvider"])
    with torch.inference_mode():
        expected = module(images).numpy()
    np.testing.assert_allclose(session.run(None, {"images": images.numpy()})[0], expected, rtol=1e-4, atol=1e-5)


def test_a_stack_is_timed_as_any_model() -> None:
    result = run(STACK.with_factors(runtime="torch", device="cpu", threads=1, iterations=2, warmup_iterations=1))
    assert (result.metrics["latency_mean_ms"].value or 0) > 0
