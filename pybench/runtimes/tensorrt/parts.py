# SPDX-License-Identifier: Apache-2.0
"""Engines of a model's parts: one for what its heads share, then one for each head, on a stream of its own.

Heads wait on the GPU for the event that ends the shared part, and read its output where it lies. The event at the end
of each head tells when it ended, from the event at the begin of the frame. Where it can be, all of a frame is one CUDA
graph that forks and joins at these events: one for each set of heads that run in a frame. A frame ends before the next
one begins, because both write the same memory; so the host times it, also where it is a graph.

Each head has an engine in memory, also where several are read from one file: weights are what its kind costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pybench import measure
from pybench.case import Case
from pybench.catalogue.causes import Cause
from pybench.catalogue.heads import ModelParts
from pybench.errors import DeviceMemoryError, InputError, PybenchError, UnsupportedError
from pybench.measure.timing.head_log import NS_PER_MS, HeadLog
from pybench.runtimes import cuda
from pybench.runtimes.session import Arrays, Iterate, Launch, Wait
from pybench.runtimes.tensorrt.session import NAME, TensorRtSession, check_case, check_device

_LOOKED_AHEAD = 10_000  # frames, in which every set of heads that rates make is met


class Branch:
    """One head: its engine, what tells its end, and what the next frame waits for."""

    def __init__(self, session: TensorRtSession) -> None:
        self.session = session
        self.ended = cuda.StreamEvent(timed=True)
        self.joined = cuda.StreamEvent()


class PartsSession:
    """Opened engines of a model's parts. `trunk`: what the heads share; `branches`: the heads, in their order; `log`:
    when each of them ended, and which of them run in a frame."""

    def __init__(
        self, parts: ModelParts, trunk: TensorRtSession, heads: Sequence[TensorRtSession], launch: str
    ) -> None:
        self._parts = parts
        self.trunk = trunk
        self.branches = [Branch(session) for session in heads]
        self.log = HeadLog(len(heads))
        self._launch = launch
        self._began, self._forked = cuda.StreamEvent(timed=True), cuda.StreamEvent()
        self._graphs: dict[tuple[int, ...], cuda.CudaGraph] = {}
        self.device_uuid = trunk.device_uuid
        self.inputs = trunk.inputs
        self.output_names: tuple[str, ...] = ()
        self.model_bytes = sum(session.model_bytes for session in (trunk, *heads))
        self.metadata: dict[str, str] = {}
        self.compile_s: float | None = None
        self.labels: dict[str, Any] = {
            **trunk.labels,
            "scratch_bytes": _sum(session.labels["scratch_bytes"] for session in (trunk, *heads)),
            "streams": len(heads),
            "iteration": "one execution of the shared engine, and behind it one of each head's, on streams",
        }

    def session_of(self, part: str) -> TensorRtSession:
        """An engine of a part; of several alike the first."""
        return next(session for _, name, session in self.engines() if name == part)

    def engines(self) -> list[tuple[str, str, TensorRtSession]]:
        """What a frame runs: a name of its own, the part, and the engine."""
        heads = enumerate(zip(self._parts.branches, self.branches, strict=True), 1)
        behind = [(f"head{number}-{part}", part, branch.session) for number, (part, branch) in heads]
        return [(self._parts.trunk, self._parts.trunk, self.trunk), *behind]

    @property
    def device(self) -> str:
        return self.trunk.device

    def run(self, inputs: Arrays) -> list[npt.NDArray[Any]]:
        """The outputs of all heads, flattened and joined, as one graph of all heads has them."""
        self.trunk.write(inputs)
        self._enqueue(range(len(self.branches)))
        self.trunk.stream.synchronize()
        outputs = [branch.session.read()[0] for branch in self.branches]
        return [np.concatenate([output.reshape(len(output), -1) for output in outputs], axis=1)]

    def bind(self, inputs: Arrays, *, transfers: bool) -> Iterate:
        if transfers:
            raise UnsupportedError(
                "each head is timed on the device, without the copies to and from it",
                code=Cause.NO_TRANSFERS,
                names=(NAME,),
                hint="set transfers: false",
            )
        self.trunk.write(inputs)
        self._enqueue(range(len(self.branches)))  # capturing asks for a plain execution first
        self.trunk.stream.synchronize()
        if self._launch == "graph":
            self._capture_all()
        return self._frame

    def bind_replay(self, inputs: Arrays, *, transfers: bool) -> measure.Replayer:
        return measure.CallReplayer(self.bind(inputs, transfers=transfers))

    def bind_feed(self) -> Launch:
        def launch(inputs: Arrays) -> Wait:
            self.trunk.write(inputs)
            self._enqueue(range(len(self.branches)))
            return self.trunk.stream.synchronize

        return launch

    def _frame(self) -> None:
        """One frame: launched, waited for and noted."""
        due = self.log.begin()
        begin_ns = measure.monotonic_ns()
        graph = self._graphs.get(due)
        if graph is None:
            self._enqueue(due)
        else:
            graph.launch()
        self.trunk.stream.synchronize()
        for number in due:
            elapsed_ms = self._began.elapsed_time(self.branches[number].ended)
            self.log.end(number, begin_ns + round(elapsed_ms * NS_PER_MS))

    def _enqueue(self, due: Sequence[int], *, captured: bool = False) -> bool:
        """Puts a frame on the streams: the fork behind the shared engine, and the join that the next frame is behind.
        `captured`: into a graph, each of whose replays then tells the times."""
        mark = cuda.StreamEvent.record_in_replays if captured else cuda.StreamEvent.record
        main = self.trunk.stream
        mark(self._began, main)
        self.trunk.enqueue()
        self._forked.record(main)
        branches = [self.branches[number] for number in due]
        for branch in branches:
            branch.session.stream.wait(self._forked)
            branch.session.enqueue()
            mark(branch.ended, branch.session.stream)
            branch.joined.record(branch.session.stream)
        for branch in branches:
            main.wait(branch.joined)
        return True

    def _capture_all(self) -> None:
        """A graph for each set of heads that runs in some frame; where one cannot be captured, none is used."""
        try:
            for due in {self.log.due_in(frame) for frame in range(_LOOKED_AHEAD)} - self._graphs.keys():
                work = partial(self._enqueue, due, captured=True)
                self._graphs[due] = cuda.capture(work, self.trunk.stream)
        except DeviceMemoryError:
            raise  # another kind of latency is no answer to that
        except PybenchError as error:
            self._graphs.clear()
            self.labels["launch"] = f"enqueue, as no graph could be captured ({error.message})"
        else:
            self.labels["launch"] = "graph"
            self.labels["iteration"] = "one replay of the captured engines: the shared one, then each head's"


def open_parts(given: Mapping[str, Path], parts: ModelParts, case: Case) -> PartsSession:
    """`given`: the engine of each part, which were built for this GPU and version."""
    check_case(case)
    check_device(case.device)
    trunk = TensorRtSession(given[parts.trunk], case.launch)
    heads = [_behind(trunk, given[name], case.launch) for name in parts.branches]
    return PartsSession(parts, trunk, heads, case.launch)


def _behind(trunk: TensorRtSession, path: Path, launch: str) -> TensorRtSession:
    """The engine of a head, whose input is the memory of the shared engine's output."""
    (features,) = trunk.outputs
    head = TensorRtSession(path, launch, shared={features.name: trunk.buffers[features.name]})
    if head.inputs != trunk.outputs:
        raise InputError(f"{path} takes {head.inputs}, and not what the shared engine gives: {trunk.outputs}")
    return head


def _sum(sizes: Iterable[int | None]) -> int | None:
    known = [size for size in sizes if size is not None]
    return sum(known) if known else None
