# SPDX-License-Identifier: Apache-2.0
"""Facts about this machine, from one probing worker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pybench.case import Case
from pybench.errors import PybenchError

EVERYTHING = (
    "machine",
    "torch",
    "onnxruntime",
    "onnx",
    "onnxscript",
    "digits",
    "hf",
    "rust",
    "go_rust",
    "gpu",
    "cpu_energy",
)
PROBE_TIMEOUT_S = 180.0  # a cold import of torch from a network file system takes minutes

Facts = Mapping[str, Mapping[str, Any]]


def ask(names: Sequence[str]) -> Facts:
    """Asks a worker for facts by name (see `pybench.worker.probe`). `PybenchError` when it cannot answer."""
    if not names:
        return {}
    read_end, write_end = os.pipe2(os.O_CLOEXEC)
    command = [sys.executable, "-P", "-m", "pybench.worker", "--report", str(write_end)]
    command += ["--parent", str(os.getpid()), "--probe", ",".join(names)]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, pass_fds=(write_end,)
    )
    os.close(write_end)
    try:
        _, stderr = process.communicate(timeout=PROBE_TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        process.kill()
        process.communicate()
        raise PybenchError(f"asking this machine for {', '.join(names)} took over {PROBE_TIMEOUT_S:.0f} s") from error
    finally:
        with open(read_end, "rb") as pipe:
            text = pipe.read() if process.returncode is not None else b""
    try:
        facts: Facts = json.loads(text)["facts"]
    except (json.JSONDecodeError, KeyError) as error:
        last = stderr.decode(errors="replace").strip().splitlines()[-1:] or [f"exit status {process.returncode}"]
        raise PybenchError(
            f"the worker could not look at this machine: {last[0]}", hint="run `pybench doctor`"
        ) from error
    if not facts.get("machine", {"available": True})["available"]:
        raise PybenchError(
            f"pybench is not whole on this machine: {facts['machine']['why']}",
            hint="run `make`, or install pybench again",
        )
    return facts


def needed_facts(cases: Iterable[Case]) -> tuple[str, ...]:
    """The facts that `unsupported` asks for these cases; nothing else is imported to find them."""
    names = {"machine"}
    for case in cases:
        names |= {case.runtime} if case.runtime else set()
        names |= {case.path} if case.path in ("hf", "rust", "go_rust") else set()
        names |= {"torch"} if case.workload in ("h2d", "train") else set()
        if case.runtime == "onnxruntime":
            names |= {"torch", "onnx", "onnxscript"}  # built-in models are exported from torch
    return tuple(name for name in EVERYTHING if name in names)
