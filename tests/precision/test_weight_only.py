# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from pybench.errors import InputError, UnsupportedError
from pybench.onnx_file.graph import read_graph
from pybench.onnx_file.products import stored_products
from pybench.precision.audit import audit_onnx
from pybench.precision.execution import open_model
from pybench.precision.weight_only import ACCURACY_LEVEL, store_weights
from tests.precision import graphs
from tests.support.reasons import codes_of

BLOCK, COLUMNS = 16, 8
Floats = npt.NDArray[np.float32]


def products(weight: Floats, times: int = 1) -> onnx.ModelProto:
    """x [rows, K] times one weight [K, N], as often as told; each product has an output of its own."""
    nodes = [helper.make_node("MatMul", ["x", "weight"], [f"y{n}"], f"product{n}") for n in range(times)]
    outputs = [
        helper.make_tensor_value_info(f"y{n}", TensorProto.FLOAT, ["rows", weight.shape[1]]) for n in range(times)
    ]
    fed = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", weight.shape[0]])]
    graph = helper.make_graph(nodes, "products", fed, outputs, [numpy_helper.from_array(weight, "weight")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize(("kind", "levels"), [("int8", 255), ("int4", 15)])
@pytest.mark.parametrize("scheme", ["asymmetric", "symmetric"])
def test_every_weight_is_within_a_step_of_its_block(kind: str, levels: int, scheme: str, tmp_path: Path) -> None:
    """Unit vectors read the weights out of the file. A step is the range of the block over its codes."""
    weight = np.random.default_rng(3).standard_normal((2 * BLOCK, COLUMNS)).astype(np.float32)
    weight[:BLOCK] *= 100  # blocks with large weights next to blocks with small ones
    source = graphs.saved(products(weight), tmp_path / "plain.onnx")
    path = tmp_path / "stored.onnx"
    assert store_weights(source, path, kind, block_size=BLOCK, scheme=scheme) == {}
    read = open_model(path).run({"x": np.eye(2 * BLOCK, dtype=np.float32)})[0]
    blocks = weight.reshape(2, BLOCK, COLUMNS)
    reach = np.maximum(blocks.max(1), 0) - np.minimum(blocks.min(1), 0)
    if scheme == "symmetric":
        reach = 2 * np.abs(blocks).max(1)
    error = np.abs(read.reshape(blocks.shape) - blocks).max(1)
    assert np.all(error <= 1.01 * reach / levels)
    assert np.any(error > 0.1 * reach / levels)


def test_the_file_says_how_its_weights_are_stored_and_keeps_names(tmp_path: Path) -> None:
    weight = np.random.default_rng(3).standard_normal((64, COLUMNS)).astype(np.float32)
    source = graphs.saved(products(weight, times=2), tmp_path / "plain.onnx")
    path = tmp_path / "stored.onnx"
    store_weights(source, path, "int4", block_size=32)
    found = stored_products(read_graph(path))
    assert [product.name for product in found] == ["product0", "product1"]
    assert {(each.bits, each.block_size, each.accuracy_level, each.weights) for each in found} == {
        (4, 32, ACCURACY_LEVEL, 64 * COLUMNS)
    }
    names = [tensor.name for tensor in onnx.load(path).graph.initializer]
    assert len(names) == len(set(names)), "a weight that two products read is stored once"
    first, second = open_model(path).run({"x": np.eye(64, dtype=np.float32)})
    assert np.array_equal(first, second)


def test_a_stored_file_is_neither_fp32_nor_of_other_bits(tmp_path: Path) -> None:
    weight = np.ones((64, COLUMNS), np.float32)
    source = graphs.saved(products(weight), tmp_path / "plain.onnx")
    path = tmp_path / "stored.onnx"
    store_weights(source, path, "int4", block_size=32)
    found = audit_onnx(path, "int4")
    assert (found.valid, found.realised) == (
        True, "weights alone in int4: 1 of 1 products, 100% of their weights, blocks of 32",
    )  # fmt: skip
    assert codes_of(audit_onnx(path, "fp32").reasons) == ("quantised_nodes",)
    assert codes_of(audit_onnx(path, "int8").reasons) == ("not_quantised",)
    assert codes_of(audit_onnx(source, "int4").reasons) == ("not_quantised",)


def test_what_is_kept_keeps_its_weights(tmp_path: Path) -> None:
    source = graphs.saved(products(np.ones((64, COLUMNS), np.float32), times=2), tmp_path / "plain.onnx")
    path = tmp_path / "stored.onnx"
    assert store_weights(source, path, "int8", block_size=32, excluded=["product1"]) == {"product1": "keep_fp32"}
    assert [product.name for product in stored_products(read_graph(path))] == ["product0"]
    with pytest.raises(InputError, match="no matrix product with a weight that is not kept"):
        store_weights(source, path, "int8", block_size=32, excluded=["product0", "product1"])


def test_a_network_of_convolutions_has_nothing_to_store(tmp_path: Path) -> None:
    source = graphs.saved(graphs.residual_block(), tmp_path / "block.onnx")
    with pytest.raises(UnsupportedError, match="of the weights that are multiplied are those of matrix products") as no:
        store_weights(source, tmp_path / "stored.onnx", "int4", block_size=32)
    assert no.value.reason.stored_code == "nothing_to_store"
