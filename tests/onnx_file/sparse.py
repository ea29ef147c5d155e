# SPDX-License-Identifier: Apache-2.0
"""A file whose weight takes no room on the disk."""

from __future__ import annotations

import os
from pathlib import Path

import onnx


def write_sparse(model: onnx.ModelProto, weight_bytes: int, path: Path) -> None:
    """The model with so many zero bytes of float32 in place of its last weight: a hole at the end of the file."""
    weight = model.graph.initializer.pop()
    weight.dims[:], weight.raw_data = [weight_bytes // 4], b""
    tensor = weight.SerializeToString() + _head(9, weight_bytes)  # raw_data comes last
    graph = model.graph.SerializeToString() + _head(5, len(tensor) + weight_bytes) + tensor
    model.ClearField("graph")
    path.write_bytes(model.SerializeToString() + _head(7, len(graph) + weight_bytes) + graph)
    os.truncate(path, path.stat().st_size + weight_bytes)


def _head(field: int, length: int) -> bytes:
    """What stands before `length` bytes of a field: its key and the length, each a varint."""
    written = bytearray([field << 3 | 2])
    while length > 0x7F:
        written.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes([*written, length])
