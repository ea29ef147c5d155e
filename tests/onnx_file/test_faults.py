# SPDX-License-Identifier: Apache-2.0
"""What keeps every runtime from running a file is found, and nothing is found in a file that onnxruntime runs."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest

from pybench.onnx_file.faults import LARGEST_BYTES, Fault, opened
from pybench.onnx_file.graph import OnnxModel
from tests.onnx_file.sparse import write_sparse
from tests.support.onnx_files import write
from tests.support.onnx_models import product


def fault_in(path: Path) -> str:
    found = opened(path)
    assert isinstance(found, Fault)
    assert found.hint
    return found.what


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("truncated", "it is not an ONNX file (truncated: 262 bytes wanted at byte 5 of 182)"),
        ("corrupt", "it is not an ONNX file (wire type 7 at byte"),
        ("no-graph", "it is not an ONNX file (it has no graph)"),
        ("text", "it is a text of HTML or XML"),
        ("git-lfs-pointer", "it is a pointer of Git LFS, not the model"),
        ("onnxruntime-format", "it is in onnxruntime's own format (.ort), not ONNX"),
        ("torch-checkpoint", "it is a zip archive (a checkpoint of torch is one)"),
        ("external-data-missing", "the weight weight is in weights.bin, and there is no such file in "),
        ("external-data-short", "the weight weight ends at byte 144 of weights.bin, which has 7 bytes"),
        ("external-data-outside", "the weight weight is in ../weights.bin, which is not in the model's folder"),
        ("external-data-length", "the weight weight has 140 bytes, and its shape [12, 3] of float32 needs 144"),
        ("weight-truncated", "the weight weight has 50 bytes, and its shape [12, 3] of float32 needs 144"),
        ("weight-too-long", "the weight weight has 148 bytes, and its shape [12, 3] of float32 needs 144"),
        ("weight-short-of-floats", "the weight weight has 140 bytes, and its shape [12, 3] of float32 needs 144"),
        ("no-opset", "it names no operator set (opset_import)"),
        ("domain-not-imported", "the node mine (Frobnicate) is of the domain com.example, which opset_import does not"),
        ("cyclic", "the node one (Add) waits for its own result: the graph has a cycle"),
        ("dangling", "the node sum (Add) reads nowhere, which nothing writes"),
        ("output-never-written", "nothing writes its output z"),
        ("no-outputs", "it has no output"),
        ("tensor-written-twice", "the node two (Abs) writes y, which is written by the node one (Neg), too"),
        ("input-named-twice", "two inputs have the name x"),
    ],
)
def test_a_fault_names_its_place(tmp_path: Path, name: str, said: str) -> None:
    assert fault_in(write(name, tmp_path)).startswith(said)


@pytest.mark.parametrize(
    "name",
    [
        "plain", "opset-7", "external-data", "contributed-operator", "local-function", "if", "loop", "sequence-inside",
        "strings-inside", "not-in-running-order", "several-inputs", "quantised-to-qdq", "output-without-shape",
    ],
)  # fmt: skip
def test_what_onnxruntime_opens_has_no_fault(tmp_path: Path, name: str) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    path = write(name, tmp_path)
    onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    assert isinstance(opened(path), OnnxModel)


@pytest.mark.parametrize("name", ["weight-truncated", "weight-too-long", "weight-short-of-floats"])
def test_onnxruntime_refuses_a_weight_of_another_length(tmp_path: Path, name: str) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    with pytest.raises(Exception, match=r"[Ss]ize|length|data"):
        onnxruntime.InferenceSession(write(name, tmp_path), providers=["CPUExecutionProvider"])


@pytest.mark.parametrize(
    ("kind", "count", "size"), [("INT4", 7, 4), ("BFLOAT16", 3, 6), ("BOOL", 5, 5), ("INT64", 2, 16)]
)
def test_weights_of_every_width_have_the_right_length(tmp_path: Path, kind: str, count: int, size: int) -> None:
    onnx = pytest.importorskip("onnx")
    path, content = tmp_path / "model.onnx", product()
    content.graph.initializer.append(
        onnx.TensorProto(
            name="more", data_type=onnx.TensorProto.DataType.Value(kind), dims=[count], raw_data=b"\0" * size
        )
    )
    onnx.save(content, path)
    assert isinstance(opened(path), OnnxModel)
    content.graph.initializer[-1].raw_data += b"\0"
    onnx.save(content, path)
    assert f"the weight more has {size + 1} bytes" in fault_in(path)


def test_weights_are_not_read(tmp_path: Path) -> None:
    """A gigabyte of weights, which takes no room on the disk, takes none in memory either."""
    size, path = 2**30, tmp_path / "model.onnx"
    write_sparse(product(), size, path)
    tracemalloc.start()
    found = opened(path)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(found, OnnxModel)
    assert found.graph.weights == {"weight": ("float32", size // 4)}
    assert peak_bytes < 2**20
    os.truncate(path, LARGEST_BYTES + 1)
    assert fault_in(path).startswith(f"it has {LARGEST_BYTES + 1} bytes, and protobuf reads {LARGEST_BYTES}")
