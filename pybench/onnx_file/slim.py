# SPDX-License-Identifier: Apache-2.0
"""An ONNX file without the values of its large weights: kilobytes of what may be gigabytes, for shape inference.

Field by field from the mapped file, so that a weight that is left out is never read. Names, types and sizes of every
weight stay. Weights in bodies of If, Loop and Scan, and constants in nodes, stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from pathlib import Path

from pybench.errors import InputError
from pybench.onnx_file.wire import BYTES, VARINT, Buffer, fields, mapped, varints

# Field numbers of onnx.proto3.
_MODEL_GRAPH, _GRAPH_INITIALIZER, _WEIGHT_DIMS = 7, 5, 1
_VALUES = frozenset({4, 5, 6, 7, 9, 10, 11})  # of a TensorProto: float_data to uint64_data, and raw_data


def without_weights(path: Path, kept_elements: int) -> bytes:
    """The file's bytes without the values of weights that have more than `kept_elements`.

    Raises InputError when the file is not ONNX.
    """
    try:
        return b"".join(_copied(mapped(path), _MODEL_GRAPH, lambda graph: _graph(graph, kept_elements)))
    except (OSError, ValueError, IndexError) as error:
        raise InputError(f"{path} is not an ONNX file ({error})") from error


def _graph(content: Buffer, kept_elements: int) -> bytes:
    return b"".join(_copied(content, _GRAPH_INITIALIZER, lambda weight: _weight(weight, kept_elements)))


def _weight(content: Buffer, kept_elements: int) -> bytes:
    sizes: list[int] = []
    for number, wire, value in fields(content):
        if number == _WEIGHT_DIMS:
            sizes += varints(value) if isinstance(value, memoryview) else [value] if wire == VARINT else []
    if prod(sizes) <= kept_elements:
        return bytes(content)
    return b"".join(_field(*field) for field in fields(content) if field[0] not in _VALUES)


def _copied(content: Buffer, changed: int, change: Callable[[Buffer], bytes]) -> Iterator[bytes]:
    """Every field of a message, those of one number changed."""
    for number, wire, value in fields(content):
        if number == changed and isinstance(value, memoryview):
            yield _field(number, wire, change(value))
        else:
            yield _field(number, wire, value)


def _field(number: int, wire: int, value: Buffer | bytes | int) -> bytes:
    """A field as it is written: its key, the length where it has one, its content."""
    key = _varint(number << 3 | wire)
    if isinstance(value, int):
        return key + _varint(value)
    return key + (_varint(len(value)) if wire == BYTES else b"") + bytes(value)


def _varint(value: int) -> bytes:
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*written, value])
