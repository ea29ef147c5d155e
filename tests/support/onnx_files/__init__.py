# SPDX-License-Identifier: Apache-2.0
"""Unusual ONNX files: each is written into a folder of its own, under `model.onnx`.

    write("truncated", folder) -> folder / "model.onnx"

    contents  bytes that are no model, weights in other files, and what exporters and tools write
    graphs    versions, operators, inputs, and rules that a graph breaks
    named     the files by their names

Made with onnx.helper, torch's two exporters and onnxruntime's quantiser. Sources of the kinds: what users of TensorRT
and onnxruntime report, and each rule of the ONNX specification that a file can break.
"""

from __future__ import annotations

from pathlib import Path

from tests.support.onnx_files import contents, graphs
from tests.support.onnx_files.named import FILES

__all__ = ["FILE", "FILES", "contents", "graphs", "write"]

FILE = "model.onnx"


def write(name: str, folder: Path) -> Path:
    """Writes the file of this name; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    FILES[name](folder / FILE)
    return folder / FILE
