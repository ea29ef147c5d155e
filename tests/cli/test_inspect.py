# SPDX-License-Identifier: Apache-2.0
"""`pybench inspect`: what a file is, what a pass computes, and what onnxruntime on this machine says of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from pybench.cli import main
from tests.support.onnx_files import write
from tests.support.onnx_models import choice, ints, model, node

pytestmark = pytest.mark.usefixtures("ready_workers")


def inspected(path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    assert main(["inspect", str(path), "--json", *options]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def on_cpu(found: dict[str, Any]) -> dict[str, Any]:
    return next(each for each in found["runtimes"] if (each["runtime"], each["provider"]) == ("onnxruntime", "cpu"))


def test_a_file_is_shown_with_what_a_pass_computes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = inspected(write("torch-by-tracing", tmp_path), capsys, "--batch", "2")
    assert found["inputs"] == [
        {"name": "x", "form": "tensor", "type": "float32", "shape": ["batch", 3, 8, 8], "free": ["x.batch"]}
    ]
    assert found["operators"] == {"Conv": 1, "Flatten": 1, "Gemm": 1, "Relu": 1}
    assert found["parameters_count"] == 837
    # Conv: 2 x 4 x 6 x 6 outputs of 27 products; Gemm: 2 x 5 outputs of 144
    assert found["pass"] == {"fed": {"x": [2, 3, 8, 8]}, "flops": 2 * (2 * 4 * 36 * 27 + 2 * 5 * 144), "why_not": None}
    assert on_cpu(found)["says"] == "yes"


def test_what_multiplies_and_is_not_counted_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [
        helper.make_node("RNN", ["x", "w", "r"], ["y"], hidden_size=4),
        helper.make_node("MatMul", ["x", "m"], ["z"]),
    ]
    weights = {
        name: np.ones(shape, np.float32) for name, shape in {"w": (1, 4, 3), "r": (1, 4, 4), "m": (3, 5)}.items()
    }
    outputs = [("y", onnx.TensorProto.FLOAT, None), ("z", onnx.TensorProto.FLOAT, None)]
    onnx.save(model(nodes, [("x", onnx.TensorProto.FLOAT, (2, 1, 3))], outputs, weights), tmp_path / "model.onnx")
    assert main(["inspect", str(tmp_path / "model.onnx")]) == 0
    said = "60 FLOPs in convolutions and matrix products; not counted: RNN 1\n"
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "multiplies", "computes"),
    [
        (
            model([node("Einsum", "x w", "y", equation="ij,jk->ik")], [("x", 10, (2, 4))], [("y", 10, (2, 5))],
                  {"w": np.ones((4, 5), np.float16)}),
            "fp16", "not known: the operations of Einsum are not counted",
        ),
        (
            model([node("MatMulInteger", "x w", "y")], [("x", 2, (2, 4))], [("y", 6, (2, 5))],
                  {"w": np.ones((4, 5), np.int8)}),
            "nothing in a floating type", "not known: the operations of MatMulInteger are not counted",
        ),
        (
            model([*choice("x", "a"), node("MatMul", "a w", "y")], [("x", 1, (2, 4))], [("y", 1, None)],
                  {"w": np.ones((4, 5), np.float32), "zero": np.zeros((), np.float32)}),
            "fp32 (not looked into: If)", "80 FLOPs in convolutions and matrix products; not counted: If 1",
        ),
        (
            model([helper.make_node("FusedMatMul", ["x", "w"], ["y"], domain="com.microsoft")], [("x", 1, (2, 4))],
                  [("y", 1, (2, 5))], {"w": np.ones((4, 5), np.float32)}, domains={"com.microsoft": 1}),
            "fp32", "not known: the operations of com.microsoft.FusedMatMul are not counted",
        ),
        (
            model([helper.make_node("QGemm", ["x", "w"], ["y"], domain="com.microsoft")], [("x", 1, (2, 4))],
                  [("y", 1, (2, 5))], {"w": np.ones((4, 5), np.float32)}, domains={"com.microsoft": 1}),
            "not known (not looked into: com.microsoft.QGemm)",
            "not known: the operations of com.microsoft.QGemm are not counted",
        ),
    ],
    ids=["einsum", "integers", "if", "fused", "custom"],
)  # fmt: skip
def test_no_number_stands_for_what_is_not_counted(
    content: onnx.ModelProto, multiplies: str, computes: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    onnx.save(content, tmp_path / "model.onnx")
    assert main(["inspect", str(tmp_path / "model.onnx")]) == 0
    said = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines() if "  " in line)
    assert (said["multiplies in"].strip(), said["computes"].strip()) == (multiplies, computes)


def test_a_call_of_a_local_function_is_not_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = inspected(write("local-function", tmp_path), capsys)
    assert found["not_counted"] == found["not_looked_into"]
    assert found["not_counted"]


def test_a_free_dimension_is_set_by_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write("free-height-and-width", tmp_path)
    found = inspected(path, capsys)
    assert found["pass"]["flops"] is None
    stated = "--shape x.height=224 --shape x.width=224"
    assert found["pass"]["why_not"] == f"x.height and x.width are free; state a size, as in {stated}"
    free = [name for name in found["inputs"][0]["free"] if not name.endswith("batch")]
    found = inspected(path, capsys, *(word for name in free for word in ("--shape", f"{name}=16")))
    assert found["pass"]["fed"]["x"][2:] == [16, 16]
    assert found["pass"]["flops"] > 0


def test_the_products_of_an_old_file_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its weights are no inputs, which was no sound file before IR version 4, and runtimes take it."""
    assert inspected(write("opset-7", tmp_path), capsys)["pass"]["flops"] > 0


