# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from pybench.case import Case
from pybench.errors import InputError
from pybench.precision.audit import audit_onnx
from pybench.precision.flops import count_flops
from pybench.precision.notes import KEPT_KEY
from tests.support.making import artefacts_of
from tests.support.onnx_models import model


def write(path: Path, nodes: list[onnx.NodeProto], shapes: dict[str, list[int | str]], **weights: list[int]) -> Path:
    """A graph whose inputs have these shapes and whose weights are zeros of theirs; its output is `y`."""
    inputs = [(name, 1, shape) for name, shape in shapes.items()]
    zeros = {name: np.zeros(shape, np.float32) for name, shape in weights.items()}
    onnx.save(model(nodes, inputs, [("y", 1, None)], zeros, opset=20, domains={"mine": 1}), path)
    return path


@pytest.fixture(scope="module")
def resnet50() -> Path:
    return artefacts_of(Case(workload="infer", runtime="onnxruntime", model="resnet50"))["model"]


@pytest.mark.slow
def test_resnet50_takes_what_is_published(resnet50: Path) -> None:
    """4.09 billion multiplications with additions at 224x224, as torchvision states: 8.2 GFLOPs."""
    flops = count_flops(resnet50, batch=1, seq_len=1)
    assert sum(flops.values()) == pytest.approx(8.2e9, rel=0.01)
    assert sum(flops.values()) == pytest.approx(2 * 4.089e9, rel=1e-3)
    assert len(flops) == 54
    # the first convolution: 112 x 112 outputs of 64 channels, each a sum over 3 x 7 x 7; the classifier: 2048 x 1000
    assert next(iter(flops.values())) == 2 * 112 * 112 * 64 * 3 * 7 * 7
    assert list(flops.values())[-1] == 2 * 2048 * 1000


@pytest.mark.slow
def test_flops_grow_with_the_batch(resnet50: Path) -> None:
    one, many = (count_flops(resnet50, batch=batch, seq_len=1) for batch in (1, 32))
    assert many == {name: 32 * flops for name, flops in one.items()}


@pytest.mark.slow
def test_a_transformer_with_a_free_sequence_is_counted() -> None:
    """TinyLM small: 4 blocks of width D = 256 at N x T tokens, attention over T, a head of V ids on the last token."""
    path = artefacts_of(Case(workload="infer", runtime="onnxruntime", model="tinylm-small"))["model"]
    n, t, d, v = 2, 64, 256, 32_000
    flops = count_flops(path, batch=n, seq_len=t)
    block = 2 * n * t * d * (3 * d + d + 4 * d + 4 * d) + 2 * 2 * n * t * t * d
    assert sum(flops.values()) == 4 * block + 2 * n * d * v
    assert len(flops) == 4 * 6 + 1


def test_each_operator_worked_by_hand(tmp_path: Path) -> None:
    grouped = helper.make_node("Conv", ["x", "w"], ["a"], "grouped", group=2, pads=[1, 1, 1, 1], strides=[2, 2])
    spread = helper.make_node("ConvTranspose", ["a", "v"], ["b"], "spread", strides=[2, 2])
    flat = helper.make_node("Flatten", ["b"], ["c"], "flat")
    turned = helper.make_node("Gemm", ["u", "c"], ["d"], "turned", transA=1)
    last = helper.make_node("MatMul", ["d", "z"], ["y"], "")
    path = write(
        tmp_path / "all.onnx", [grouped, spread, flat, turned, last], {"x": ["batch", 4, 8, 8]},
        w=[6, 2, 3, 3], v=[6, 5, 2, 2], u=[3, 7], z=[320, 11],
    )  # fmt: skip
    assert count_flops(path, batch=3, seq_len=1) == {
        "grouped": 2 * (3 * 6 * 4 * 4) * (2 * 3 * 3),  # outputs times the sum over 4 / 2 channels and 3 x 3
        "spread": 2 * (3 * 6 * 4 * 4) * (5 * 2 * 2),  # inputs times what each is spread over
        "turned": 2 * (7 * 320) * 3,  # [3, 7] turned, times [3, 320]
        "node_of_y": 2 * (7 * 11) * 320,
    }


