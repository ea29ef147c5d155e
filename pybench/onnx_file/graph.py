# SPDX-License-Identifier: Apache-2.0
"""Reads an ONNX file by protobuf's wire format: versions, inputs, nodes, types, properties; weights stay unread.

Importing the onnx package costs 0.4 s, in every run that is audited, and a plan may be checked where it is not
installed; this costs milliseconds. Field numbers are those of onnx.proto3, which never change; `tests/onnx_file`
compares this reader with the onnx package. Bodies of If, Loop and Scan are read, and the nodes of local functions.
Of values, only short lists of integers are read: they are the shapes and axes that nodes are given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import TypeVar

from pybench.errors import InputError
from pybench.onnx_file.wire import BYTES, Buffer, fields, mapped, messages, varints

# Field numbers of onnx.proto3.
_MODEL_IR, _MODEL_GRAPH, _MODEL_OPSET, _MODEL_PROPERTY, _MODEL_FUNCTION = 1, 7, 8, 14, 25
_MODEL_PRODUCER, _MODEL_PRODUCER_VERSION = 2, 3
_OPSET_DOMAIN, _OPSET_VERSION = 1, 2
_FUNCTION_NAME, _FUNCTION_NODE, _FUNCTION_DOMAIN = 1, 7, 10
_ENTRY_KEY, _ENTRY_VALUE = 1, 2
_GRAPH_NODE, _GRAPH_INITIALIZER, _GRAPH_SPARSE = 1, 5, 15
_GRAPH_INPUT, _GRAPH_OUTPUT, _GRAPH_BETWEEN = 11, 12, 13
_VALUE_NAME, _VALUE_TYPE = 1, 2
_TYPE_FORMS = {1: "tensor", 4: "sequence", 5: "map", 8: "sparse tensor", 9: "optional"}
_TENSOR_ELEMENT, _TENSOR_SHAPE = 1, 2
_SHAPE_SIZE, _SIZE_VALUE, _SIZE_NAME = 1, 1, 2
_NODE_INPUT, _NODE_OUTPUT, _NODE_NAME, _NODE_OP, _NODE_ATTRIBUTE, _NODE_DOMAIN = 1, 2, 3, 4, 5, 7
_ATTRIBUTE_NAME, _ATTRIBUTE_INT, _ATTRIBUTE_TENSOR, _ATTRIBUTE_GRAPH, _ATTRIBUTE_INTS = 1, 3, 5, 6, 8
_ATTRIBUTE_GRAPHS = 11
_WEIGHT_DIMS, _WEIGHT_TYPE, _WEIGHT_FLOAT, _WEIGHT_INT32, _WEIGHT_INT64 = 1, 2, 4, 5, 7
_WEIGHT_NAME, _WEIGHT_RAW, _WEIGHT_BESIDE = 8, 9, 13
_SPARSE_VALUES = 1
# TensorProto.DataType
_TYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string", 9: "bool",
    10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128", 16: "bfloat16",
    17: "float8e4m3fn", 18: "float8e4m3fnuz", 19: "float8e5m2", 20: "float8e5m2fnuz", 21: "uint4", 22: "int4",
    23: "float4e2m1",
}  # fmt: skip
_TYPE_ATTRIBUTES = {"Cast": "to", "QuantizeLinear": "output_dtype", "DequantizeLinear": "output_dtype"}

BITS = {  # of an element as raw data
    "uint8": 8, "int8": 8, "bool": 8, "float8e4m3fn": 8, "float8e4m3fnuz": 8, "float8e5m2": 8, "float8e5m2fnuz": 8,
    "uint16": 16, "int16": 16, "float16": 16, "bfloat16": 16, "int32": 32, "uint32": 32, "float32": 32, "int64": 64,
    "uint64": 64, "float64": 64, "complex64": 64, "complex128": 128, "uint4": 4, "int4": 4, "float4e2m1": 4,
}  # fmt: skip
LONGEST_INTEGERS = 64  # elements of a list of integers that is read: shapes and axes have fewer dimensions
DEEPEST_GRAPHS = 33  # one inside another: protobuf reads 100 nested messages, and each level is three

Shape = tuple[int | str | None, ...]  # a size, the name of a free one, or None: free and without a name
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Value:
    """An input or output.

    form: `tensor`, `sequence`, ... or empty
    element: the type of a tensor, or empty
    shape: sizes and names of dimensions; None where not even their number is stated
    leads: of an input, whether its leading dimension may be the batch (`OnnxGraph.fed`)
    """

    name: str
    form: str
    element: str
    shape: Shape | None
    leads: bool = True


@dataclass(frozen=True, slots=True)
class OnnxNode:
    """One operator of the graph.

    op, domain: the operator and the set that it is of; ONNX's own domain is empty
    name: of the node
    inputs, outputs: names of what it reads and writes
    to: the type that it writes, where it is a Cast, QuantizeLinear or DequantizeLinear that states one; otherwise empty
    bodies: the graphs inside it
    attributes: (name, numbers) of those that are integers, a list or one
    """

    op: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    to: str = ""
    domain: str = ""
    bodies: tuple[OnnxGraph, ...] = ()
    attributes: tuple[tuple[str, tuple[int, ...]], ...] = ()

    def integer(self, attribute: str, default: int) -> int:
        """The value of an attribute that is one integer."""
        return next(iter(dict(self.attributes).get(attribute, ())), default)


@dataclass(frozen=True, slots=True)
class ExternalData:
    """Where a weight lies that is not in the file: `location` is relative to it, numbers are bytes."""

    location: str
    offset: int
    length: int | None


@dataclass(frozen=True, slots=True)
class OnnxGraph:
    """What a file has in its graph.

    weights: name -> (type, elements) of every initialiser
    types: type of every other tensor that the file states one of
    properties: what the file says of itself
    beside: weights that are in other files
    sizes: initialiser -> its shape
    integers: values of short int32 and int64 constants, initialisers and nodes
    stored: initialiser -> bytes of its values in the file, where it has them as raw or as packed float data
    """

    nodes: tuple[OnnxNode, ...]
    weights: dict[str, tuple[str, int]]
    types: dict[str, str]
    properties: dict[str, str]
    inputs: tuple[Value, ...] = ()
    outputs: tuple[Value, ...] = ()
    beside: dict[str, ExternalData] | None = None
    sizes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    integers: dict[str, tuple[int, ...]] = field(default_factory=dict)
    stored: dict[str, int] = field(default_factory=dict)

    @property
    def fed(self) -> tuple[Value, ...]:
        """The inputs that have no value yet: until ir_version 3, every weight was listed as an input, too.

        Where their leading sizes are fixed and differ, the first output tells which of them is the batch. The others do
        not lead, such as a timestep of [1] or a list of boxes.
        """
        fed = tuple(value for value in self.inputs if value.name not in self.weights)
        sizes = {value.shape[0] for value in fed if value.shape}
        batch = next((value.shape[0] for value in self.outputs[:1] if value.shape), None)
        if batch not in sizes or not all(isinstance(size, int) for size in sizes):
            return fed
        return tuple(replace(value, leads=not value.shape or value.shape[0] == batch) for value in fed)


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """A whole file.

    ir_version: of the format
    opsets: domain -> version, ONNX's own domain as ""
    functions: (domain, name) of a local function -> its nodes
    graph: the main one
    producer: the exporter and its version, or empty
    """

    ir_version: int
    opsets: dict[str, int]
    functions: dict[tuple[str, str], tuple[OnnxNode, ...]]
    graph: OnnxGraph
    producer: str = ""


def read_model(path: Path) -> OnnxModel:
    """An ONNX file. Raises InputError when the file is not one."""
    return _read(path, _model)


def read_graph(path: Path) -> OnnxGraph:
    """The main graph of an ONNX file. Raises InputError when the file is not one."""
    return read_model(path).graph


def read_properties(path: Path) -> dict[str, str]:
    """The properties (`metadata_props`) of an ONNX file. Raises InputError when the file is not one."""
    return _read(path, _properties)


def first_with_body(model: OnnxModel) -> OnnxNode | None:
    """A first node with graphs inside (If, Loop, Scan): of the main graph, or of a local function that it calls."""
    waiting, called = list(model.graph.nodes), set()
    for node in waiting:  # grows while it is walked
        if node.bodies:
            return node
        function = (node.domain, node.op)
        if function in model.functions and function not in called:
            called.add(function)
            waiting += model.functions[function]
    return None


def node_name(name: str, first_output: str) -> str:
    """What a node is called in facts: its own name, or the one that TensorRT gives a node without."""
    return name or f"node_of_{first_output}"


def _read(path: Path, parse: Callable[[Buffer], T]) -> T:
    try:
        return parse(mapped(path))
    except (OSError, ValueError, IndexError) as error:  # ValueError: also mmap of an empty file, and no UTF-8
        raise InputError(f"{path} is not an ONNX file ({error})") from error


def _model(whole: Buffer) -> OnnxModel:
    ir_version, opsets, functions, graphs = 0, {}, {}, []
    for number, _, value in fields(whole):
        if number == _MODEL_IR and isinstance(value, int):
            ir_version = value
        elif not isinstance(value, memoryview):
            continue
        elif number == _MODEL_OPSET:
            domain, version = _opset(value)
            opsets[domain] = version
        elif number == _MODEL_FUNCTION:
            texts = _texts(value, (_FUNCTION_NAME, _FUNCTION_DOMAIN))
            nodes = (_node(inner, DEEPEST_GRAPHS)[0] for part, inner in messages(value) if part == _FUNCTION_NODE)
            functions[texts.get(_FUNCTION_DOMAIN, ""), texts.get(_FUNCTION_NAME, "")] = tuple(nodes)
        elif number == _MODEL_GRAPH:
            graphs.append(value)
    if not graphs:
        raise ValueError("it has no graph")
    graph = _graph(graphs[-1], _properties(whole), DEEPEST_GRAPHS)
    texts = _texts(whole, (_MODEL_PRODUCER, _MODEL_PRODUCER_VERSION))
    producer = " ".join(filter(None, (texts.get(_MODEL_PRODUCER), texts.get(_MODEL_PRODUCER_VERSION))))
    return OnnxModel(ir_version, opsets, functions, graph, producer)


def _opset(content: Buffer) -> tuple[str, int]:
    domain, version = "", 0
    for number, _, value in fields(content):
        if number == _OPSET_DOMAIN and isinstance(value, memoryview):
            domain = str(value, "utf-8")
        elif number == _OPSET_VERSION and isinstance(value, int):
            version = value
    return own_domain(domain), version


def own_domain(domain: str) -> str:
    """A domain's name, and "" for both names of ONNX's own."""
    return "" if domain == "ai.onnx" else domain


def _texts(content: Buffer, wanted: tuple[int, ...]) -> dict[int, str]:
    return {number: str(value, "utf-8") for number, value in messages(content) if number in wanted}


def _properties(whole: Buffer) -> dict[str, str]:
    return dict(_entry(content) for number, content in messages(whole) if number == _MODEL_PROPERTY)


def _entry(content: Buffer) -> tuple[str, str]:
    texts = _texts(content, (_ENTRY_KEY, _ENTRY_VALUE))
    return texts.get(_ENTRY_KEY, ""), texts.get(_ENTRY_VALUE, "")


def _graph(content: Buffer, properties: dict[str, str], depth: int) -> OnnxGraph:
    if depth == 0:
        raise ValueError(f"graphs inside graphs, more than {DEEPEST_GRAPHS} deep")
    nodes: list[OnnxNode] = []
    weights: dict[str, tuple[str, int]] = {}
    sizes: dict[str, tuple[int, ...]] = {}
    integers: dict[str, tuple[int, ...]] = {}
    values: dict[int, list[Value]] = {_GRAPH_INPUT: [], _GRAPH_OUTPUT: [], _GRAPH_BETWEEN: []}
    beside: dict[str, ExternalData] = {}
    stored: dict[str, int] = {}
    for part, inner in messages(content):
        if part == _GRAPH_NODE:
            node, constant = _node(inner, depth)
            nodes.append(node)
            if constant is not None and node.outputs:
                integers[node.outputs[0]] = constant
        elif part in (_GRAPH_INITIALIZER, _GRAPH_SPARSE):
            dense = inner if part == _GRAPH_INITIALIZER else _sparse_values(inner)
            found = _weight(dense)
            name = found.name
            weights[name], sizes[name] = (found.kind, prod(found.shape)), found.shape
            if found.bytes is not None:
                stored[name] = found.bytes
            if found.beside is not None:
                beside[name] = found.beside
            elif part == _GRAPH_INITIALIZER and (numbers := _integers(dense, found)) is not None:
                integers[name] = numbers
        elif part in values:
            values[part].append(_value(inner))
    stated = [value for kind in values.values() for value in kind]
    types = {value.name: value.element for value in stated if value.element}
    inputs, outputs = tuple(values[_GRAPH_INPUT]), tuple(values[_GRAPH_OUTPUT])
    return OnnxGraph(tuple(nodes), weights, types, properties, inputs, outputs, beside, sizes, integers, stored)


def _value(content: Buffer) -> Value:
    name, form, element = "", "", ""
    shape: Shape | None = None
    for number, inner in messages(content):
        if number == _VALUE_NAME:
            name = str(inner, "utf-8")
        elif number == _VALUE_TYPE:
            for part, described in messages(inner):
                form = _TYPE_FORMS.get(part, form)
                if form == "tensor" and part in _TYPE_FORMS:
                    element, shape = _tensor_type(described)
    return Value(name, form, element, shape)


def _tensor_type(content: Buffer) -> tuple[str, Shape | None]:
    element = ""
    shape: Shape | None = None
    for number, _, value in fields(content):
        if number == _TENSOR_ELEMENT and isinstance(value, int):
            element = _TYPES.get(value, f"type {value}")
        elif number == _TENSOR_SHAPE and isinstance(value, memoryview):
            shape = tuple(_size(size) for part, size in messages(value) if part == _SHAPE_SIZE)
    return element, shape


def _size(content: Buffer) -> int | str | None:
    for number, _, value in fields(content):
        if number == _SIZE_VALUE and isinstance(value, int):
            return value if value < 1 << 63 else None  # some exporters write -1 where any size goes
        if number == _SIZE_NAME and isinstance(value, memoryview):
            return str(value, "utf-8") or None
    return None


def _node(content: Buffer, depth: int) -> tuple[OnnxNode, tuple[int, ...] | None]:
    """A node, and the integers that it writes if it is a Constant of few."""
    texts: dict[int, list[str]] = {
        _NODE_INPUT: [],
        _NODE_OUTPUT: [],
        _NODE_NAME: [""],
        _NODE_OP: [""],
        _NODE_DOMAIN: [""],
    }
    contents = []
    for number, value in messages(content):
        if number in texts:
            texts[number].append(str(value, "utf-8"))
        elif number == _NODE_ATTRIBUTE:
            contents.append(value)
    op = texts[_NODE_OP][-1]
    attributes = [_attribute(content, depth) for content in contents]
    integers = tuple((one.name, one.integers) for one in attributes if one.integers)
    node = OnnxNode(
        op,
        texts[_NODE_NAME][-1],
        tuple(texts[_NODE_INPUT]),
        tuple(texts[_NODE_OUTPUT]),
        _written_type(op, integers),
        own_domain(texts[_NODE_DOMAIN][-1]),
        tuple(body for one in attributes for body in one.bodies),
        integers,
    )
    constant = (
        next((one.constant for one in attributes if one.constant is not None), None) if op == "Constant" else None
    )
    return node, constant


@dataclass(frozen=True, slots=True)
class _Attribute:
    """What is read of an attribute. `constant`: the value of a tensor of few integers."""

    name: str
    integers: tuple[int, ...]
    bodies: tuple[OnnxGraph, ...]
    constant: tuple[int, ...] | None


def _attribute(content: Buffer, depth: int) -> _Attribute:
    name, constant = "", None
    integers: list[int] = []
    bodies: list[OnnxGraph] = []
    for number, wire, value in fields(content):
        if number == _ATTRIBUTE_NAME and isinstance(value, memoryview):
            name = str(value, "utf-8")
        elif number in (_ATTRIBUTE_INT, _ATTRIBUTE_INTS):
            integers += _numbers(wire, value)
        elif number == _ATTRIBUTE_TENSOR and isinstance(value, memoryview):
            tensor = _weight(value)
            constant = _integers(value, tensor) if tensor.beside is None else None
        elif number in (_ATTRIBUTE_GRAPH, _ATTRIBUTE_GRAPHS) and isinstance(value, memoryview):
            bodies.append(_graph(value, {}, depth - 1))
    if name in ("value_int", "value_ints"):  # of a Constant
        constant = tuple(integers)
    return _Attribute(name, tuple(integers), tuple(bodies), constant)


def _numbers(wire: int, value: Buffer | int) -> list[int]:
    """Signed integers of one field: packed, or one alone."""
    plain = list(varints(value)) if wire == BYTES and isinstance(value, memoryview) else [value]
    return [each - (1 << 64) if each >= 1 << 63 else each for each in plain if isinstance(each, int)]


def _written_type(op: str, attributes: Sequence[tuple[str, tuple[int, ...]]]) -> str:
    """The type that a node's attribute states; empty without one, and for the number 0, which stands for none."""
    attribute = _TYPE_ATTRIBUTES.get(op)
    kind = next((numbers[0] for name, numbers in attributes if name == attribute), 0)
    return _TYPES.get(kind, f"type {kind}") if kind else ""


