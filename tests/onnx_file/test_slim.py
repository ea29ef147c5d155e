# SPDX-License-Identifier: Apache-2.0
"""A file without its large weights is the same graph, and costs no memory for them."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from pybench.errors import InputError
from pybench.onnx_file.slim import without_weights
from tests.onnx_file.sparse import write_sparse
from tests.support.onnx_files import write
from tests.support.onnx_models import FEATURES, model, product


def test_names_types_and_sizes_stay_and_small_values_too(tmp_path: Path) -> None:
    weights = {"large": np.ones((FEATURES, 64), np.float32), "small": np.arange(3.0, dtype=np.float32)}
    nodes = [helper.make_node("MatMul", ["x", "large"], ["y"])]
    path = tmp_path / "model.onnx"
    onnx.save(model(nodes, [("x", 1, ["n", FEATURES])], [("y", 1, ["n", 64])], weights), path)
    slim, whole = onnx.ModelProto.FromString(without_weights(path, 100)), onnx.load(path)
    assert [node.SerializeToString() for node in slim.graph.node] == [
        node.SerializeToString() for node in whole.graph.node
    ]
    large, small = slim.graph.initializer
    assert (large.name, list(large.dims), large.data_type) == ("large", [FEATURES, 64], 1)
    assert not large.raw_data
    assert not large.float_data
    assert numpy_helper.to_array(small).tolist() == [0.0, 1.0, 2.0]
    assert slim.opset_import == whole.opset_import


def test_values_stored_one_by_one_are_left_out_too(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    numbers = helper.make_tensor("large", 1, [200], list(range(200)))
    onnx.save(model([helper.make_node("Add", ["x", "large"], ["y"])], [("x", 1, [200])], [("y", 1, [200])],
                    {"large": numbers}), path)  # fmt: skip
    (large,) = onnx.ModelProto.FromString(without_weights(path, 100)).graph.initializer
    assert not large.float_data


def test_nothing_left_out_is_the_same_file(tmp_path: Path) -> None:
    path = write("torch-by-tracing", tmp_path)
    assert onnx.ModelProto.FromString(without_weights(path, 10**9)) == onnx.load(path)


def test_a_gigabyte_of_weights_is_not_read(tmp_path: Path) -> None:
    size, path = 2**30, tmp_path / "model.onnx"
    write_sparse(product(), size, path)
    tracemalloc.start()
    slim = without_weights(path, 1024)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 2**20
    (left,) = onnx.ModelProto.FromString(slim).graph.initializer
    assert list(left.dims) == [size // 4]


def test_what_is_no_onnx_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not an ONNX file"):
        without_weights(write("corrupt", tmp_path), 1024)
