# SPDX-License-Identifier: Apache-2.0
"""Unusual ONNX files by their names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx

FILES: dict[str, Callable[[Path], object]] = {}  # name -> what writes it to a path


def file(name: str) -> Callable[[Callable[[Path], object]], Callable[[Path], object]]:
    """Names a function that writes to a path."""

    def register(function: Callable[[Path], object]) -> Callable[[Path], object]:
        FILES[name] = function
        return function

    return register


def model(name: str) -> Callable[[Callable[[], onnx.ModelProto]], Callable[[], onnx.ModelProto]]:
    """Names a function that makes the content."""

    def register(function: Callable[[], onnx.ModelProto]) -> Callable[[], onnx.ModelProto]:
        FILES[name] = lambda path: onnx.save(function(), path)
        return function

    return register
