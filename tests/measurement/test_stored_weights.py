# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from pybench.measurement.stored_weights import arithmetic_of, audit_stored, judge_stored, told_by
from pybench.onnx_file.graph import OnnxGraph, OnnxNode
from pybench.onnx_file.products import STORED_PRODUCT, StoredProduct
from pybench.precision.audit import audit_onnx
from tests.support.reasons import codes_of

SMALL, FINE = 2.0**-10, 2.0**-12


@pytest.mark.parametrize("bits", [4, 8])
def test_a_product_that_may_not_round_activations_is_in_fp32(bits: int, tmp_path: Path) -> None:
    """8 bits without rounding have no fast kernel on a CPU, but the same numbers."""
    product = StoredProduct("product", bits, 32, accuracy_level=1, weights=1)
    assert arithmetic_of([product], "cpu", tmp_path) == ["fp32"]


@pytest.mark.parametrize("bits", [4, 8])
def test_a_product_that_may_round_them_is_as_the_cpu_does_it(bits: int, tmp_path: Path) -> None:
    """The judge is another product: codes of 1 times activations that int8 cannot tell apart, in one block."""
    product = StoredProduct("product", bits, 32, accuracy_level=4, weights=1)
    (found,) = arithmetic_of([product], "cpu", tmp_path)
    path = saved(bits, accuracy_level=4, folder=tmp_path)
    session = opened(path)
    values = np.zeros((1, 32), np.float32)
    values[0, :3] = 127, 0.3, 0.4
    total = session.run(None, {"x": values})[0][0, 0]
    assert total == pytest.approx(127 if found == "int8" else 127.7, abs=1e-3)


@pytest.mark.parametrize(
    ("rows", "said"),
    [((1 + SMALL, 1 + FINE), "fp32"), ((1 + SMALL, 1), "less than fp32"), ((1, 1 + FINE), "int8")],
)
def test_types_are_told_by_what_they_round_away(rows: tuple[float, float], said: str) -> None:
    sums = np.repeat(np.array(rows, np.float32)[:, None], 4, axis=1)
    assert told_by(sums) == said


def test_a_product_that_does_not_run_as_it_is_stored_makes_the_precision_invalid(tmp_path: Path) -> None:
    path = saved(4, accuracy_level=4, folder=tmp_path)
    declared = audit_onnx(path, "int4")
    assert audit_stored(declared, path, "cpu", 1).valid is True
    stored, plain = (OnnxNode(op, op, ("x", "w"), ("y",)) for op in (STORED_PRODUCT, "MatMul"))
    written, merged, apart = (OnnxGraph(nodes, {}, {}, {}) for nodes in ((stored, stored), (stored,), (stored, plain)))
    assert judge_stored(declared, written, merged, ["int8"]).valid is True
    found = judge_stored(declared, written, apart, ["int8"])
    assert (found.valid, codes_of(found.reasons)) == (False, ("kernels_in_another_type",))
    assert found.facts["executed_stored_products"] == 1
    assert judge_stored(declared, written, OnnxGraph((), {}, {}, {}), ["int8"]).valid is False


def opened(path: Path) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


def saved(bits: int, accuracy_level: int, folder: Path) -> Path:
    """A product [rows, 32] x [32, 16] whose weights are all 1."""
    code = 0x99 if bits == 4 else 0x81
    constants = [
        numpy_helper.from_array(np.full((16, 1, 4 * bits), code, np.uint8), "codes"),
        numpy_helper.from_array(np.ones((16, 1), np.float32), "scales"),
    ]
    node = helper.make_node(
        STORED_PRODUCT, ["x", "codes", "scales"], ["y"], "product", domain="com.microsoft", K=32, N=16, bits=bits,
        block_size=32, accuracy_level=accuracy_level,
    )  # fmt: skip
    fed, written = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", size]) for name, size in (("x", 32), ("y", 16))
    )
    graph = helper.make_graph([node], "stored", [fed], [written], constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    path = folder / f"stored-{bits}-{accuracy_level}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    return path
