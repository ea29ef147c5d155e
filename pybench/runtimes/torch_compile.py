# SPDX-License-Identifier: Apache-2.0
"""torch.compile: the forward pass as Inductor compiles it, whole or not at all, for one shape at a time.

Compiled with `fullgraph=True` (no part falls back to Python) and static shapes. Caches of Inductor and Triton are a
folder of this session's own, empty at first. So what compiling costs is what it costs cold, and it is a number of its
own (`compile_s`), outside of every window. PyTorch's modes are a factor; those with CUDA graphs are refused on a CPU,
where they would silently be the default. Inductor does not fold constants of weights here (`freezing` is off, as it is
by default). So batch norm stays next to its convolution, where ONNX export folds it. Fused bf16 and fp16 operators keep
their intermediate values in FP32, as Inductor does by default; outputs agree with the eager ones to rounding.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn

from pybench import measure
from pybench.case import Case
from pybench.catalogue.causes import Cause
from pybench.catalogue.refusals import refuse_mode
from pybench.catalogue.runtimes import RUNTIMES
from pybench.errors import UnsupportedError
from pybench.runtimes.generation import GenerationTask
from pybench.runtimes.memory import memory_evidence
from pybench.runtimes.torch import Forward, Held, Loss, Specs, TorchSession, TrainingPass, prepare, set_up, shapes_of
from pybench.runtimes.torch_generation import FixedStepGeneration

NAME = "torch-compile"
CALLS_BEFORE_TIMING = 3  # one compiles, one records a CUDA graph where the mode has them, one replays it
CACHES = "empty at the start, of this run alone"
# Begins what Inductor advises whoever multiplies in FP32: to allow TF32, which `fp32` promises not to.
TF32_ADVICE = "TensorFloat32 tensor cores"

_MISSING = {  # words of Inductor and Triton -> what is not there
    "InvalidCxxCompiler": "no C++ compiler",
    "Failed to find C compiler": "no C compiler",
    "TritonMissing": "no triton",
    "working triton": "no triton",
}


class TorchCompileSession(TorchSession):
    """A compiled module. `compile_s`: of all shapes so far."""

    def __init__(self, module: nn.Module, spec: Specs, precision: str, kind: str, mode: str) -> None:
        super().__init__(module, spec, precision, kind)
        weakref.finalize(self, shutil.rmtree, empty_caches(), ignore_errors=True)
        self._compiled: Forward = torch.compile(module, mode=mode, fullgraph=True, dynamic=False)
        self.mode = mode
        self.replays = kind == "cuda" and mode in RUNTIMES[NAME].graph_modes
        self._shapes: set[tuple[tuple[int, ...], ...]] = set()
        self.labels |= {
            "compile_mode": mode,
            "compile_caches": CACHES,
            "compile_threads": torch._inductor.config.compile_threads,
            "first_calls_s": [],
        }

    def _forward(self, held: Held) -> Forward:
        if shapes_of(held) not in self._shapes:
            self._compile(held)
        return self._call

    def _call(self, *held: Tensor) -> Tensor:
        if self.replays:
            # The outputs of the last call may be overwritten.
            torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]
        return self._compiled(*held)

    def _compile(self, held: Held) -> None:
        self.first_calls(lambda: self._call(*held))
        self._shapes.add(shapes_of(held))

    def first_calls(self, call: Callable[[], object]) -> None:
        """Calls what is compiled until it is as in all that follow; adds to `compile_s`."""

        def call_and_wait() -> None:
            call()
            self._wait()

        with torch.inference_mode():
            calls_s = time_calls(call_and_wait)
        self.compile_s = (self.compile_s or 0.0) + sum(calls_s[:-1])  # the last one is as all that follow
        self.labels["first_calls_s"] += calls_s
        self.labels["compile_cache_hits"] = torch._dynamo.utils.counters["inductor"]["fxgraph_cache_hit"]


class TorchCompileGeneration(FixedStepGeneration):
    """One request by two compiled calls, of the prompt and of a step that serves every position."""

    def __init__(self, session: TorchCompileSession, task: GenerationTask) -> None:
        super().__init__(session, task)
        self._replays = session.replays
        if self._replays:  # a CUDA graph may write where an input is known to stay
            for tensor in (self._cache.keys, self._cache.values, self._current, self._position):
                torch._dynamo.mark_static_address(tensor)
        self._compiled = torch.compile(self._module.extend, mode=session.mode, fullgraph=True, dynamic=False)
        session.first_calls(self.prefill)
        session.first_calls(self._first_step)

    @torch.inference_mode()
    def _first_step(self) -> None:
        self._put(1, self._next(1))

    def _extend(self, ids: Tensor, past: int | Tensor) -> Tensor:
        if self._replays:
            torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]
        logits: Tensor = self._compiled(ids, self._cache, past)
        return logits


class CompiledTrainingPass(TrainingPass):
    """Forward pass and loss compiled as one graph, with their backward pass."""

    is_eager = False

    def __init__(self, loss: Loss, case: Case, kind: str) -> None:
        weakref.finalize(self, shutil.rmtree, empty_caches(), ignore_errors=True)
        super().__init__(torch.compile(loss, mode=case.compile_mode, fullgraph=True, dynamic=False))
        self.replays = kind == "cuda" and case.compile_mode in RUNTIMES[NAME].graph_modes
        self.labels |= {"compile_mode": case.compile_mode, "compile_caches": CACHES}

    def make_ready(self, gradients: Callable[[], object]) -> None:
        def call() -> None:
            self.begin()
            gradients()

        calls_s = time_calls(call)
        self.compile_s = sum(calls_s[:-1])
        self.labels["first_calls_s"] = calls_s

    def begin(self) -> None:
        if self.replays:
            torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]

    def kept(self, loss: Tensor) -> Tensor:
        return loss.detach().clone() if self.replays else loss.detach()  # a replay writes where the last one did


def open_training(loss: Loss, case: Case, kind: str, threads: int) -> TrainingPass:
    """Compiles in the first call, on `threads` CPUs."""
    make_ready(case.compile_mode, kind, threads)
    return CompiledTrainingPass(loss, case, kind)


def open_case(
    given: Callable[[], nn.Module], spec: Specs, case: Case, threads: int, *, deterministic: bool = False
) -> TorchCompileSession:
    """`given` builds the module; refused precisions and devices are told before that."""
    kind = set_up(case.precision, threads, case.device, runtime=RUNTIMES[NAME])
    return open_session(
        given(),
        spec,
        precision=case.precision,
        kind=kind,
        mode=case.compile_mode,
        threads=threads,
        deterministic=deterministic,
    )


def open_session(
    module: nn.Module,
    spec: Specs,
    *,
    precision: str,
    kind: str,
    mode: str,
    threads: int,
    deterministic: bool = False,
) -> TorchCompileSession:
    """As `torch.open_session`; compiles when a shape is known, on `threads` CPUs.

    Raises UnsupportedError for a mode that a CPU has not (`no_gpu`). Binding raises it for a module that is not one
    graph (`no_full_graph`) and without the compiler that Inductor needs (`no_compiler`).
    """
    make_ready(mode, kind, threads)
    prepared = prepare(module, spec, precision, kind, deterministic)
    return TorchCompileSession(prepared, spec, precision, kind, mode)


def make_ready(mode: str, kind: str, threads: int) -> None:
    """Brings the compiler to where nothing has been compiled yet. Raises UnsupportedError for a mode that a CPU has
    not (`no_gpu`)."""
    refuse_mode(RUNTIMES[NAME], mode, has_gpu=kind == "cuda")
    # Imports of the compiler are no part of what compiling costs: torch would do them in the first call.
    import torch._inductor.async_compile
    import torch._inductor.compile_fx
    import torch._inductor.config

    torch.compiler.reset()  # nothing that this process compiled before is found again
    torch._dynamo.utils.counters.clear()
    torch._inductor.config.compile_threads = threads


def time_calls(call: Callable[[], object]) -> list[float]:
    """Seconds of the first calls, the last of which is as all that follow. `call` waits until it has ended.

    Raises UnsupportedError for a function that is not one graph (`no_full_graph`) and without the compiler that
    Inductor needs (`no_compiler`).
    """
    calls_s: list[float] = []
    with _compile_errors(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", TF32_ADVICE)
        for _ in range(CALLS_BEFORE_TIMING):
            begin_ns = measure.monotonic_ns()
            call()
            calls_s.append(measure.seconds_since(begin_ns))
    torch._inductor.async_compile.shutdown_compile_workers()  # idle or not, nothing else runs beside a window
    return calls_s


def empty_caches() -> Path:
    """A folder in which Inductor and Triton keep what they compile from here on."""
    folder = Path(tempfile.mkdtemp(prefix="pybench-compile-"))
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "inductor")
    os.environ["TRITON_CACHE_DIR"] = str(folder / "triton")
    return folder


@contextmanager
def _compile_errors() -> Iterator[None]:
    from torch._dynamo.exc import Unsupported, UserError

    try:
        yield
    except (Unsupported, UserError) as error:
        raise UnsupportedError(
            f"torch.compile cannot take the model as one graph ({_first_line(error)})",
            code=Cause.NO_FULL_GRAPH,
            hint="use runtime: torch",
        ) from error
    except RuntimeError as error:
        # Inductor wraps what went wrong in an error of its own, and keeps the name of the first in its text.
        missing = next((name for name in _MISSING if name in str(error)), None)
        if missing is None or memory_evidence(error) is not None:
            raise
        hint = "install g++ (or name a compiler in CXX), and for a GPU triton"
        raise UnsupportedError(
            f"torch.compile has {_MISSING[missing]} here", code=Cause.NO_PACKAGE, names=("compiler",), hint=hint
        ) from error


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]
