# SPDX-License-Identifier: Apache-2.0
"""Making of a user's ONNX file with a free batch, where the file has it fixed; the new file is run against the old.

At the old batch both give the same outputs, and twice that batch gives what the old file gives for each half, on
onnxruntime's CPU provider and seeded random inputs. Otherwise the error names the node. Reshapes to the fixed batch are
rewritten as well; nothing else of the graph changes. Bodies of If, Loop and Scan stay as they are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import numpy_helper

from pybench.artefacts.request import MakeRequest
from pybench.artefacts.samples import CALIBRATION_TOKENS
from pybench.artefacts.shaped import INLINE_BYTES, save
from pybench.errors import InputError
from pybench.measurement.inputs import Arrays, arrays_of, file_ranges
from pybench.measurement.result import Result
from pybench.onnx_file.batch import FREE, rewriting
from pybench.onnx_file.faults import called
from pybench.onnx_file.graph import OnnxGraph, OnnxNode, node_name, read_graph
from pybench.onnx_file.inputs import fixed_seq_len
from pybench.onnx_file.products import floating_types, is_quantised
from pybench.precision.execution import Values, open_model
from pybench.runtimes import onnxruntime
from pybench.runtimes.session import TensorSpec, resolved

# Norm of the difference over the norm. Another batch is summed in another order; types of 16 bits and rounding to
# integers carry that further. Samples that are mixed differ by about 1.
ALLOWED, ALLOWED_ROUNDED = 1e-4, 2e-2
_FAILED_NODE = re.compile(r"running (\S+) node\. Name:'([^']*)'")
TENSORS_AT_ONCE = 64  # between nodes, while the first that differs is searched: bounds the memory


def make(request: MakeRequest, path: Path) -> Result:
    """Writes the file. Raises InputError, with the node, where the graph does not allow another batch."""
    source, fixed = request.needed("onnx", "model"), int(request.parameters["fixed_batch"])
    plan = rewriting(read_graph(source), fixed)
    try:
        model = onnx.load(source)
    except (OSError, DecodeError) as error:
        raise InputError(f"{source} is not a valid ONNX model ({error})") from error
    _free(model.graph, fixed)
    _rewrite_reshapes(model.graph, plan.reshapes)
    save(model, path)
    compared = _split_inputs(source, path, fixed)
    if plan.obstacle is not None:
        raise compared.prevented(f"{plan.obstacle.node} {plan.obstacle.why}")
    differences = _check(compared, path)
    checked = f"against the file at batch {fixed} and {2 * fixed}"
    return Result(labels={"fixed_batch": fixed, "reshapes": sorted(plan.reshapes), "checked": checked, **differences})


def _free(graph: Any, fixed: int) -> None:
    weights = {weight.name for weight in graph.initializer}
    del graph.value_info[:]  # of shapes with the old batch; who needs them infers them anew
    for node in graph.node:
        node.name = node_name(node.name, node.output[0])  # so that onnxruntime's messages name it
    for value in (*graph.input, *graph.output):
        dimensions = value.type.tensor_type.shape.dim
        if value.name not in weights and dimensions and dimensions[0].dim_value == fixed:
            dimensions[0].dim_param = FREE


def _rewrite_reshapes(graph: Any, reshapes: Mapping[str, tuple[int, ...]]) -> None:
    """Each gets a target of its own: several nodes may share one."""
    for node in graph.node:
        target = reshapes.get(node.output[0]) if node.op_type == "Reshape" else None
        if target is not None:
            name = f"pybench.shape_of.{node.output[0]}"
            graph.initializer.append(numpy_helper.from_array(np.array(target, np.int64), name))
            node.input[1] = name
            kept = [attribute for attribute in node.attribute if attribute.name != "allowzero"]
            del node.attribute[:]
            node.attribute.extend(kept)


@dataclass(frozen=True, slots=True)
class _SplitInputs:
    """Inputs at the old batch, twice, and both together. `allowed`: relative difference of outputs."""

    source: Path
    fixed: int
    halves: tuple[Arrays, Arrays]
    whole: Arrays
    allowed: float

    def prevented(self, why: str) -> InputError:
        return InputError(
            f"{self.source.name}: its batch is fixed at {self.fixed}, and cannot be changed: {why}",
            hint=f"set batch: {self.fixed}, or export the model with its batch free",
        )


def _split_inputs(source: Path, path: Path, fixed: int) -> _SplitInputs:
    old, new = _inputs(source), {spec.name: spec for spec in _inputs(path)}
    led = {spec.name for spec in old if spec.shape and spec.shape[0] == fixed and new[spec.name].shape[0] is None}
    tokens = fixed_seq_len([spec.value for spec in old]) or CALIBRATION_TOKENS
    shapes, ranges = resolved(old, fixed, tokens, source.name), file_ranges(source)
    first, second = (arrays_of(old, shapes, seed, ranges) for seed in (0, 1))
    second = {name: array if name in led else first[name] for name, array in second.items()}
    whole = {name: np.concatenate([first[name], second[name]]) if name in led else first[name] for name in first}
    graph = read_graph(source)
    is_exact = not is_quantised(graph) and floating_types(graph) <= {"fp32", "fp64"}
    return _SplitInputs(source, fixed, (first, second), whole, ALLOWED if is_exact else ALLOWED_ROUNDED)


def _inputs(path: Path) -> tuple[TensorSpec, ...]:
    return onnxruntime.open_session(path, precision="fp32", threads=1, device="cpu").inputs


def _check(compared: _SplitInputs, path: Path) -> dict[str, float]:
    """Runs both files without graph passes, so that messages name the file's own nodes. Returns the largest relative
    differences; raises InputError where they are too large."""
    old, new = open_model(compared.source, passes=False), open_model(path, passes=False)
    first, second = (old.run(half) for half in compared.halves)
    found = {}
    for label, times, feed, wanted in (
        ("same_batch_difference", 1, compared.halves[0], first),
        ("doubled_batch_difference", 2, compared.whole, list(map(_joined, first, second))),
    ):
        try:
            differences = list(map(_difference, wanted, new.run(feed)))
        except InputError as error:
            raise compared.prevented(_failing(error, times * compared.fixed)) from error
        if max(differences) > compared.allowed:
            raise compared.prevented(_mixing(compared, path, differences))
        found[label] = max(differences)
    return found


def _joined(first: Values, second: Values) -> Values:
    return np.concatenate([first, second]) if first.ndim else first


def _difference(wanted: Values, found: Values) -> float:
    """Norm of the difference over the norm; infinite where shapes, or numbers that are not floating, differ."""
    if wanted.shape != found.shape:
        return math.inf
    if wanted.dtype.kind != "f":
        return 0.0 if np.array_equal(wanted, found) else math.inf
    if not np.array_equal(np.isfinite(wanted), np.isfinite(found)):
        return math.inf
    a, b = (np.where(np.isfinite(each), each, 0).astype(np.float64) for each in (wanted, found))
    norm, apart = float(np.linalg.norm(a)), float(np.linalg.norm(a - b))
    return apart / norm if norm else apart


def _failing(error: InputError, batch: int) -> str:
    """The node that onnxruntime names, or all that it says."""
    named = _FAILED_NODE.search(error.message)
    return f"the node {named[2]} ({named[1]}) does not run at batch {batch}" if named else error.message


def _mixing(compared: _SplitInputs, path: Path, differences: Sequence[float]) -> str:
    """The first node whose samples depend on each other, among tensors that have the batch as their leading dimension.

    Where there is none, it is the node that writes the first output that differs."""
    graph = read_graph(path)
    for node, wanted, found in _between(compared, path, graph):
        if len(wanted) == len(found) == 2 * compared.fixed and _difference(wanted, found) > compared.allowed:
            return f"{called(node)} mixes the samples of a batch"
    output = graph.outputs[next(i for i, each in enumerate(differences) if each > compared.allowed)].name
    writer = next(node for node in graph.nodes if output in node.outputs)
    return f"{called(writer)} writes the output {output}, which is another one for another batch"


def _between(compared: _SplitInputs, path: Path, graph: OnnxGraph) -> Iterator[tuple[OnnxNode, Values, Values]]:
    """Every node with its first output: of the old file for both halves, and of the new one. None of a file that is too
    large for one message of protobuf."""
    old, new = onnx.load(compared.source), onnx.load(path)
    if max(old.ByteSize(), new.ByteSize()) > INLINE_BYTES:
        return
    nodes = [node for node in graph.nodes if node.outputs and node.outputs[0]]
    for begin in range(0, len(nodes), TENSORS_AT_ONCE):
        some = nodes[begin : begin + TENSORS_AT_ONCE]
        opened = [open_model(_showing(model, some), passes=False) for model in (old, new)]
        first, second = (opened[0].run(half) for half in compared.halves)
        for node, one, other, found in zip(some, first, second, opened[1].run(compared.whole), strict=True):
            if one.ndim and found.ndim:
                yield node, _joined(one, other), found


def _showing(model: onnx.ModelProto, nodes: Sequence[OnnxNode]) -> bytes:
    """The model with the first outputs of these nodes as its outputs."""
    shown = onnx.ModelProto()
    shown.CopyFrom(model)
    del shown.graph.output[:]
    shown.graph.output.extend(onnx.ValueInfoProto(name=node.outputs[0]) for node in nodes)
    return bytes(shown.SerializeToString())
