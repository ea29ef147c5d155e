# SPDX-License-Identifier: Apache-2.0
"""What is noted beside an engine for its audit. Building one needs a GPU (tests/gpu); reading its graph does not."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import TensorProto, helper

from pybench.artefacts.engine import _graph_facts
from pybench.runtimes.tensorrt.building import BuildOptions
from tests.support.making import write_classifier


def test_operations_are_noted_by_node_and_unknown_shapes_as_not_known(tmp_path: Path) -> None:
    options = BuildOptions(tf32=False, batch=4, tokens=0)
    facts = _graph_facts(write_classifier(tmp_path / "mine.onnx"), options, "fp32")
    assert facts["node_flops"]
    assert all(flops > 0 for flops in facts["node_flops"].values())
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("x", "w", "y")]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", values[:2], values[2:])
    onnx.save(helper.make_model(graph), tmp_path / "unknown.onnx")
    assert facts["kept"] == {}
    assert _graph_facts(tmp_path / "unknown.onnx", options, "fp32")["node_flops"] is None
