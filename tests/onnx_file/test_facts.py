# SPDX-License-Identifier: Apache-2.0
"""The facts of a file are those that the onnx package finds in it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import onnx
import pytest

from pybench.errors import InputError
from pybench.onnx_file.facts import facts_of, files_beside, free_dimensions, stored_bytes
from pybench.onnx_file.faults import read_sound
from pybench.onnx_file.graph import Value
from tests.support.onnx_files import write
from tests.support.onnx_models import save_with_weights_beside


@pytest.mark.parametrize("name", ["plain", "torch-by-tracing", "torch-by-dynamo", "several-inputs", "quantised-to-qdq"])
def test_facts_are_those_of_the_onnx_package(tmp_path: Path, name: str) -> None:
    path = write(name, tmp_path)
    found, expected = facts_of(path, read_sound(path)), onnx.load(path)
    assert found.file_bytes == path.stat().st_size
    assert found.ir_version == expected.ir_version
    assert found.producer == " ".join(filter(None, (expected.producer_name, expected.producer_version)))
    assert found.opsets == {entry.domain or "ai.onnx": entry.version for entry in expected.opset_import}
    assert found.operators == Counter(node.op_type for node in expected.graph.node)
    assert found.custom_operators == {}
    elements = [onnx.numpy_helper.to_array(weight).size for weight in expected.graph.initializer]
    assert sum(found.parameters.values()) == sum(elements)
    assert [value.name for value in found.inputs] == [value.name for value in expected.graph.input]


def test_a_custom_operator_and_files_of_weights_are_named(tmp_path: Path) -> None:
    custom = write("custom-operator", tmp_path / "custom")
    assert facts_of(custom, read_sound(custom)).custom_operators == {"com.example.Frobnicate": 1}
    local = write("local-function", tmp_path / "local")  # defined in the file: nobody has to bring it
    assert facts_of(local, read_sound(local)).custom_operators == {}
    beside = write("external-data", tmp_path / "beside")
    assert facts_of(beside, read_sound(beside)).weight_files == {"weights.bin": 144}


def test_the_size_of_a_model_has_its_weights_in_folders_below(tmp_path: Path) -> None:
    path, weights = tmp_path / "model.onnx", tmp_path / "below/weights.bin"
    save_with_weights_beside(path, "below/weights.bin")
    assert files_beside(path) == []  # not there yet
    weights.parent.mkdir()
    (tmp_path / "weights.bin").rename(weights)
    assert files_beside(path) == [weights]
    assert stored_bytes(path) == path.stat().st_size + 144


def test_operators_inside_bodies_are_counted(tmp_path: Path) -> None:
    path = write("if", tmp_path)
    found = facts_of(path, read_sound(path))
    bodies = [body for node in onnx.load(path).graph.node for body in node.attribute if body.HasField("g")]
    inner = sum(len(body.g.node) for body in bodies)
    assert inner
    assert sum(found.operators.values()) == len(onnx.load(path).graph.node) + inner


def test_free_dimensions_are_called_by_name_or_position() -> None:
    value = Value("image", "tensor", "float32", ("batch", 3, None, "width"))
    assert free_dimensions(value) == ("image.batch", "image.2", "image.width")


@pytest.mark.parametrize(
    ("name", "said", "hint"),
    [
        ("empty", "model.onnx: it is empty", "copy or download it again"),
        ("directory", "model.onnx is a folder", "give the ONNX file in it"),
        ("git-lfs-pointer", "model.onnx: it is a pointer of Git LFS", "git lfs pull"),
        ("truncated", "model.onnx: it is not an ONNX file (truncated", "copy or download it again"),
        ("external-data-missing", "the weight weight is in weights.bin, and there is no such file", "copy the file"),
    ],
)
def test_a_file_that_is_no_sound_model_is_one_error(tmp_path: Path, name: str, said: str, hint: str) -> None:
    with pytest.raises(InputError) as raised:
        read_sound(write(name, tmp_path))
    assert said in raised.value.message
    assert hint in str(raised.value.hint)


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file or directory"):
        read_sound(tmp_path / "model.onnx")


def test_the_size_of_a_file_counts_its_weights_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "mine.onnx"
    save_with_weights_beside(path, "weights.bin")
    assert stored_bytes(path) == path.stat().st_size + (tmp_path / "weights.bin").stat().st_size
    plain = write("plain", tmp_path)
    assert stored_bytes(plain) == plain.stat().st_size