def test_a_node_without_a_name_is_named_by_what_it_gives(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [helper.make_node("Mystery", ["x"], ["a"], domain="mine"), helper.make_node("MatMul", ["a", "w"], ["y"])]
    weights = {"w": np.zeros((4, 5), np.float32)}
    content = model(nodes, [("x", 1, ["n", 4])], [("y", 1, ["n", 5])], weights)
    content.opset_import.append(helper.make_opsetid("mine", 1))
    onnx.save(content, tmp_path / "model.onnx")
    assert inspected(tmp_path / "model.onnx", capsys)["pass"]["why_not"] == (
        "the shape of a cannot be inferred, which the MatMul node that gives y needs; "
        "simplify the model (constant folding), or export it with fixed shapes"
    )


def test_the_batch_that_a_file_fixes_is_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write("fixed-batch", tmp_path)
    found = inspected(path, capsys)
    assert found["pass"]["fed"]["x"] == found["inputs"][0]["shape"]
    # A run rewrites the file for another batch, where its nodes allow that.
    other = inspected(path, capsys, "--batch", "3")["pass"]
    assert (other["fed"]["x"][0], other["flops"]) == (3, 3 * found["pass"]["flops"])


def test_a_batch_that_no_run_has_is_refused_as_in_a_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [node("Reshape", "x wanted", "a"), node("MatMul", "a w", "y")]
    weights = {"wanted": ints(3, 4), "w": np.ones((4, 5), np.float32)}
    path = tmp_path / "model.onnx"
    onnx.save(model(nodes, [("x", 1, [2, 6])], [("y", 1, [3, 5])], weights), path)
    assert main(["inspect", str(path), "--batch", "4"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: --batch: its batch is fixed at 2, and cannot be 4: ")
    assert what_a_plan_says(path, capsys, "batch: 4") in said


def what_a_plan_says(path: Path, capsys: pytest.CaptureFixture[str], factors: str = "batch: 1") -> str:
    """The one problem of a plan with the file, without its hint."""
    plan = path.with_name("plan.yaml")
    cell = f"{{workload: infer, runtime: onnxruntime, model: {path.name}, {factors}}}"
    plan.write_text(f"schema_version: 1\nname: test\nmatrix:\n  - {cell}\n")
    assert main(["validate", str(plan)]) == 2
    (problem,) = capsys.readouterr().err.splitlines()
    return problem.partition(f"{path.name}: ")[2].partition(" (")[0]


@pytest.mark.parametrize(
    "name", ["scalar-only", "string-input", "sequence-output", "string-output", "no-inputs", "unranked-input"]
)
def test_no_runtime_takes_what_no_plan_takes(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(name, tmp_path)
    refused = what_a_plan_says(path, capsys)
    found = inspected(path, capsys)
    assert refused
    assert {each["says"] for each in found["runtimes"]} == {"no"}
    assert all(each["why"].startswith(refused) for each in found["runtimes"])
    assert found["pass"]["why_not"].startswith(refused)


@pytest.mark.parametrize("sizes", ["file", "option"])
def test_the_length_of_ids_is_what_the_file_or_an_option_states(
    sizes: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    length: int | str = 7 if sizes == "file" else "length"
    nodes = [node("Cast", "ids", "a", to=1), node("MatMul", "a w", "y")]
    weights = {"w": np.ones((7, 5), np.float32)}
    path = tmp_path / "model.onnx"
    onnx.save(model(nodes, [("ids", 7, ["n", length])], [("y", 1, ["n", 5])], weights), path)
    options = [] if sizes == "file" else ["--shape", "ids.length=7"]
    assert inspected(path, capsys, *options)["pass"] == {"fed": {"ids": [1, 7]}, "flops": 70, "why_not": None}


def test_a_runtime_that_does_not_take_the_file_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = inspected(write("custom-operator", tmp_path), capsys)
    assert found["custom_operators"] == {"com.example.Frobnicate": 1}
    said = on_cpu(found)
    assert said["says"] == "no"
    assert "Frobnicate(-1) is not a registered function/op" in said["why"]
    assert "export the model with ONNX's own operators" in said["hint"]


def test_the_text_has_a_line_for_each_fact_and_runtime(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(write("external-data", tmp_path))]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "input             x  float32 [batch, 12]   free: x.batch" in lines
    assert "weights in files  weights.bin 144 B" in lines
    assert any(line.startswith("yes        onnxruntime (cpu)") for line in lines)
    assert lines[-1].startswith("no         the others              torch,")


@pytest.mark.parametrize(
    "name", ["empty", "truncated", "corrupt", "git-lfs-pointer", "external-data-missing", "cyclic"]
)
def test_a_file_that_nothing_runs_is_one_error(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(name, tmp_path)
    assert main(["inspect", str(path)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    error, hint = said.err.splitlines()
    assert error.startswith(f"error: {path}")
    assert hint.startswith("  hint: ")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--shape", "x"], "error: --shape: 'x' is not of the form INPUT.DIM=N"),
        (["--shape", "y.0=2"], "error: --shape: y.0 names no input of the model"),
    ],
)
def test_a_wrong_shape_is_refused(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", str(write("plain", tmp_path)), *options]) == 2
    assert capsys.readouterr().err.startswith(said)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("inspect", b"its path is not UTF-8, and runtimes open no such path\n  hint: rename the file"),
        ("init", b"its path is not UTF-8\n  hint: give another name"),
    ],
)
def test_a_path_that_is_not_utf_8_is_one_error(tmp_path: Path, command: str, told: bytes) -> None:
    path = os.fsencode(tmp_path) + b"/m\xff"
    if command == "inspect":
        write("plain", tmp_path).rename(os.fsdecode(path))
    ended = subprocess.run(
        [sys.executable, "-m", "pybench.cli", command, os.fsdecode(path)], capture_output=True, check=False
    )
    assert ended.returncode == 2
    assert told in ended.stderr
    assert command == "inspect" or list(tmp_path.iterdir()) == []
