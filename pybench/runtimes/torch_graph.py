# SPDX-License-Identifier: Apache-2.0
"""torch as a CUDA graph: the eager forward pass captured once for a shape, then replayed without Python.

As PyTorch's notes on CUDA graphs ask, there are a few calls on a side stream first. cuDNN chooses its algorithms there,
and whatever is set up late must not be captured. Input and output are static. Capture is in thread-local mode, since
the samplers are threads of this process. Iterations are replayed from C++ (`measure.GraphReplayer`), by the graph's raw
handle. One graph a shape. Copies to and from the device are not in the graph, as in trtexec; `transfers` is refused.
Generation has two graphs, of the prefill and of one step with the choice of its token; Python launches each step. Does
not compile or fuse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from pybench import measure
from pybench.case import Case
from pybench.case.factors.running import COLD
from pybench.catalogue.causes import Cause
from pybench.catalogue.refusals import refuse_transfers
from pybench.catalogue.runtimes import RUNTIMES
from pybench.errors import UnsupportedError
from pybench.runtimes.generation import GenerationTask
from pybench.runtimes.session import L2_SIZES, Arrays, Iterate, Launch, flushing_label
from pybench.runtimes.torch import Held, Specs, TorchSession, prepare, set_up, shapes_of
from pybench.runtimes.torch_generation import FixedStepGeneration

NAME = "torch-graph"
CALLS_BEFORE_CAPTURE = 3  # PyTorch's notes ask for a few; its own make_graphed_callables takes three


@dataclass(frozen=True, slots=True)
class CapturedGraph:
    """A graph and what it reads and writes; all of it has to live as long as the graph is replayed."""

    graph: torch.cuda.CUDAGraph
    stream: torch.cuda.Stream
    inputs: Held
    output: Tensor


class TorchGraphSession(TorchSession):
    """An opened module that is only ever run by replaying graphs of it."""

    def __init__(self, module: nn.Module, spec: Specs, precision: str, kind: str, *, cold: bool = False) -> None:
        """`cold`: replays begin with an empty L2 cache."""
        super().__init__(module, spec, precision, kind)
        self._cold = cold
        self.labels["iteration"] = "one replay of the captured forward pass"
        self._captured: dict[tuple[tuple[int, ...], ...], CapturedGraph] = {}

    def run(self, inputs: Arrays) -> list[npt.NDArray[Any]]:
        captured = self._replay(inputs)
        with torch.inference_mode(), torch.cuda.stream(captured.stream):
            return [captured.output.float().cpu().numpy()]

    def bind(self, inputs: Arrays, *, transfers: bool) -> Iterate:
        """A callable that replays once and waits, for whoever cannot use `bind_replay`."""
        captured = self._capture_for(inputs, transfers)

        def iterate() -> None:
            with torch.cuda.stream(captured.stream):  # the graph is replayed on the current stream
                captured.graph.replay()
            captured.stream.synchronize()

        return iterate

    def bind_replay(self, inputs: Arrays, *, transfers: bool) -> measure.Replayer:
        captured = self._capture_for(inputs, transfers)
        handle, stream = captured.graph.raw_cuda_graph_exec(), captured.stream.cuda_stream
        if not self._cold:
            return measure.GraphReplayer(handle, stream, keep=(captured, self.module))
        l2_bytes = torch.cuda.get_device_properties().L2_cache_size
        memory = torch.empty(L2_SIZES * l2_bytes, dtype=torch.uint8, device="cuda")
        flush, _ = capture(memory.zero_, captured.stream)
        self.labels["cache"] = flushing_label(l2_bytes)
        kept = (captured, flush, memory, self.module)
        return measure.GraphReplayer(handle, stream, before=flush.raw_cuda_graph_exec(), keep=kept)

    def bind_feed(self) -> Launch:
        return lambda inputs: self._replay(inputs).stream.synchronize

    def _again(self) -> Callable[[], None]:
        captured = None if self._held is None else self._captured.get(shapes_of(self._held))

        def call() -> None:
            if captured is not None:
                with torch.cuda.stream(captured.stream):
                    captured.graph.replay()
                captured.stream.synchronize()

        return call

    def _replay(self, inputs: Arrays) -> CapturedGraph:
        """Copies the input to where the graph reads it, and replays; does not wait."""
        hosts = self._hosts(inputs)
        captured = self._captured.get(shapes_of(hosts)) or self._capture(hosts)
        with torch.inference_mode(), torch.cuda.stream(captured.stream):
            for read, host in zip(captured.inputs, hosts, strict=True):
                read.copy_(self._to_device(host))
            captured.graph.replay()
        self._held = captured.inputs
        return captured

    def _capture_for(self, inputs: Arrays, transfers: bool) -> CapturedGraph:
        if transfers:
            refuse_transfers(RUNTIMES[NAME], has_gpu=True)
        return self._capture(self._hosts(inputs))

    def _capture(self, hosts: list[Tensor]) -> CapturedGraph:
        begin_ns = measure.monotonic_ns()
        held = self._moved(hosts)
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        graph, output = capture(lambda: self.module(*held), stream)
        captured = CapturedGraph(graph, stream, held, output)
        self._captured[shapes_of(hosts)] = captured
        self.compile_s = (self.compile_s or 0.0) + measure.seconds_since(begin_ns)
        return captured


def capture(
    work: Callable[[], Tensor],
    stream: torch.cuda.Stream,
    random: torch.Generator | None = None,
    before: Callable[[], None] | None = None,
) -> tuple[torch.cuda.CUDAGraph, Tensor]:
    """The graph of a call, and where its replays leave the result.

    random: what the call draws from
    before: puts back what the call changes, ahead of each call that is not captured
    """
    graph = torch.cuda.CUDAGraph()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.inference_mode():
        with torch.cuda.stream(stream):
            call_before_capture(work, before)
        stream.synchronize()
        if random is not None:
            graph.register_generator_state(random)
        with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
            output = work()
    stream.synchronize()
    return graph, output


def call_before_capture(work: Callable[[], Tensor], before: Callable[[], None] | None = None) -> None:
    """The calls that PyTorch's notes ask for, each from the same state."""
    for _ in range(CALLS_BEFORE_CAPTURE):
        if before is not None:
            before()
        work()


