# SPDX-License-Identifier: Apache-2.0
"""Factors that only some runtimes have."""

from __future__ import annotations

from dataclasses import dataclass

from pybench.case.factor import runtime_factor
from pybench.case.factors.quantising import QuantisingFactors
from pybench.catalogue.runtimes import COMPILE_MODES, PROVIDERS, SOLVERS

LAUNCHES = ("graph", "enqueue")


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeFactors(QuantisingFactors):
    """What only some runtimes have."""

    workspace_bytes: int | None = runtime_factor(
        "workspace_bytes",
        "integer",
        None,
        "scratch memory that TensorRT may use for an engine",
        "engine",
        minimum=1,
        absent="all memory of the GPU",
        answers=False,
    )
    optimisation_level: int = runtime_factor(
        "optimisation_level",
        "integer",
        3,
        "how long TensorRT searches for fast kernels (`builder_optimization_level`)",
        "engine",
        minimum=1,
        maximum=5,
        answers=False,
    )
    aux_streams: int = runtime_factor(
        "aux_streams",
        "integer",
        0,
        "CUDA streams that an engine may use besides its own",
        "engine",
        minimum=0,
        answers=False,
    )
    build: int = runtime_factor(
        "build",
        "integer",
        1,
        "number of the build of a TensorRT engine; several numbers build the same engine several times, because two "
        "builds of one model differ",
        "engine",
        minimum=1,
        answers=False,
    )
    launch: str = runtime_factor(
        "launch",
        "choice",
        "graph",
        "how a GPU gets the work of an iteration: as one captured CUDA graph, or kernel by kernel",
        "serving",
        follows=("runtime", "provider"),
        choices=LAUNCHES,
        answers=False,
    )
    provider: str | None = runtime_factor(
        "provider",
        "choice",
        None,
        "which execution provider onnxruntime uses",
        choices=PROVIDERS,
        absent="`cuda` if there is a GPU and the installed build supports it, else `cpu`",
        answers=True,
    )
    compile_mode: str = runtime_factor(
        "compile_mode", "choice", "default", "what torch-compile optimises for", choices=COMPILE_MODES, answers=False
    )
    solver: str = runtime_factor(
        "solver",
        "choice",
        SOLVERS[0],
        "which solver stands in a network's place: compiled C++ on one thread, or numpy",
        choices=SOLVERS,
        answers=True,
    )
