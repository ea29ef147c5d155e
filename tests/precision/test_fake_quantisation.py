# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
import torch.nn.functional as functional
from onnx import numpy_helper

from pybench.case import Case
from pybench.catalogue.models import MODELS
from pybench.models.building import build
from pybench.models.export import export_onnx
from pybench.models.images.digits import read_digits
from pybench.precision.audit import audit_onnx
from pybench.precision.execution import open_model
from pybench.precision.fake_quantisation import Rounded, RoundedInput, RoundedWeight, freeze, prepare
from tests.support.making import artefacts_of


def digits() -> tuple[torch.Tensor, torch.Tensor]:
    images = read_digits("train")
    return torch.from_numpy(images.load_all()), torch.from_numpy(images.labels)


@pytest.fixture(scope="module")
def trained() -> torch.nn.Module:
    """The digits network, trained on with rounding for some steps."""
    checkpoint = artefacts_of(Case(workload="infer", model="digits-cnn", runtime="torch"))["checkpoint"]
    model = prepare(build("digits-cnn", checkpoint=checkpoint))
    pixels, labels = digits()
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-3)
    torch.manual_seed(0)
    model.train()
    for chosen in torch.split(torch.randperm(len(labels)), 64)[:10]:
        optimiser.zero_grad()
        functional.cross_entropy(model(pixels[chosen]), labels[chosen]).backward()
        optimiser.step()
    return freeze(model)


def test_the_export_is_symmetric_qdq_around_every_layer(trained: torch.nn.Module, tmp_path: Path) -> None:
    export_onnx(trained, MODELS["digits-cnn"], tmp_path / "qat.onnx", {})
    graph = onnx.load(tmp_path / "qat.onnx").graph
    onnx.checker.check_model(str(tmp_path / "qat.onnx"), full_check=True)
    assert audit_onnx(tmp_path / "qat.onnx", "int8").facts["quantised_nodes"] == 4
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    pairs = [node for node in graph.node if node.op_type == "QuantizeLinear"]
    assert len(pairs) in (4, 8)  # weights are codes already where the exporter folds them
    assert all(not arrays[node.input[2]].any() for node in pairs if len(node.input) > 2)
    assert not any(node.op_type == "BatchNormalization" for node in graph.node)


@pytest.mark.slow
def test_the_file_computes_what_was_trained(trained: torch.nn.Module, tmp_path: Path) -> None:
    export_onnx(trained, MODELS["digits-cnn"], tmp_path / "qat.onnx", {})
    pixels, labels = digits()
    with torch.inference_mode():
        expected = trained(pixels[:64]).numpy()
    found = open_model(tmp_path / "qat.onnx", passes=False).run({"images": pixels[:64].numpy()})[0]
    # A sum that lies on the edge of a code may round either way: one step of one activation, seldom.
    assert np.quantile(np.abs(found - expected), 0.95) < 1e-3
    assert (found.argmax(1) == labels[:64].numpy()).mean() > 0.9


def test_batch_norms_are_folded_without_changing_the_outputs() -> None:
    model, reference = build("digits-cnn", seed=3), build("digits-cnn", seed=3)
    prepare(model)
    assert sum(isinstance(module, Rounded) for module in model.modules()) == 4
    assert not any(isinstance(module, torch.nn.BatchNorm2d) for module in model.modules())
    pixels = digits()[0][:32]
    model.train()
    with torch.no_grad():
        for _ in range(40):
            model(pixels)
    freeze(model)
    with torch.no_grad():
        a, b = reference(pixels), model(pixels)
    assert float((a - b).norm() / a.norm()) < 0.05


def test_gradients_pass_inside_the_range_and_stop_outside() -> None:
    rounding = RoundedInput()
    rounding.amax.fill_(1.0)
    x = torch.tensor([0.5, -0.9, 2.0, -3.0], requires_grad=True)
    rounding.eval()
    rounding(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1, 1, 0, 0]


def test_weights_are_rounded_by_their_own_channel() -> None:
    weight = torch.tensor([[1.27, 0.013], [12.7, 0.06]])
    assert RoundedWeight()(weight).tolist() == [pytest.approx([1.27, 0.01]), pytest.approx([12.7, 0.1])]
