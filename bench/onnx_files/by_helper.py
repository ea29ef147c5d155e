# SPDX-License-Identifier: Apache-2.0
"""Files of onnx.helper: those of `tests.support.onnx_files` that an exporter does not make, and large ones."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))  # where tests/ is

import numpy as np
import onnx
from made import REGISTERED, MadeFile, made
from onnx import helper

from tests.support.onnx_files import FILES
from tests.support.onnx_models import model

HELPER = f"onnx.helper {onnx.__version__}"
BROKEN = "bytes"  # no exporter

FROM_TESTS = {
    "empty": "no bytes",
    "truncated": "two thirds of a file",
    "corrupt": "every third byte is 0xff",
    "git-lfs-pointer": "the text that Git LFS leaves",
    "text": "a page of HTML",
    "torch-checkpoint": "torch.save under the name of a model",
    "external-data": "weights in weights.bin",
    "external-data-missing": "weights.bin is not there",
    "external-data-short": "weights.bin has 7 bytes",
    "external-data-outside": "weights in ../weights.bin",
    "external-data-length": "a weight of 144 bytes that states 140",
    "weight-truncated": "50 of a weight's 144 bytes",
    "weight-too-long": "4 bytes too many in a weight",
    "weight-short-of-floats": "35 of a weight's 36 numbers",
    "custom-operator": "an operator of com.example",
    "domain-not-imported": "its domain is not in opset_import",
    "opset-7": "opset 7, IR version 3",
    "opset-newest": f"opset {onnx.defs.onnx_opset_version()}, IR version {onnx.IR_VERSION}",
    "opset-unknown": "opset 999",
    "local-function": "a function of its own",
    "local-function-with-if": "a function of its own with If inside",
    "output-of-another-batch": "free batch, and 2 as that of the output",
    "if": "If: branches read an outer tensor",
    "loop": "Loop: its body reads an outer tensor",
    "sequence-inside": "a sequence between two nodes",
    "sequence-input": "the input is a sequence",
    "optional-input": "the input is optional",
    "strings-inside": "strings between two nodes",
    "string-input": "the input is strings",
    "zero-size-input": "the input has size 0",
    "unranked-input": "the input states no rank",
    "batch-not-leading": "[4, batch]",
    "no-inputs": "it computes constants",
    "scalar-only": "its input is a scalar",
    "output-without-shape": "the output states no shape",
    "not-in-running-order": "nodes in any order",
    "node-named-twice": "two nodes have one name",
    "types-do-not-fit": "adds float32 to int64",
    "sizes-do-not-fit": "[batch, 4] times [5, 2]",
    "cyclic": "two nodes wait for each other",
    "bf16-weights-and-input": "weights and input in BF16",
    "int4-input": "input in int4",
    "complex64-input": "input in complex64",
}
NO_EXPORTER = {"empty", "truncated", "corrupt", "git-lfs-pointer", "text", "torch-checkpoint"}

for _name, _odd in FROM_TESTS.items():
    REGISTERED.append(MadeFile(f"helper-{_name}", BROKEN if _name in NO_EXPORTER else HELPER, _odd, FILES[_name]))


@made("helper-large", HELPER, "400 MB of weights in the file")
def _(path: Path) -> None:
    side, layers = 5000, 4
    names = ["x", *(f"h{i}" for i in range(layers))]
    nodes = [helper.make_node("MatMul", [names[i], f"w{i}"], [names[i + 1]], name=f"m{i}") for i in range(layers)]
    weights = {f"w{i}": np.zeros((side, side), np.float32) for i in range(layers)}
    onnx.save(model(nodes, [("x", 1, ["n", side])], [(names[-1], 1, ["n", side])], weights), path)


@made("helper-large-claim", HELPER, "an input of 4e12 numbers for each sample")
def _(path: Path) -> None:
    nodes = [helper.make_node("ReduceSum", ["x"], ["y"], keepdims=1)]
    onnx.save(model(nodes, [("x", 1, ["n", 2_000_000, 2_000_000])], [("y", 1, [1, 1, 1])]), path)


@made("helper-huge-constant", HELPER, "a node makes 1e11 numbers of 12 bytes")
def _(path: Path) -> None:
    nodes = [helper.make_node("Expand", ["one", "size"], ["a"]), helper.make_node("Add", ["x", "a"], ["b"]),
             helper.make_node("ReduceMax", ["b"], ["y"])]  # fmt: skip
    weights = {"one": np.ones(1, np.float32), "size": np.array([100_000, 1_000_000])}
    onnx.save(model(nodes, [("x", 1, ["n", 1])], [("y", 1, ["a", "b"])], weights), path)


@made("helper-dots-in-names", HELPER, "input `a.b/c:0`, dimensions `n` and `step size`")
def _(path: Path) -> None:
    nodes = [helper.make_node("Relu", ["a.b/c:0"], ["y"], name="relu/y:0")]
    onnx.save(model(nodes, [("a.b/c:0", 1, ["n", "step size"])], [("y", 1, ["n", "m"])]), path)
