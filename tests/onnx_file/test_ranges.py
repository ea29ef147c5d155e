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

from pybench.measurement.inputs import arrays_of, sample_ranges, zero_arrays
from pybench.onnx_file.graph import read_graph
from pybench.onnx_file.ranges import IntegerRange, integer_ranges
from pybench.runtimes.session import TensorSpec
from tests.support.onnx_files import model

TABLE = np.arange(12, dtype=np.float32).reshape(3, 4)
LONG = TensorProto.INT64


def written(path: Path, nodes: Sequence[onnx.NodeProto], **weights: object) -> Path:
    """A model of an int64 input `x` [batch, 2] with one output `y`."""
    kind = TensorProto.INT64 if nodes[-1].op_type in ("Div", "Mod") else TensorProto.FLOAT
    onnx.save(model(nodes, [("x", LONG, ("batch", 2))], [("y", kind, None)], dict(weights)), path)
    return path


def node(op: str, inputs: str, output: str, **attributes: object) -> onnx.NodeProto:
    return helper.make_node(op, inputs.split(), [output], name=f"{op.lower()}_{output}", **attributes)


CHAINS = {
    "gather": ([node("Gather", "table x", "y")], IntegerRange(0, 3, "gather_y (Gather)")),
    "gather along another axis": ([node("Gather", "table x", "y", axis=1)], IntegerRange(0, 4, "gather_y (Gather)")),
    "through a cast and a reshape": (
        [
            node("Cast", "x", "narrow", to=TensorProto.INT32),
            node("Reshape", "narrow shape", "flat"),
            node("Gather", "table flat", "y"),
        ],
        IntegerRange(0, 3, "gather_y (Gather)"),
    ),
    "a table that is rounded": (
        [node("DequantizeLinear", "codes scale", "real"), node("Gather", "real x", "y")],
        IntegerRange(0, 5, "gather_y (Gather)"),
    ),
    "the narrower of two tables": (
        [
            node("Gather", "table x", "a", axis=1),
            node("ReduceSum", "a", "all", keepdims=0),
            node("Gather", "table x", "b"),
            node("Add", "all b", "y"),
        ],
        IntegerRange(0, 3, "gather_b (Gather)"),
    ),
    "a divisor": ([node("Div", "ten x", "y")], IntegerRange(1, 3, "div_y (Div)")),
}
WEIGHTS = {
    "table": TABLE,
    "shape": np.array([-1]),
    "codes": np.ones((5, 2), np.int8),
    "scale": np.float32(0.5),
    "ten": np.array(10),
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
    for arrays in (drawn, zero_arrays(specs, shapes, found), arrays_of(specs, shapes, 0, sample_ranges(path))):
        session.run(None, arrays)
    assert (zero_arrays(specs, shapes, found)["x"] == expected.least).all()


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
    for ranges in (integer_ranges(read_graph(path)), sample_ranges(path)):
        assert not arrays_of(specs, {"x": (9, 2)}, 1, ranges)["x"].any()


def test_weights_in_another_file_are_not_read(tmp_path: Path) -> None:
    path = written(tmp_path / "model.onnx", [node("Gather", "table x", "y")], table=np.zeros((3000, 4), np.float32))
    onnx.save(onnx.load(path), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    (tmp_path / "weights.bin").unlink()
    assert integer_ranges(read_graph(path))["x"].below == 3000
