# SPDX-License-Identifier: Apache-2.0
"""Torch-TensorRT: the module exported, and compiled whole into TensorRT engines inside torch.

One numeric contract a precision, as everywhere: the module has the type of the case before it is compiled, and engines
are strongly typed. For this there is `use_explicit_typing`: by default from 2.12, and the only way from 2.14, which has
lost the switch. TF32 is off but for `tf32`. Whole or not at all, for one shape at a time, nothing cached from build to
build. With `launch: graph` Torch-TensorRT captures CUDA graphs itself and replays them inside its call, so the host
times an iteration. Each release is bound to one torch and one TensorRT (2.11: TensorRT 10.15, 2.14: 11.1).

Run with 2.11 on an H200, over TensorRT 10.6 instead of the one that it pins: ResNet-50's outputs agree in FP32 and
FP16. `torch.export` resets torch's own TF32 switch of convolutions, which says nothing of an engine anyway: the kernels
that it launches are recorded instead. Later releases: written to their documentation; a test holds the arguments to
those signatures.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from pybench import measure
from pybench.case import Case
from pybench.catalogue.causes import Cause
from pybench.catalogue.precisions import allows_tf32
from pybench.catalogue.runtimes import RUNTIMES
from pybench.errors import UnsupportedError
from pybench.kernels.launches import KernelLaunches
from pybench.runtimes.launched import Kernels, launched_by
from pybench.runtimes.torch import Forward, Held, Specs, TorchSession, prepare, set_up, shapes_of

NAME = "torch-tensorrt"
TYPED_ALWAYS = (2, 14)  # from here on there is no other typing, and no argument for it
CALLS_BEFORE_TIMING = 3  # the first initialises, the second captures, the third replays


class TorchTensorRtSession(TorchSession):
    """A module compiled for each shape that it is given. `compile_s`: of all shapes so far."""

    def __init__(self, module: nn.Module, spec: Specs, precision: str, kind: str, launch: str, library: Any) -> None:
        super().__init__(module, spec, precision, kind)
        self._library = library
        self._compiled: dict[tuple[tuple[int, ...], ...], Forward] = {}
        library.runtime.set_cudagraphs_mode(launch == "graph")
        self.labels |= {
            "torch_tensorrt_version": library.__version__,
            "launch": "graph, replayed inside the call" if launch == "graph" else "enqueue",
        }

    @property
    def _channels_last(self) -> bool:
        return False  # the engine chooses its own layouts, and takes its input as NCHW

    def launched(self) -> KernelLaunches:
        """The kernels of a GPU that what ran last launches, once more; nothing is measured after it."""
        return launched_by(self._again())

    def kernels(self) -> Kernels:
        return self.launched().kernels

    def _forward(self, held: Held) -> Forward:
        shape = shapes_of(held)
        if shape not in self._compiled:
            self._compiled[shape] = self._compile(held)
        return self._compiled[shape]

    def _compile(self, held: Held) -> Forward:
        begin_ns = measure.monotonic_ns()
        with torch.no_grad(), tempfile.TemporaryDirectory(prefix="pybench-compile-") as folder:
            arguments = arguments_of(self._library.__version__, self.precision, Path(folder))
            exported = torch.export.export(self.module, held)
            compiled: Forward = self._library.dynamo.compile(exported, arg_inputs=list(held), **arguments)
        with torch.inference_mode():
            for _ in range(CALLS_BEFORE_TIMING):
                compiled(*held)
                self._wait()
        self.compile_s = (self.compile_s or 0.0) + measure.seconds_since(begin_ns)
        return compiled


def arguments_of(version: str, precision: str, folder: Path) -> dict[str, Any]:
    """What `torch_tensorrt.dynamo.compile` is given, but the program and its input. `folder`: for the timing cache,
    which would else be found again in the machine's temporary folder. Level and streams: as the runtime tensorrt."""
    numbers = tuple(int(part) for part in version.split(".")[:2])
    typing = {} if numbers >= TYPED_ALWAYS else {"use_explicit_typing": True}
    return {
        **typing,
        "disable_tf32": not allows_tf32(precision),
        "require_full_compilation": True,
        "min_block_size": 1,
        "optimization_level": 3,
        "max_aux_streams": 0,
        "cache_built_engines": False,
        "reuse_cached_engines": False,
        "timing_cache_path": str(folder / "timing_cache.bin"),
    }


def open_case(
    given: Callable[[], nn.Module], spec: Specs, case: Case, threads: int, *, deterministic: bool = False
) -> TorchTensorRtSession:
    """`given` builds the module; refused precisions and devices are told before that."""
    kind = set_up(case.precision, threads, case.device, runtime=RUNTIMES[NAME])
    return open_session(
        given(), spec, precision=case.precision, kind=kind, launch=case.launch, deterministic=deterministic
    )


def open_session(
    module: nn.Module, spec: Specs, *, precision: str, kind: str, launch: str, deterministic: bool = False
) -> TorchTensorRtSession:
    """As `torch.open_session`, for a GPU. Engines are built when shapes are known.

    Raises UnsupportedError without the package (`no_torch_tensorrt`).
    """
    try:
        import torch_tensorrt as library
    except Exception as error:  # it takes names from TensorRT's libraries: with another version's, anything
        raise UnsupportedError(
            f"torch-tensorrt cannot be imported here ({type(error).__name__}: {error})",
            code=Cause.NO_PACKAGE,
            names=("torch_tensorrt",),
            hint=f"install the torch-tensorrt of torch {torch.__version__}, with the TensorRT that it pins",
        ) from error
    prepared = prepare(module, spec, precision, kind, deterministic).to(memory_format=torch.contiguous_format)
    return TorchTensorRtSession(prepared, spec, precision, kind, launch, library)
