# SPDX-License-Identifier: Apache-2.0
"""Facts about this machine, from one probing worker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pybench import __version__
from pybench.case import Case
from pybench.case.factors import BOARD_SETTINGS
from pybench.catalogue.packages import PACKAGES
from pybench.errors import PybenchError
from pybench.launcher import HERE, Launcher
from pybench.machine.asking import ask_worker

EVERYTHING = ("machine", "cuda", *PACKAGES, "gpu", "cpu_energy")
PROBE_TIMEOUT_S = 180.0  # a cold import of torch from a network file system takes minutes

Facts = Mapping[str, Mapping[str, Any]]


def ask(names: Sequence[str], launcher: Launcher = HERE) -> Facts:
    """Asks a worker for facts by name (see `pybench.worker.probe`). `PybenchError` when it cannot answer, or is of
    another pybench than this one, as one in an image may be."""
    if not names:
        return {}
    report = ask_worker(launcher, ["--probe", ",".join(names)], ", ".join(names), timeout_s=PROBE_TIMEOUT_S)
    if (version := report.get("pybench")) != __version__:
        raise PybenchError(
            f"the worker is of pybench {version or 'without a version'}, this is {__version__}",
            hint="use the image of this version, or install the version that the image holds",
        )
    facts: Facts = report["facts"]
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
        if case.runtime_row is not None:
            names |= {*case.runtime_row.needs, case.runtime_row.gpu_fact}
        names |= {case.path} if case.path in ("hf", "rust", "go_rust") else set()
        names |= set(case.workload_row.needs)
        if case.runtime_row is not None and case.runtime_row.opens != "module":
            names |= {"torch", "onnx", "onnxscript", "onnxruntime"}  # built-in models are exported from torch
        names |= {"modelopt"} if case.quantiser == "modelopt" else set()
        is_set = any(getattr(case, name) is not None for name in BOARD_SETTINGS)
        is_idle_board = case.workload_row.names_board and case.device not in ("auto", "cpu", "cuda")
        names |= {"gpu"} if is_set or is_idle_board else set()
    return tuple(name for name in EVERYTHING if name in names)
