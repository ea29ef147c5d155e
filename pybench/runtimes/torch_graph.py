# SPDX-License-Identifier: Apache-2.0
"""torch as a CUDA graph: the eager forward pass captured once for a shape, then replayed without Python.

As PyTorch's notes on CUDA graphs ask: a few calls on a side stream first (cuDNN chooses its algorithms there, and
whatever is set up late must not be captured), static input and output, capture in thread-local mode, since the
samplers are threads of this process. Iterations are replayed from C++ (`measure.GraphReplayer`), by the graph's raw
handle. One graph a shape. Copies to and from the device are not in the graph, as in trtexec; `transfers` is refused.
Does not compile or fuse.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor, nn

from pybench import measure
from pybench.case import Case
from pybench.catalogue.refusals import refuse_transfers
from pybench.catalogue.runtimes import RUNTIMES
from pybench.errors import UnsupportedError
from pybench.runtimes.session import Arrays, Iterate, Launch, TensorSpec
from pybench.runtimes.torch import TorchSession, host_tensor, prepare, set_up

NAME = "torch-graph"
NS_PER_S = 1e9
CALLS_BEFORE_CAPTURE = 3  # PyTorch's notes ask for a few; its own make_graphed_callables takes three


@dataclass(frozen=True, slots=True)
class CapturedGraph:
    """A graph and what it reads and writes; all of it has to live as long as the graph is replayed."""

    graph: torch.cuda.CUDAGraph
    stream: torch.cuda.Stream
    input: Tensor
    output: Tensor


class TorchGraphSession(TorchSession):
    """An opened module that is only ever run by replaying graphs of it."""

    def __init__(self, module: nn.Module, spec: TensorSpec, precision: str, kind: str) -> None:
        super().__init__(module, spec, precision, kind)
        self.labels["iteration"] = "one replay of the captured forward pass"
        self._captured: dict[tuple[int, ...], CapturedGraph] = {}

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
        return measure.GraphReplayer(
            captured.graph.raw_cuda_graph_exec(), captured.stream.cuda_stream, keep=(captured, self.module)
        )

    def bind_feed(self) -> Launch:
        return lambda inputs: self._replay(inputs).stream.synchronize

    def _replay(self, inputs: Arrays) -> CapturedGraph:
        """Copies the input to where the graph reads it, and replays; does not wait."""
        host = host_tensor(self._only(inputs))
        captured = self._captured.get(tuple(host.shape)) or self._capture(host)
        with torch.inference_mode(), torch.cuda.stream(captured.stream):
            captured.input.copy_(self._to_device(host))
            captured.graph.replay()
        return captured

    def _capture_for(self, inputs: Arrays, transfers: bool) -> CapturedGraph:
        if transfers:
            refuse_transfers(RUNTIMES[NAME], has_gpu=True)
        return self._capture(host_tensor(self._only(inputs)))

    def _capture(self, host: Tensor) -> CapturedGraph:
        begin_ns = measure.monotonic_ns()
        held = self._to_device(host)
        stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.inference_mode():
            with torch.cuda.stream(stream):
                for _ in range(CALLS_BEFORE_CAPTURE):
                    self.module(held)
            stream.synchronize()
            with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
                output: Tensor = self.module(held)
        stream.synchronize()
        captured = CapturedGraph(graph, stream, held, output)
        self._captured[tuple(host.shape)] = captured
        self.compile_s = (self.compile_s or 0.0) + (measure.monotonic_ns() - begin_ns) / NS_PER_S
        return captured


def open_case(
    given: Callable[[], nn.Module], spec: TensorSpec, case: Case, threads: int, *, deterministic: bool = False
) -> TorchGraphSession:
    """`given` builds the module; refused precisions and devices are told before that."""
    kind = set_up(case.precision, threads, case.device, runtime=RUNTIMES[NAME])
    return open_session(given(), spec, precision=case.precision, kind=kind, deterministic=deterministic)


def open_session(
    module: nn.Module, spec: TensorSpec, *, precision: str, kind: str, deterministic: bool = False
) -> TorchGraphSession:
    """As `torch.open_session`, for a GPU. Graphs are captured when shapes are known.

    Raises UnsupportedError for a torch that does not give its graphs away (`torch_too_old`).
    """
    if not hasattr(torch.cuda.CUDAGraph, "raw_cuda_graph_exec"):
        raise UnsupportedError(
            f"torch {torch.__version__} does not give its graphs' handles away", code="torch_too_old",
            hint="install torch 2.10 or later",
        )  # fmt: skip
    return TorchGraphSession(prepare(module, spec, precision, kind, deterministic), spec, precision, kind)
