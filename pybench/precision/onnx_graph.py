# SPDX-License-Identifier: Apache-2.0
"""Reads of an ONNX file what an audit needs (nodes, types, properties) by protobuf's wire format, weights unread.

Importing the onnx package costs 0.4 s, in every run that is audited; this costs milliseconds. Field numbers are those
of onnx.proto3, which never change; `tests/precision` holds this reader to the onnx package. Reads the main graph
only: bodies of If, Loop and Scan, and local functions, are not looked into.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pybench.errors import InputError

# Field numbers of onnx.proto3.
_MODEL_GRAPH, _MODEL_PROPERTY = 7, 14
_PROPERTY_KEY, _PROPERTY_VALUE = 1, 2
_GRAPH_NODE, _GRAPH_INITIALIZER = 1, 5
_GRAPH_VALUES = (11, 12, 13)  # inputs, outputs, what lies between
_VALUE_NAME, _VALUE_TYPE = 1, 2
_TYPE_TENSOR, _TENSOR_ELEMENT = 1, 1
_NODE_INPUT, _NODE_OUTPUT, _NODE_NAME, _NODE_OP, _NODE_ATTRIBUTE = 1, 2, 3, 4, 5
_ATTRIBUTE_NAME, _ATTRIBUTE_INT = 1, 3
_TENSOR_DIMS, _TENSOR_TYPE, _TENSOR_NAME = 1, 2, 8
# TensorProto.DataType
_TYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16",
    11: "float64", 12: "uint32", 13: "uint64", 16: "bfloat16", 17: "float8e4m3fn", 18: "float8e4m3fnuz",
    19: "float8e5m2", 20: "float8e5m2fnuz", 21: "uint4", 22: "int4", 23: "float4e2m1",
}  # fmt: skip
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

Buffer = memoryview
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Node:
    """One operator of the graph, with the names of what it reads and writes. `to`: the type that a Cast writes."""

    op: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    to: str = ""


@dataclass(frozen=True, slots=True)
class Graph:
    """`weights`: name -> (type, elements) of every initialiser; `types`: type of every other tensor that the file
    states one of; `properties`: what the file says of itself."""

    nodes: tuple[Node, ...]
    weights: dict[str, tuple[str, int]]
    types: dict[str, str]
    properties: dict[str, str]


def read_graph(path: Path) -> Graph:
    """The main graph of an ONNX file. Raises InputError when the file is not one."""
    return _read(path, lambda whole: _graph(whole, path))


def read_properties(path: Path) -> dict[str, str]:
    """The properties (`metadata_props`) of an ONNX file. Raises InputError when the file is not one."""
    return _read(path, _properties)


def node_name(name: str, first_output: str) -> str:
    """What a node is called in facts: its own name, or the one that TensorRT gives a node without."""
    return name or f"node_of_{first_output}"


def _read(path: Path, parse: Callable[[Buffer], T]) -> T:
    try:
        with open(path, "rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return parse(memoryview(mapped))  # the mapping goes with the last view of it, also after an error
    except (OSError, ValueError, IndexError, UnicodeDecodeError) as error:  # ValueError: also mmap of an empty file
        raise InputError(f"{path} is not an ONNX file ({error})") from error


def _properties(whole: Buffer) -> dict[str, str]:
    found = {}
    for number, entry in _messages(whole):
        if number == _MODEL_PROPERTY:
            texts = {part: str(content, "utf-8") for part, content in _messages(entry)}
            found[texts.get(_PROPERTY_KEY, "")] = texts.get(_PROPERTY_VALUE, "")
    return found


def _graph(whole: Buffer, path: Path) -> Graph:
    graphs = [content for number, content in _messages(whole) if number == _MODEL_GRAPH]
    if not graphs:
        raise InputError(f"{path} is not an ONNX file (it holds no graph)")
    return _main(graphs[-1], _properties(whole))


def _main(content: Buffer, properties: dict[str, str]) -> Graph:
    nodes: list[Node] = []
    weights: dict[str, tuple[str, int]] = {}
    types: dict[str, str] = {}
    for part, inner in _messages(content):
        if part == _GRAPH_NODE:
            nodes.append(_node(inner))
        elif part == _GRAPH_INITIALIZER:
            name, kind, elements = _tensor(inner)
            weights[name] = (kind, elements)
        elif part in _GRAPH_VALUES:
            name, kind = _value(inner)
            if kind:
                types[name] = kind
    return Graph(tuple(nodes), weights, types, properties)


def _value(content: Buffer) -> tuple[str, str]:
    """Name and type of a ValueInfo; the type is empty where it is no tensor's."""
    name, kind = "", ""
    for number, inner in _messages(content):
        if number == _VALUE_NAME:
            name = str(inner, "utf-8")
        elif number == _VALUE_TYPE:
            for form, tensor in _messages(inner):
                if form == _TYPE_TENSOR:
                    elements = [value for part, _, value in _fields(tensor) if part == _TENSOR_ELEMENT]
                    kind = next(
                        (_TYPES.get(value, f"type {value}") for value in elements if isinstance(value, int)), ""
                    )
    return name, kind


