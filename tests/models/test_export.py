# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from torch import nn

from pybench.catalogue.models import MODELS
from pybench.models.building import build
from pybench.models.distilbert import DistilBert
from pybench.models.export import OPSET, export_onnx
from pybench.models.mlp import Mlp
from pybench.models.resnet50 import ResNet50
from pybench.models.tinylm import Size, TinyLm
from pybench.models.unet3d import Unet3d
from pybench.models.vgg import Vgg16, Vgg16Cifar10
from pybench.runtimes import onnxruntime

pytestmark = pytest.mark.slow  # exports models


@pytest.mark.slow
def test_two_exports_are_equal_and_hold_no_path_of_this_machine(tmp_path: Path) -> None:
    for name in ("one", "two"):
        export_onnx(build("digits-cnn"), MODELS["digits-cnn"], tmp_path / f"{name}.onnx", {"pybench.weights": "random"})
    content = (tmp_path / "one.onnx").read_bytes()
    assert content == (tmp_path / "two.onnx").read_bytes()
    assert b"site-packages" not in content
    assert str(Path.home()).encode() not in content
    assert b"digits_cnn.py" not in content


def test_an_export_has_a_free_batch_and_gives_what_torch_gives(tmp_path: Path) -> None:
    model = build("digits-cnn", seed=2)
    export_onnx(model, MODELS["digits-cnn"], tmp_path / "model.onnx", {"a": "b"})
    stored = onnx.load(tmp_path / "model.onnx")
    onnx.checker.check_model(stored, full_check=True)
    assert stored.opset_import[0].version == OPSET
    assert {entry.key: entry.value for entry in stored.metadata_props} == {"a": "b"}
    session = onnxruntime.open_session(tmp_path / "model.onnx", precision="fp32", threads=1, device="cpu")
    assert session.inputs[0].shape == (None, 1, 8, 8)
    for batch in (1, 7):
        pixels = np.random.default_rng(batch).random((batch, 1, 8, 8), np.float32)
        with torch.inference_mode():
            expected = model(torch.from_numpy(pixels)).numpy()
        assert np.allclose(session.run({"images": pixels})[0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "module", "shape"),
    [
        pytest.param("mobilenet-v1", lambda: build("mobilenet-v1", outputs=7), (3, 32, 32), marks=pytest.mark.slow),
        pytest.param("mobilenet-v2", lambda: build("mobilenet-v2", outputs=7), (3, 32, 32), marks=pytest.mark.slow),
        ("unet3d", lambda: Unet3d(width=4), (1, 16, 8, 24)),
        ("mlp", Mlp, (64,)),
        pytest.param("resnet50", ResNet50, (3, 224, 224), marks=pytest.mark.slow),
        pytest.param("vgg16", Vgg16, (3, 224, 224), marks=pytest.mark.slow),
        pytest.param("vgg16-cifar10", Vgg16Cifar10, (3, 32, 32), marks=pytest.mark.slow),
    ],
)
def test_onnxruntime_gives_what_torch_gives(
    tmp_path: Path, name: str, module: Callable[[], nn.Module], shape: tuple[int, ...]
) -> None:
    torch.manual_seed(0)
    model = module().eval()
    row = replace(MODELS[name], shape=shape)
    export_onnx(model, row, tmp_path / "model.onnx", {})
    stored = onnx.load(tmp_path / "model.onnx")
    assert not {"BatchNormalization", "Identity"} & {node.op_type for node in stored.graph.node}
    session = onnxruntime.open_session(tmp_path / "model.onnx", precision="fp32", threads=1, device="cpu")
    assert session.inputs[0].shape == (None, *shape)
    given = np.random.default_rng(0).standard_normal((3, *shape), dtype=np.float32)
    with torch.inference_mode():
        expected = model(torch.from_numpy(given)).numpy()
    assert np.abs(expected).max() > 1e-3, "an untrained model whose outputs vanish compares nothing"
    assert np.allclose(session.run({row.input: given})[0], expected, rtol=1e-3, atol=1e-4)


def test_nodes_are_named_after_the_module_they_come_from(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = DistilBert(layers=1).eval()
    export_onnx(model, MODELS["distilbert"], tmp_path / "encoder.onnx", {})
    nodes = onnx.load(tmp_path / "encoder.onnx").graph.node
    names = [node.name for node in nodes]
    assert len(set(names)) == len(names)
    attention = "distilbert.transformer.layer.0.attention"
    products = [node.name for node in nodes if node.op_type in ("MatMul", "Gemm")]
    assert products == [
        f"{attention}.q_lin/MatMul", f"{attention}.k_lin/MatMul", f"{attention}.v_lin/MatMul",
        f"{attention}/MatMul", f"{attention}/MatMul_2", f"{attention}.out_lin/MatMul",
        "distilbert.transformer.layer.0.ffn.lin1/MatMul", "distilbert.transformer.layer.0.ffn.lin2/MatMul",
        "pre_classifier/Gemm", "classifier/Gemm",
    ]  # fmt: skip
    session = onnxruntime.open_session(tmp_path / "encoder.onnx", precision="fp32", threads=1, device="cpu")
    for shape in ((1, 2), (3, 33)):
        ids = np.random.default_rng(0).integers(0, 30_000, shape)
        with torch.inference_mode():
            expected = model(torch.from_numpy(ids)).numpy()
        assert np.allclose(session.run({"ids": ids})[0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [pytest.param("distilbert", marks=pytest.mark.slow), "tinylm-small"])
def test_equal_weights_of_new_norms_do_not_change_names(name: str, tmp_path: Path) -> None:
    model = DistilBert(layers=2) if name == "distilbert" else TinyLm(Size(64, 2, 1), vocabulary=90)
    names = []
    for state in ("new", "trained"):
        if state == "trained":
            for position, parameter in enumerate(model.parameters()):
                parameter.data += 0.001 * (position + 1)
        export_onnx(model, MODELS[name], tmp_path / f"{state}.onnx", {})
        names.append([node.name for node in onnx.load(tmp_path / f"{state}.onnx").graph.node])
    assert names[0] == names[1]


def test_a_folded_convolution_is_named_by_itself_and_not_by_its_norm(tmp_path: Path) -> None:
    export_onnx(build("digits-cnn"), MODELS["digits-cnn"], tmp_path / "model.onnx", {})
    names = [node.name for node in onnx.load(tmp_path / "model.onnx").graph.node]
    assert names[:4] == ["conv1/Conv", "relu/Relu", "conv2/Conv", "relu/Relu_2"]


def test_a_language_model_is_exported_with_a_free_sequence(tmp_path: Path) -> None:
    model = TinyLm(Size(64, 1, 1), vocabulary=90).eval()
    export_onnx(model, MODELS["tinylm-small"], tmp_path / "lm.onnx", {})
    session = onnxruntime.open_session(tmp_path / "lm.onnx", precision="fp32", threads=1, device="cpu")
    for shape in ((1, 5), (3, 33)):
        ids = np.random.default_rng(0).integers(0, 90, shape)
        with torch.inference_mode():
            expected = model(torch.from_numpy(ids)).numpy()
        assert np.allclose(session.run({"ids": ids})[0], expected, rtol=1e-4, atol=1e-5)