class TorchGraphGeneration(FixedStepGeneration):
    """One request by two graphs. A step's graph moves its token and its position on, so that it follows itself."""

    def __init__(self, session: TorchSession, task: GenerationTask) -> None:
        super().__init__(session, task)
        begin_ns = measure.monotonic_ns()
        with torch.inference_mode():
            self._held = self._prompt.to(self._kind)
            self._record()
        session.compile_s = (session.compile_s or 0.0) + measure.seconds_since(begin_ns)

    def _record(self) -> None:
        self._stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        graph, self._first_logits = capture(self._read, self._stream, self._random)
        self._replay_prefill = graph.replay
        begin = partial(self._place, 1)  # a step moves on, and the cache may have room for one alone
        graph, self._step_logits = capture(self._advance, self._stream, self._random, begin)
        self._replay_step = graph.replay

    @torch.inference_mode()
    def prefill(self) -> None:
        with torch.cuda.stream(self._stream):
            self._random.manual_seed(self._task.seed)
            self._first()
            self._land(slice(0, 1))

    @torch.inference_mode()
    def decode(self) -> None:
        with torch.cuda.stream(self._stream):
            self._place(1)
            for _ in range(1, self._task.new_tokens):
                self._replay_step()
            self._land(slice(1, None))

    def logits(self) -> Iterator[npt.NDArray[np.float32]]:
        with torch.cuda.stream(self._stream):
            self._random.manual_seed(self._task.seed)
        for index in range(self._task.new_tokens):
            with torch.inference_mode(), torch.cuda.stream(self._stream):
                logits = self._next(index) if index else self._first()
                found = logits.float().cpu().numpy()
                self._land(slice(index, index + 1))
            yield found

    def _first(self) -> Tensor:
        self._held.copy_(self._prompt, non_blocking=True)
        self._replay_prefill()
        return self._first_logits

    def _next(self, index: int) -> Tensor:
        self._place(index)
        self._replay_step()
        return self._step_logits

    def _read(self) -> Tensor:
        """What the first graph records: the prompt's pass, and the choice of the first token."""
        logits = self._extend(self._held, 0)
        self._put(0, logits)
        return logits

    def _advance(self) -> Tensor:
        """What the second graph records: a step, the choice of its token, and the move to the next position."""
        logits = self._extend(self._current, self._position)
        chosen = self._choose(logits)
        self._ids.index_copy_(0, self._position - (self._past - 1), chosen[None])
        self._current.copy_(chosen[:, None])
        self._position.add_(1)
        return logits


def open_case(
    given: Callable[[], nn.Module], spec: Specs, case: Case, threads: int, *, deterministic: bool = False
) -> TorchGraphSession:
    """`given` builds the module; refused precisions and devices are told before that."""
    kind = set_up(case.precision, threads, case.device, runtime=RUNTIMES[NAME])
    cold = case.cache == COLD
    return open_session(given(), spec, precision=case.precision, kind=kind, deterministic=deterministic, cold=cold)


def open_session(
    module: nn.Module,
    spec: Specs,
    *,
    precision: str,
    kind: str,
    deterministic: bool = False,
    cold: bool = False,
) -> TorchGraphSession:
    """As `torch.open_session`, for a GPU. Graphs are captured when shapes are known.

    Raises UnsupportedError for a torch that does not give its graphs away (`torch_too_old`).
    """
    if not hasattr(torch.cuda.CUDAGraph, "raw_cuda_graph_exec"):
        raise UnsupportedError(
            f"torch {torch.__version__} does not give its graphs' handles away",
            code=Cause.TORCH_TOO_OLD,
            hint="install torch 2.10 or later",
        )
    module = prepare(module, spec, precision, kind, deterministic)
    return TorchGraphSession(module, spec, precision, kind, cold=cold)