def _sparse_values(content: Buffer) -> Buffer:
    return next((values for number, values in messages(content) if number == _SPARSE_VALUES), memoryview(b""))


@dataclass(frozen=True, slots=True)
class _Weight:
    """What is read of a tensor.

    kind: the type of its elements
    bytes: of raw or packed float data; None without such data
    beside: where the data is in another file; None: in this one
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    bytes: int | None
    beside: ExternalData | None


def _weight(content: Buffer) -> _Weight:
    name, kind = "", "undefined"
    shape: list[int] = []
    size: int | None = None
    beside: dict[str, str] = {}
    for number, wire, value in fields(content):
        if number == _WEIGHT_NAME and isinstance(value, memoryview):
            name = str(value, "utf-8")
        elif number == _WEIGHT_TYPE and isinstance(value, int):
            kind = _TYPES.get(value, f"type {value}")
        elif number == _WEIGHT_DIMS:
            shape += _numbers(wire, value)
        elif number == _WEIGHT_BESIDE and isinstance(value, memoryview):
            key, text = _entry(value)
            beside[key] = text
        elif number == _WEIGHT_RAW and isinstance(value, memoryview):
            size = len(value)
        elif number == _WEIGHT_FLOAT and kind == "float32" and isinstance(value, memoryview):
            size = (size or 0) + len(value)  # packed, or one by one
    return _Weight(name, kind, tuple(shape), size, _beside(beside) if beside else None)


def _integers(content: Buffer, weight: _Weight) -> tuple[int, ...] | None:
    """The values of a tensor of few int32 or int64; None for any other."""
    if weight.kind not in ("int32", "int64") or not 0 <= prod(weight.shape) <= LONGEST_INTEGERS:
        return None
    found: list[int] = []
    for number, wire, value in fields(content):
        if number in (_WEIGHT_INT32, _WEIGHT_INT64):
            found += _numbers(wire, value)
        elif number == _WEIGHT_RAW and isinstance(value, memoryview):
            width = 4 if weight.kind == "int32" else 8
            ends = range(width, len(value) + 1, width)
            found += [int.from_bytes(value[end - width : end], "little", signed=True) for end in ends]
    return tuple(found) if len(found) == prod(weight.shape) else None


def _beside(entries: dict[str, str]) -> ExternalData:
    length = entries.get("length")
    return ExternalData(
        entries.get("location", ""), int(entries.get("offset", "0")), None if length is None else int(length)
    )