def _node(content: Buffer) -> Node:
    texts: dict[int, list[str]] = {_NODE_INPUT: [], _NODE_OUTPUT: [], _NODE_NAME: [""], _NODE_OP: [""]}
    attributes = []
    for number, value in _messages(content):
        if number in texts:
            texts[number].append(str(value, "utf-8"))
        elif number == _NODE_ATTRIBUTE:
            attributes.append(value)
    op = texts[_NODE_OP][-1]
    to = _cast_type(attributes) if op == "Cast" else ""
    return Node(op, texts[_NODE_NAME][-1], tuple(texts[_NODE_INPUT]), tuple(texts[_NODE_OUTPUT]), to)


def _cast_type(attributes: list[Buffer]) -> str:
    """The type that a Cast's attribute `to` states; empty without one."""
    for attribute in attributes:
        found = {number: value for number, _, value in _fields(attribute)}
        name, kind = found.get(_ATTRIBUTE_NAME), found.get(_ATTRIBUTE_INT)
        if isinstance(name, memoryview) and bytes(name) == b"to" and isinstance(kind, int):
            return _TYPES.get(kind, f"type {kind}")
    return ""


def _tensor(content: Buffer) -> tuple[str, str, int]:
    name, kind, elements = "", "undefined", 1
    for number, wire, value in _fields(content):
        if number == _TENSOR_NAME and isinstance(value, memoryview):
            name = str(value, "utf-8")
        elif number == _TENSOR_TYPE and isinstance(value, int):
            kind = _TYPES.get(value, f"type {value}")
        elif number == _TENSOR_DIMS:
            for size in _varints(value) if wire == _BYTES and isinstance(value, memoryview) else [value]:
                elements *= size if isinstance(size, int) else 1
    return name, kind, elements


def _messages(content: Buffer) -> Iterator[tuple[int, Buffer]]:
    for number, _, value in _fields(content):
        if isinstance(value, memoryview):
            yield number, value


def _fields(content: Buffer) -> Iterator[tuple[int, int, Buffer | int]]:
    """(field number, wire type, value) of a message; raises ValueError or IndexError when the bytes are no message."""
    position, end = 0, len(content)
    while position < end:
        key, position = _varint(content, position)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, position = _varint(content, position)
            yield number, wire, value
            continue
        if wire == _BYTES:
            length, position = _varint(content, position)
        elif wire in (_FIXED64, _FIXED32):
            length = 8 if wire == _FIXED64 else 4
        else:
            raise ValueError(f"wire type {wire} at byte {position}")
        if position + length > end:
            raise ValueError(f"truncated: {length} bytes wanted at byte {position} of {end}")
        yield number, wire, content[position : position + length]
        position += length


def _varints(content: Buffer) -> Iterator[int]:
    position = 0
    while position < len(content):
        value, position = _varint(content, position)
        yield value


def _varint(content: Buffer, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 63:
            raise ValueError(f"no number at byte {position}")
