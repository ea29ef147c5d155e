# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from pybench.case import Case
from pybench.errors import InputError
from pybench.onnx_file.graph import read_graph
from pybench.precision.notes import KEPT_KEY, read_notes
from tests.support.making import artefacts_of, write_classifier


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_the_reader_agrees_with_the_onnx_package(precision: str) -> None:
    path = artefacts_of(Case(workload="infer", model="digits-cnn", runtime="onnxruntime", precision=precision))["model"]
    judge, graph = onnx.load(path).graph, read_graph(path)
    assert [(node.op, node.name, node.inputs, node.outputs) for node in graph.nodes] == [
        (node.op_type, node.name, tuple(node.input), tuple(node.output)) for node in judge.node
    ]
    values = (*judge.input, *judge.output, *judge.value_info)
    assert graph.types == {value.name: _word(value.type.tensor_type.elem_type) for value in values}
    assert graph.properties == {entry.key: entry.value for entry in onnx.load(path).metadata_props}
    assert graph.weights == {weight.name: (_word(weight.data_type), _size(weight)) for weight in judge.initializer}


def _word(kind: int) -> str:
    word = TensorProto.DataType.Name(kind).lower()
    return "float32" if word == "float" else word


def _size(weight: onnx.TensorProto) -> int:
    return int(np.prod(weight.dims, dtype=np.int64))


def test_types_of_weights_are_those_of_onnx(tmp_path: Path) -> None:
    weights = [
        numpy_helper.from_array(np.zeros((2, 3), np.float16), "half"),
        helper.make_tensor("brain", TensorProto.BFLOAT16, [4], [0.0] * 4),
        numpy_helper.from_array(np.zeros(1, np.float64), "double"),
    ]
    nodes = [helper.make_node("Identity", ["half"], ["out"])]
    output = helper.make_tensor_value_info("out", TensorProto.FLOAT16, [2, 3])
    onnx.save(helper.make_model(helper.make_graph(nodes, "types", [], [output], weights)), tmp_path / "types.onnx")
    assert read_graph(tmp_path / "types.onnx").weights == {
        "half": ("float16", 6),
        "brain": ("bfloat16", 4),
        "double": ("float64", 1),
    }


def test_every_truncation_and_many_damages_are_an_input_error_or_a_graph(tmp_path: Path) -> None:
    """Nothing but InputError comes out of bytes that are no model."""
    content = write_classifier(tmp_path / "whole.onnx").read_bytes()
    damaged = tmp_path / "damaged.onnx"
    generator = np.random.default_rng(0)
    refused = 0
    for length in range(0, len(content), 7):
        damaged.write_bytes(content[:length])
        refused += _is_refused(damaged)
    assert refused > 50
    for _ in range(200):
        changed = bytearray(content)
        changed[generator.integers(len(content))] = generator.integers(256)
        damaged.write_bytes(bytes(changed))
        _is_refused(damaged)


def _is_refused(path: Path) -> bool:
    try:
        read_graph(path)
    except InputError as error:
        return str(path) in error.message
    return False


def test_a_missing_or_foreign_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "text.onnx").write_text("no model at all")
    for name in ("absent.onnx", "text.onnx"):
        with pytest.raises(InputError, match=f"{name} is not an ONNX file"):
            read_graph(tmp_path / name)


def test_notes_are_the_properties_of_the_file(tmp_path: Path) -> None:
    path = write_classifier(tmp_path / "mine.onnx")
    assert (read_notes(path).metadata, read_notes(path).kept) == ({}, {})
    model = onnx.load(path)
    helper.set_model_props(model, {"a key": "värde", KEPT_KEY: '{"one": "keep_fp32"}'})
    onnx.save(model, path)
    assert read_notes(path).metadata == {"a key": "värde", KEPT_KEY: '{"one": "keep_fp32"}'}
    assert read_notes(path).kept == {"one": "keep_fp32"}
    helper.set_model_props(model, {KEPT_KEY: "someone else's"})
    onnx.save(model, path)
    assert read_notes(path).kept == {}
