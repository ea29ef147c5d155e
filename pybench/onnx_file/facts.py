# SPDX-License-Identifier: Apache-2.0
"""What an ONNX file says of itself, as facts for people and programs: inputs, operators, parameters, files of weights.

Counts and names only: no weight is read. Constants inside nodes are no parameters here, and bodies of local functions
are not looked into (`pybench.onnx_file.graph`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pybench.onnx_file.graph import OnnxGraph, OnnxModel, OnnxNode, Value, read_model
from pybench.onnx_file.products import (
    DEQUANTISE,
    MULTIPLYING,
    QUANTISE,
    STORED_PRODUCT,
    UNCOUNTED,
    UNCOUNTED_INTEGERS,
    floating_types,
    is_quantised,
)

ONNX_DOMAIN = "ai.onnx"
# Domains of the ONNX specification; whatever else a node is of, a runtime has to bring.
STANDARD_DOMAINS = frozenset({"", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview", "ai.onnx.preview.training"})

_OF_KNOWN_TYPE = MULTIPLYING | {STORED_PRODUCT} | UNCOUNTED


@dataclass(frozen=True, slots=True)
class FileFacts:
    """One ONNX file.

    file_bytes: size of the file itself
    opsets: domain -> version
    inputs, outputs: as the file declares them; inputs that have a value already are left out
    operators: operator -> nodes, the most frequent first; operators outside ONNX carry their domain
    custom_operators: those of `operators` that neither ONNX nor a function in the file defines
    parameters: type -> number of values in the initialisers
    weight_files: path, relative to the file -> size in bytes, of weights in other files
    multiplies_in: floating types that it is known to multiply in, such as `fp32`
    not_counted: operator -> nodes, of those that multiply, or may, and are in no count of operations
    not_looked_into: those of `not_counted` that may multiply in any type: what has a body, and custom operators
    is_quantised: whether it has QuantizeLinear nodes
    """

    path: Path
    file_bytes: int
    ir_version: int
    producer: str
    opsets: dict[str, int]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    operators: dict[str, int]
    custom_operators: dict[str, int]
    parameters: dict[str, int]
    weight_files: dict[str, int]
    multiplies_in: tuple[str, ...]
    not_counted: dict[str, int]
    not_looked_into: dict[str, int]
    is_quantised: bool

    def as_json(self) -> dict[str, Any]:
        return {
            "file": str(self.path),
            "file_bytes": self.file_bytes,
            "ir_version": self.ir_version,
            "producer": self.producer,
            "opsets": self.opsets,
            "inputs": [_value_json(value) for value in self.inputs],
            "outputs": [_value_json(value) for value in self.outputs],
            "operators": self.operators,
            "custom_operators": self.custom_operators,
            "parameters_count": sum(self.parameters.values()),
            "parameters": self.parameters,
            "weight_files": [{"path": path, "bytes": size} for path, size in self.weight_files.items()],
            "multiplies_in": list(self.multiplies_in),
            "not_counted": self.not_counted,
            "not_looked_into": self.not_looked_into,
            "is_quantised": self.is_quantised,
        }


def facts_of(path: Path, model: OnnxModel) -> FileFacts:
    """The facts of a file that was read and has no fault (`faults.opened`)."""
    graph = model.graph
    nodes = list(_nodes(graph))
    operators = Counter(_operator(node) for node in nodes)
    custom = Counter(_operator(node) for node in nodes if _is_custom(node, model))
    parameters: Counter[str] = Counter()
    for each in (graph, *_bodies(graph)):
        for kind, elements in each.weights.values():
            parameters[kind] += elements
    return FileFacts(
        path=path,
        file_bytes=path.stat().st_size,
        ir_version=model.ir_version,
        producer=model.producer,
        opsets={domain or ONNX_DOMAIN: version for domain, version in model.opsets.items()},
        inputs=graph.fed,
        outputs=graph.outputs,
        operators=_by_count(operators),
        custom_operators=_by_count(custom),
        parameters=_by_count(parameters),
        weight_files={name: (path.parent / name).stat().st_size for name in weight_files(model)},
        multiplies_in=tuple(sorted(floating_types(graph, _OF_KNOWN_TYPE))),
        not_counted=not_counted(model),
        not_looked_into=_by_count(Counter(_operator(node) for node in graph.nodes if _is_opaque(node, model))),
        is_quantised=is_quantised(graph),
    )


def not_counted(model: OnnxModel) -> dict[str, int]:
    """Operator -> nodes, of those of the main graph that multiply, or may, and are in no count of operations."""
    named = UNCOUNTED | UNCOUNTED_INTEGERS
    fused = MULTIPLYING | {STORED_PRODUCT}
    nodes = (
        node
        for node in model.graph.nodes
        if node.op in named or (node.domain and node.op in fused) or _is_opaque(node, model)
    )
    return _by_count(Counter(map(_operator, nodes)))


def weight_files(model: OnnxModel) -> list[str]:
    """The files in which weights lie that are not in the model's own, sorted; relative to its folder."""
    graphs = (model.graph, *_bodies(model.graph))
    return sorted({beside.location for graph in graphs for beside in (graph.beside or {}).values()})


def files_beside(path: Path) -> list[Path]:
    """The files in which weights of an ONNX file lie, as far as they are there. Raises InputError for another file."""
    return [file for name in weight_files(read_model(path)) if (file := path.parent / name).is_file()]


def stored_bytes(path: Path) -> int:
    """The size of an ONNX file together with the files beside it in which its weights lie."""
    return path.stat().st_size + sum(file.stat().st_size for file in files_beside(path))


def free_dimensions(value: Value) -> tuple[str, ...]:
    """The free dimensions of an input as `INPUT.DIM`: by name, or by position where the file names none."""
    return tuple(
        f"{value.name}.{size or position}"
        for position, size in enumerate(value.shape or ())
        if not isinstance(size, int)
    )


def _value_json(value: Value) -> dict[str, Any]:
    return {
        "name": value.name,
        "form": value.form,
        "type": value.element,
        "shape": None if value.shape is None else list(value.shape),
        "free": list(free_dimensions(value)),
    }


def _nodes(graph: OnnxGraph) -> Iterator[OnnxNode]:
    """Those of the main graph and of every body in it."""
    for each in (graph, *_bodies(graph)):
        yield from each.nodes


def _bodies(graph: OnnxGraph) -> Iterator[OnnxGraph]:
    for node in graph.nodes:
        for body in node.bodies:
            yield body
            yield from _bodies(body)


def _operator(node: OnnxNode) -> str:
    return f"{node.domain}.{node.op}" if node.domain else node.op


def _is_custom(node: OnnxNode, model: OnnxModel) -> bool:
    return node.domain not in STANDARD_DOMAINS and (node.domain, node.op) not in model.functions


def _is_opaque(node: OnnxNode, model: OnnxModel) -> bool:
    """Whether a node may multiply in any type: it has a body, in a local function too, or only a runtime knows it."""
    if node.bodies or (node.domain, node.op) in model.functions:
        return True
    return _is_custom(node, model) and node.op not in _OF_KNOWN_TYPE | {QUANTISE, DEQUANTISE}


def _by_count(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
