# SPDX-License-Identifier: Apache-2.0
"""What integer inputs may be fed with, by the nodes that read them; every answer is tried on onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from pybench.measurement.inputs import arrays_of, zero_arrays
from pybench.onnx_file.graph import read_graph
from pybench.onnx_file.ranges import IntegerRange, integer_ranges
from pybench.runtimes.session import TensorSpec
from tests.support.onnx_models import model, node

TABLE = np.arange(12, dtype=np.float32).reshape(3, 4)
LONG = TensorProto.INT64


def written(path: Path, nodes: Sequence[onnx.NodeProto], **weights: object) -> Path:
    """A model of an int64 input `x` [batch, 2] with one output `y`."""
    kind = TensorProto.INT64 if nodes[-1].op_type in ("Div", "Mod") else TensorProto.FLOAT
    written = model(
        nodes, [("x", LONG, ("batch", 2))], [("y", kind, None)], dict(weights), domains={"com.microsoft": 1}
    )
    onnx.save(written, path)
    return path


MICROSOFT = "com.microsoft"
EMBEDDING = [
    node("Cast", "x", "narrow", to=TensorProto.INT32),
    helper.make_node(
        "EmbedLayerNormalization",
        ["narrow", "", "table", "table", "", "scale_of_norm", "shift_of_norm"],
        ["y", "mask"],
        "fused",
        domain=MICROSOFT,
    ),
]
CHAINS = {
    "gather": ([node("Gather", "table x", "y")], IntegerRange(0, 3, "gather_y (Gather)", wraps=True)),
    "gather along another axis": (
        [node("Gather", "table x", "y", axis=1)],
        IntegerRange(0, 4, "gather_y (Gather)", wraps=True),
    ),
    "through a cast and a reshape": (
        [
            node("Cast", "x", "narrow", to=TensorProto.INT32),
            node("Reshape", "narrow shape", "flat"),
            node("Gather", "table flat", "y"),
        ],
        IntegerRange(0, 3, "gather_y (Gather)", wraps=True),
    ),
    "a table that is rounded": (
        [node("DequantizeLinear", "codes scale", "real"), node("Gather", "real x", "y")],
        IntegerRange(0, 5, "gather_y (Gather)", wraps=True),
    ),
    "the narrower of two tables": (
        [
            node("Gather", "table x", "a", axis=1),
            node("ReduceSum", "a", "all", keepdims=0),
            node("Gather", "table x", "b"),
            node("Add", "all b", "y"),
        ],
        IntegerRange(0, 3, "gather_b (Gather)", wraps=True),
    ),
    "a divisor": ([node("Div", "ten x", "y")], IntegerRange(1, 3, "div_y (Div)", is_bounded=False)),
    "a divisor that selects, too": (
        [
            node("Div", "ten x", "tenth"),
            node("Cast", "tenth", "real", to=TensorProto.FLOAT),
            node("ReduceSum", "real", "all", keepdims=0),
            node("Gather", "table x", "b"),
            node("Add", "all b", "y"),
        ],
        IntegerRange(1, 3, "gather_b (Gather)", wraps=True),
    ),
    "onnxruntime's fused embedding": (EMBEDDING, IntegerRange(0, 3, "fused (EmbedLayerNormalization)")),
    "the fused embedding and a longer table": (
        [
            *EMBEDDING[:-1],
            helper.make_node("EmbedLayerNormalization", EMBEDDING[-1].input, ["a", "mask"], "fused", domain=MICROSOFT),
            node("Gather", "codes x", "row"),
            node("Cast", "row", "real", to=TensorProto.FLOAT),
            node("ReduceSum", "real", "all", keepdims=0),
            node("Add", "a all", "y"),
        ],
        IntegerRange(0, 3, "fused (EmbedLayerNormalization)"),
    ),
}
WEIGHTS = {
    "table": TABLE,
    "shape": np.array([-1]),
    "codes": np.ones((5, 2), np.int8),
    "scale": np.float32(0.5),
    "ten": np.array(10),
    "scale_of_norm": np.ones(4, np.float32),
    "shift_of_norm": np.zeros(4, np.float32),
}


@pytest.mark.parametrize("name", CHAINS)
def test_an_input_stays_within_what_its_nodes_accept(tmp_path: Path, name: str) -> None:
    nodes, expected = CHAINS[name]
    path = written(tmp_path / "model.onnx", nodes, **WEIGHTS)
    found = integer_ranges(read_graph(path))
    assert found == {"x": expected}
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    specs = [TensorSpec("x", np.dtype(np.int64), (None, 2))]
    shapes = {"x": (500, 2)}
    drawn = arrays_of(specs, shapes, 0, found)
    assert set(np.unique(drawn["x"])) == set(range(expected.least, expected.below))
    for arrays in (drawn, zero_arrays(specs, shapes, found)):
        session.run(None, arrays)
    assert (zero_arrays(specs, shapes, found)["x"] == expected.least).all()


@pytest.mark.parametrize("name", CHAINS)
def test_what_is_accepted_is_what_onnxruntime_runs(tmp_path: Path, name: str) -> None:
    """But a division by zero, which it does not report."""
    nodes, expected = CHAINS[name]
    session = onnxruntime.InferenceSession(
        written(tmp_path / "model.onnx", nodes, **WEIGHTS), providers=["CPUExecutionProvider"]
    )
    for number in range(-8, 9):
        runs = True
        try:
            if number or expected.least == 0:
                session.run(None, {"x": np.full((1, 2), number)})
        except onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument:
            runs = False
        if number or expected.least == 0:
            assert expected.accepts(number, number, has_zero=number == 0) == runs, number
    assert expected.accepts(-1, 1, has_zero=True) is (expected.wraps and expected.least == 0)


def test_what_is_computed_from_an_input_restricts_nothing(tmp_path: Path) -> None:
    nodes = [
        node("Cast", "x", "real", to=TensorProto.FLOAT),
        node("Floor", "real", "whole"),
        node("Cast", "whole", "again", to=LONG),
        node("Gather", "table again", "y"),
    ]
    assert integer_ranges(read_graph(written(tmp_path / "model.onnx", nodes, table=TABLE))) == {}


def test_a_table_of_one_row_is_fed_with_its_row(tmp_path: Path) -> None:
    path = written(tmp_path / "model.onnx", [node("Gather", "table x", "y")], table=TABLE[:1])
    specs = [TensorSpec("x", np.dtype(np.int64), (None, 2))]
    assert not arrays_of(specs, {"x": (9, 2)}, 1, integer_ranges(read_graph(path)))["x"].any()


def test_weights_in_another_file_are_not_read(tmp_path: Path) -> None:
    path = written(tmp_path / "model.onnx", [node("Gather", "table x", "y")], table=np.zeros((3000, 4), np.float32))
    onnx.save(onnx.load(path), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    (tmp_path / "weights.bin").unlink()
    assert integer_ranges(read_graph(path))["x"].below == 3000