def test_a_node_without_a_name_is_called_the_same_by_the_audit(tmp_path: Path) -> None:
    path = write(
        tmp_path / "model.onnx", [helper.make_node("MatMul", ["x", "w"], ["y"], "")], {"x": ["n", 4]}, w=[4, 5]
    )
    model = onnx.load(path)
    model.metadata_props.add(key=KEPT_KEY, value="{}")
    onnx.save(model, path)
    assert audit_onnx(path, "int8").facts["outside_keep_list"] == list(count_flops(path, batch=2, seq_len=1))


def test_a_product_of_two_weights_is_folded_and_not_counted(tmp_path: Path) -> None:
    folded = helper.make_node("MatMul", ["w", "v"], ["u"], "folded")
    used = helper.make_node("MatMul", ["x", "u"], ["y"], "used")
    path = write(tmp_path / "folded.onnx", [folded, used], {"x": ["batch", 4]}, w=[4, 5], v=[5, 6])
    assert count_flops(path, batch=2, seq_len=1) == {"used": 2 * 2 * 6 * 4}


def test_shapes_that_nothing_tells_are_refused_by_name(tmp_path: Path) -> None:
    unknown = helper.make_node("Mystery", ["x"], ["a"], "mystery", domain="mine")
    used = helper.make_node("MatMul", ["a", "w"], ["y"], "used")
    path = write(tmp_path / "unknown.onnx", [unknown, used], {"x": ["batch", 4]}, w=[4, 5])
    with pytest.raises(InputError, match="the shape of a cannot be inferred, which the MatMul node used needs"):
        count_flops(path, batch=2, seq_len=1)


def test_sizes_that_a_reshape_does_not_fit_are_refused(tmp_path: Path) -> None:
    """The inference of shapes believes the constant, which an exporter took of the sizes that it was given."""
    fixed = helper.make_node("Constant", [], ["wanted"], value_ints=[8, 4])
    used = [helper.make_node("Reshape", ["x", "wanted"], ["a"], "flat"), helper.make_node("MatMul", ["a", "w"], ["y"])]
    path = write(tmp_path / "reshape.onnx", [fixed, *used], {"x": ["batch", "tokens", 4]}, w=[4, 5])
    with pytest.raises(InputError, match="the Reshape node flat reshapes 40 elements to 32"):
        count_flops(path, batch=2, seq_len=5)
    assert sum(count_flops(path, batch=2, seq_len=4).values()) == 2 * 8 * 5 * 4


def test_sizes_are_computed_from_weights_in_other_files(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Div", ["shape", "groups"], ["wanted"]),  # the inference of ONNX does not follow a Div
        helper.make_node("Reshape", ["x", "wanted"], ["a"]),
        helper.make_node("MatMul", ["a", "w"], ["y"], "used"),
    ]
    weights = {"groups": np.ones(2, np.int64), "w": np.zeros((4, 5), np.float32)}
    content = model(nodes, [("x", 1, ["batch", 4])], [("y", 1, None)], weights, opset=20)
    beside = {"save_as_external_data": True, "location": "weights.bin", "size_threshold": 0}
    onnx.save(content, tmp_path / "model.onnx", **beside)
    (tmp_path / "twin.bin").hardlink_to(tmp_path / "weights.bin")  # as in a store without duplicates
    assert count_flops(tmp_path / "model.onnx", batch=3, seq_len=1) == {"used": 2 * 3 * 5 * 4}
    (tmp_path / "weights.bin").unlink()
    with pytest.raises(InputError, match=r"model\.onnx"):
        count_flops(tmp_path / "model.onnx", batch=3, seq_len=1)


def test_a_file_that_is_no_onnx_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"\xff\xfe no model")
    with pytest.raises(InputError, match=r"model\.onnx"):
        count_flops(tmp_path / "model.onnx", batch=1, seq_len=1)
