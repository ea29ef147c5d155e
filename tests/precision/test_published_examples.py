# SPDX-License-Identifier: Apache-2.0
"""The worked examples of a paper on quantisation, by the quantisers that pybench uses.

Precision trade-offs of CNNs with AMP and INT8 (the paper of plans/ptq-batches.yaml), equations 4 to 6, 10 and 11. The
paper prints scales with three digits.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from pybench.onnx_file.products import QUANTISE
from pybench.precision import int8
from pybench.precision.scales import Codes
from tests.support.onnx_models import model, node


def product(path: Path) -> Path:
    """x [batch, 2] times the identity."""
    shape = ["batch", 2]
    weights = {"w": np.eye(2, dtype=np.float32)}
    onnx.save(model([node("MatMul", "x w", "y")], [("x", 1, shape)], [("y", 1, shape)], weights, opset=17), path)
    return path


def test_asymmetric_scale_zero_point_and_code(tmp_path: Path) -> None:
    source = product(tmp_path / "source.onnx")
    feeds = [{"x": np.array([[-2.5, 5.0]], np.float32)}]
    int8.quantise(source, tmp_path / "int8.onnx", "minmax", feeds, {}, scheme="asymmetric")
    graph = onnx.load(tmp_path / "int8.onnx").graph
    values = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    node = next(node for node in graph.node if node.op_type == QUANTISE and node.input[0] == "x")
    scale, zero_point = float(values[node.input[1]]), int(values[node.input[2]])
    assert scale == pytest.approx(0.0294, abs=5e-5)  # equation 4
    assert zero_point - 128 == -43  # equation 5, of codes from -128; these begin at 0
    assert round(4.1 / scale) + zero_point - 128 == 96  # equation 6


def test_symmetric_scale_and_code() -> None:
    scale = float(Codes("int8").scales(np.array(8.0, np.float32)))
    assert scale == pytest.approx(0.0629, abs=1e-4)  # equation 10
    assert round(3.86 / scale) == 61  # equation 11


def test_a_full_range_has_finer_steps() -> None:
    restricted, full = (
        float(Codes("int8", is_full=is_full).scales(np.array(8.0, np.float32))) for is_full in (False, True)
    )
    assert full == pytest.approx(2 * 8 / 255)  # equation 8
    assert restricted == pytest.approx(8 / 127)  # equation 9
