# SPDX-License-Identifier: Apache-2.0
"""What ONNX Runtime says of a file that it does not open, as pybench's error: the same through Python and C.

Imports no onnxruntime.
"""

from __future__ import annotations

import re
from pathlib import Path

from pybench.catalogue.causes import Cause
from pybench.catalogue.runtimes import RUNTIMES
from pybench.errors import InputError, PybenchError, UnsupportedError, in_short

_OF_GPUS = {backend.name for backend in RUNTIMES["onnxruntime"].backends if backend.needs_gpu}
# Of a status that says FAIL, which is a user's file or a GPU: words of CUDA's libraries and of TensorRT's provider.
_GPU_FAILED = re.compile(r"\bCU[A-Z_]* failure \d|TensorRT (EP|input|output)")
# What it says of a file that another version, or another runtime, may take: its words, a code, what to do about it.
_NOT_TAKEN = (
    (
        re.compile(r"Unsupported model IR version: \d+, max supported IR version: \d+"),
        Cause.FORMAT_TOO_NEW,
        "install a newer onnxruntime, or save the model with an older ir_version",
    ),
    (
        re.compile(r"Opset \d+ is under development|official support for domain \S+ is till opset \d+"),
        Cause.OPSET_TOO_NEW,
        "install a newer onnxruntime, or export the model with an older opset",
    ),
    (
        re.compile(r"\S+ is not a registered function/op|No Op registered for \S+"),
        Cause.UNKNOWN_OPERATOR,
        "export the model with ONNX's own operators: no library of custom ones is loaded",
    ),
)
# What stands before the message: in Python the status, then the file, and a place in onnxruntime's own sources.
_PREAMBLE = re.compile(
    r"^(\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : )?(Load model from .*? failed:)?(/onnxruntime_src/.*?\) )?"
)
# How a provider without a kernel for a node's type may end, where it took the nodes around it (1.31, bf16 MaxPool).
_UNPLACED = re.compile(r"Provider type for (\S+) node with name '([^']+)' is not set")


def refusal_of(path: Path, provider: str, status: str, message: str) -> PybenchError | None:
    """The error for a status (`INVALID_GRAPH`) of opening a file; None: of a GPU it may be the failing."""
    if status == "NOT_IMPLEMENTED":
        return UnsupportedError(
            f"{path}: onnxruntime has no kernel for an operator ({short(message)})",
            code=Cause.NO_KERNEL,
            hint="export the model in FP32, or use another runtime",
        )
    if status == "RUNTIME_EXCEPTION" and provider in _OF_GPUS:
        return None
    if unplaced := _UNPLACED.search(message):
        return UnsupportedError(
            f"onnxruntime's provider {provider} has no kernel for {unplaced[2]} ({unplaced[1]}) in its type",
            code=Cause.NO_KERNEL,
            hint="keep that node in FP32 with keep_fp32",
        )
    if _GPU_FAILED.search(message):
        return None
    for words, code, hint in _NOT_TAKEN:
        if said := words.search(message):
            return UnsupportedError(f"{path}: onnxruntime: {said[0]}", code=code, hint=hint)
    hint = "check it with onnx.checker.check_model(FILE, full_check=True), and export it again"
    return InputError(f"{path} is not a runnable ONNX model ({short(message)})", hint=hint)


def not_started(provider: str) -> UnsupportedError:
    """The error for a provider that the build has, and that does not start."""
    return UnsupportedError(
        f"onnxruntime could not start its provider {provider}",
        code=Cause.NO_PROVIDER,
        names=(provider,),
        hint="its log says which library is missing",
    )


def short(error: object) -> str:
    """The message without what stands before it, on one line, at most 200 characters."""
    return in_short(_PREAMBLE.sub("", " ".join(str(error).split())))
