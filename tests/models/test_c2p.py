# SPDX-License-Identifier: Apache-2.0
"""The networks that give a fluid's pressure, and their training."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from pybench.catalogue.models import MODELS
from pybench.models.building import build
from pybench.models.fluid_states import COUNTS, draw_inputs, open_states
from pybench.models.samples import open_samples
from pybench.models.training.fluid_states import train_pressures
from tests.models.parameters import parameter_count


@pytest.mark.parametrize(
    ("name", "parameters"), [("c2p", 4 * 600 + 601 * 200 + 201), ("c2p-small", 4 * 128 + 129 * 64 + 65)]
)
def test_the_network_has_the_layers_of_its_row(name: str, parameters: int) -> None:
    model = build(name)
    assert parameter_count(model) == parameters
    assert MODELS[name].multiply_adds == pytest.approx(parameters, rel=0.05)
    with torch.inference_mode():
        assert model(torch.from_numpy(draw_inputs(5, 1)).float()).shape == (5, 1)


def test_features_are_about_one_over_the_ranges_of_states() -> None:
    model = build("c2p-small")
    seen: list[torch.Tensor] = []
    model.get_submodule("fc1").register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    with torch.inference_mode():
        model(torch.from_numpy(draw_inputs(5000, 1)).float())
    assert seen[0].abs().amax(dim=0).min() > 0.6
    assert seen[0].abs().max() < 2.0


def test_what_trains_does_not_judge() -> None:
    train, judge = (open_samples("fluid-states", split, MODELS["c2p"]) for split in ("train", "validation"))
    assert (len(train), len(judge)) == (COUNTS["train"], COUNTS["validation"])
    assert judge.dtype == np.float64
    assert not set(train.load(np.arange(1000))[:, 0]) & set(judge.load(np.arange(1000))[:, 0])


@pytest.mark.slow
def test_a_short_training_learns_and_repeats_itself() -> None:
    row = MODELS["c2p-small"]
    states, judge = open_states("train", row), open_states("validation", row).limited(500)
    torch.set_num_threads(1)
    models = [train_pressures(build(row, seed=1), states, 1, steps=300) for _ in range(2)]
    conserved = torch.from_numpy(judge.load(np.arange(500))).float()
    with torch.inference_mode():
        found = [model(conserved).numpy() for model in (*models, build(row, seed=1))]
    np.testing.assert_array_equal(found[0], found[1])
    errors = [float(np.abs(one - judge.all_truth()).mean()) for one in found]
    assert errors[0] < 0.1 * errors[2]
    assert errors[0] < 0.1 * float(judge.all_truth().mean())


def test_an_exported_network_computes_what_torch_computes(tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    from pybench.models.export import export_onnx

    row = MODELS["c2p-small"]
    module, states = build(row), draw_inputs(7, 2).astype(np.float32)
    export_onnx(module, row, tmp_path / "c2p.onnx", {})
    session = onnxruntime.InferenceSession(tmp_path / "c2p.onnx", providers=["CPUExecutionProvider"])
    with torch.inference_mode():
        expected = module(torch.from_numpy(states)).numpy()
    np.testing.assert_allclose(session.run(None, {row.input: states})[0], expected, rtol=1e-4, atol=1e-6)
