# SPDX-License-Identifier: Apache-2.0
"""Repeating one unit of work, a call or a CUDA graph, at a pace, and timing every repetition from C++.

    work = measure.CallReplayer(iterate)                                    # a Python callable, timed on the host
    work = measure.GraphReplayer(graph.raw_cuda_graph_exec(), stream.cuda_stream, keep=graph)       # events on the GPU
    times = work.replay(1000, minimum_s=0.0)                                # closed loop, at the replayer's own depth
    times = work.replay(1000, arrivals=measure.poisson(200.0, seed=7))      # open loop
    latency = measure.summarise_latency(times.latency_ns)

In a closed loop the next repetition begins when there is room, and a graph's latency is trtexec's: its end event minus
begin event, at depth 2. In an open loop repetitions arrive on a schedule that does not care how the earlier ones fare.
Latency then counts from the scheduled arrival until the host sees the end, so that a stall costs every arrival that it
delays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from pybench import _native
from pybench.catalogue.latency import LEFT_OUT
from pybench.errors import UsageError
from pybench.measure.timing.clock import NANOSECONDS_PER_SECOND, gaps_ns
from pybench.measure.timing.cuda import driver_errors, open_driver

ArrivalKind = Literal["closed", "fixed", "poisson"]

GRAPH_DEPTH = 2  # trtexec's: one replay runs, the next is queued, so that the GPU never waits for the host
DEEPEST = 64  # more in flight only lengthens the queue
MOST_ARRIVALS = 50_000_000  # 1.2 GB of times

_INTEGER = np.int64
_NOW = np.empty(0, _INTEGER)


@dataclass(frozen=True, slots=True)
class Arrivals:
    """When repetitions are due.

    kind: by which rule; `closed`: as soon as an earlier one has ended
    rate_per_s: their mean rate; None in a closed loop
    seed: of the Poisson process
    """

    kind: ArrivalKind = "closed"
    rate_per_s: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.kind == "closed":
            if self.rate_per_s is not None:
                raise UsageError("a closed loop has no arrival rate", hint="ask for fixed or poisson arrivals")
        elif self.rate_per_s is None or not 0 < self.rate_per_s < float("inf"):
            raise UsageError(f"{self.kind} arrivals at {self.rate_per_s} a second", hint="give a rate above 0")

    @property
    def title(self) -> str:
        """`closed loop`, `poisson, 200/s`."""
        return "closed loop" if self.rate_per_s is None else f"{self.kind}, {self.rate_per_s:g}/s"

    def schedule_ns(self, iterations: int, minimum_s: float) -> NDArray[np.int64]:
        """int64 [n], ns after the start, ascending: at least `iterations` arrivals, the last not before `minimum_s`.

        Empty in a closed loop. Fixed: arrival k at k / rate. Poisson: sums of independent exponential gaps of mean
        1 / rate, from numpy's default generator, so that equal seeds give equal schedules.
        """
        if self.rate_per_s is None:
            return _NOW
        expected = max(iterations, minimum_s * self.rate_per_s)
        if expected > MOST_ARRIVALS:
            raise UsageError(
                f"{expected:.3g} arrivals at {self.rate_per_s:g} a second are too many to record",
                hint="lower the rate, the iterations or the window",
            )
        if self.kind == "fixed":
            count = max(iterations, int(np.ceil(minimum_s * self.rate_per_s)) + 1)
            due_s = np.arange(count) / self.rate_per_s
        else:
            due_s = self._poisson_s(iterations, minimum_s, self.rate_per_s)
        return np.round(due_s * NANOSECONDS_PER_SECOND).astype(_INTEGER)

    def _poisson_s(self, iterations: int, minimum_s: float, rate_per_s: float) -> NDArray[np.float64]:
        generator = np.random.default_rng(self.seed)
        due_s = np.empty(0)
        while len(due_s) < iterations or len(due_s) == 0 or due_s[-1] < minimum_s:
            last_s = due_s[-1] if len(due_s) else 0.0
            block = max(iterations - len(due_s), int((minimum_s - last_s) * rate_per_s), 0) + 64
            due_s = np.concatenate((due_s, last_s + np.cumsum(generator.exponential(1 / rate_per_s, block))))
        needed = max(iterations, int(np.searchsorted(due_s, minimum_s)) + 1)
        return due_s[:needed]


CLOSED = Arrivals()


def fixed(rate_per_s: float) -> Arrivals:
    """An arrival every 1 / rate."""
    return Arrivals("fixed", rate_per_s)


def poisson(rate_per_s: float, seed: int) -> Arrivals:
    """Arrivals that know nothing of each other, `rate_per_s` of them a second on average."""
    return Arrivals("poisson", rate_per_s, seed)


@dataclass(frozen=True, slots=True, eq=False)
class GpuTimes:
    """What the GPU's events say of n replays.

    `begin_ns`, `end_ns`: int64 [n], ns on the GPU's own time line, 0 at the first begin, in order.
    `enqueue_end_ns`: int64 [n], raw clock: when the call that launched the replay returned.
    `origin_ns`: raw time of the GPU's 0, within +- `origin_uncertainty_ns` at the start of the series.
    Error: 0.5 us, the step of CUDA's events, on each time; it does not add up along the series
    (native/graph_timer.hpp).
    """

    begin_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    enqueue_end_ns: NDArray[np.int64]
    origin_ns: int
    origin_uncertainty_ns: int


@dataclass(frozen=True, slots=True, eq=False)
class Times:
    """n repetitions, in the order in which they began.

    begin_ns: int64 [n], raw clock, when the host began to start it
    end_ns: int64 [n], raw clock, when the host saw it ended; end >= begin
    due_ns: int64 [n], raw clock, the scheduled arrival, begin >= due; None in a closed loop
    gpu: what the GPU's events say; None where the host alone times
    depth: most repetitions in flight at once
    apart: whether something that is not timed stands before each repetition
    probes_ns: int64 [m, 2], raw clock, begin and end of each probe of the core between repetitions
        (`pybench.measure.timing.core_speed`); empty where none was in time, None where nothing probes
    """

    begin_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    due_ns: NDArray[np.int64] | None = None
    gpu: GpuTimes | None = None
    depth: int = 1
    apart: bool = False
    probes_ns: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.begin_ns)

    @property
    def host_ns(self) -> NDArray[np.int64]:
        """int64 [n, 2]: begin and end as the host saw them."""
        return np.stack((self.begin_ns, self.end_ns), axis=1)

    @property
    def latency_ns(self) -> NDArray[np.int64]:
        """int64 [n, 2]: the two ends of each latency. Open loop: arrival and end; else the GPU's, else the host's."""
        if self.due_ns is not None:
            return np.stack((self.due_ns, self.end_ns), axis=1)
        return self.host_ns if self.gpu is None else np.stack((self.gpu.begin_ns, self.gpu.end_ns), axis=1)

    @property
    def enqueue_ns(self) -> NDArray[np.int64] | None:
        """int64 [n, 2]: the two ends of the host's launching call; None where there is none."""
        return None if self.gpu is None else np.stack((self.begin_ns, self.gpu.enqueue_end_ns), axis=1)

    @property
    def span_s(self) -> float:
        """From the first begin to the last end, on the clock that latency is on, or the sum of latencies where
        repetitions stand apart; the denominator of rates.
        """
        times = self.host_ns if self.due_ns is not None else self.latency_ns
        if self.apart:
            return float((times[:, 1] - times[:, 0]).sum()) / NANOSECONDS_PER_SECOND
        return float(times[-1, 1] - times[0, 0]) / NANOSECONDS_PER_SECOND

    @property
    def busy_share(self) -> float:
        """Share of the series in which something ran: the GPU by its events, else the host."""
        times = self.host_ns if self.gpu is None else np.stack((self.gpu.begin_ns, self.gpu.end_ns), axis=1)
        first_ns = self.begin_ns[0] if self.due_ns is None else self.due_ns[0]
        return float((times[:, 1] - times[:, 0]).sum()) / max(int(self.end_ns[-1] - first_ns), 1)

    @property
    def definition(self) -> str:
        """What `latency_ns` is, in words."""
        if self.due_ns is not None:
            return "from the scheduled arrival until the host saw the end"
        if self.gpu is not None:
            return f"GPU events around each graph launch, {self.depth} in flight{LEFT_OUT if self.apart else ''}"
        return "from the begin of the call to its return"

    def columns(self, window_begin_ns: int) -> dict[str, NDArray[np.int64]]:
        """Every column that there is, int64 [n] ns, for storing: lengths and gaps, which have few digits.

        window_begin_ns: raw clock, when the window began that the repetitions are in; the first gap counts from it, so
            that sums give every time again (docs/formats/rundir.md)
        """
        columns = {
            "gap_ns": gaps_ns(self.begin_ns, self.end_ns, window_begin_ns),
            "host_ns": self.end_ns - self.begin_ns,
        }
        if self.due_ns is not None:
            columns["waiting_ns"] = self.begin_ns - self.due_ns
        if self.gpu is not None:
            columns["enqueue_ns"] = self.gpu.enqueue_end_ns - self.begin_ns
            columns["gpu_gap_ns"] = gaps_ns(self.gpu.begin_ns, self.gpu.end_ns, 0)
            columns["gpu_ns"] = self.gpu.end_ns - self.gpu.begin_ns
        return columns


NO_TIMES = Times(_NOW, _NOW)


class Replayer(Protocol):
    """One unit of work that can be repeated.

    depth: repetitions in flight unless `replay` is told otherwise
    before: what is done ahead of each repetition and is in none of its times, to be repeated alone; None: nothing
    """

    @property
    def depth(self) -> int: ...

    @property
    def before(self) -> Replayer | None: ...

    def replay(
        self, iterations: int, minimum_s: float = 0.0, *, arrivals: Arrivals = CLOSED, depth: int | None = None
    ) -> Times:
        """Repeats until at least `iterations` are done and at least `minimum_s` has passed, whichever is later."""
        ...


class CallReplayer:
    """A Python callable; one call at a time. It holds the GIL while the call runs, not while it waits for an
    arrival.
    """

    depth = 1
    before: Replayer | None = None

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work

    def replay(
        self, iterations: int, minimum_s: float = 0.0, *, arrivals: Arrivals = CLOSED, depth: int | None = None
    ) -> Times:
        """An exception of the callable passes through. Between two calls lie some tens of nanoseconds of C++, and each
        10 ms a probe of the core, which takes some microseconds."""
        _check_rule(iterations, minimum_s)
        if depth not in (None, 1):
            raise UsageError(f"calls cannot be {depth} deep", hint="one call ends before the next begins")
        due_ns = arrivals.schedule_ns(iterations, minimum_s)
        minimum_ns = round(minimum_s * NANOSECONDS_PER_SECOND)
        times, probes_ns = _native.time_calls(self._work, iterations, minimum_ns, due_ns)
        return Times(times[:, 1], times[:, 2], times[:, 0] if len(due_ns) else None, probes_ns=probes_ns)


class GraphReplayer:
    """An instantiated CUDA graph on a stream, both as the integers of their handles, replayed from C++ without the GIL.

    `keep`: whatever owns the graph, the stream and the buffers; held as long as this is. The graph belongs to the
    stream's context, which is found by itself. `before`: a second graph, launched ahead of each replay. Raises
    UnsupportedError without a driver, PybenchError where a call of it fails.
    """

    depth = GRAPH_DEPTH

    def __init__(
        self, graph_exec: int, stream: int, *, before: int = 0, keep: object = None, library: str | None = None
    ) -> None:
        if graph_exec == 0 or stream == 0:
            what = "no graph was given" if graph_exec == 0 else "stream 0 is the legacy default stream"
            raise UsageError(what, hint="capture and instantiate the graph on a stream of its own")
        self._keep = keep
        self.before: Replayer | None = None
        if before:
            self.before = GraphReplayer(before, stream, keep=keep, library=library)
        with driver_errors():
            self._timer = _native.GraphTimer(open_driver(library), graph_exec, stream, before)

    def replay(
        self, iterations: int, minimum_s: float = 0.0, *, arrivals: Arrivals = CLOSED, depth: int | None = None
    ) -> Times:
        """`depth` None: 2, as trtexec. Ctrl-C ends it within 50 ms or one replay, with nothing left in flight.

        Where a graph stands before each replay, an open loop counts it into the latency, as it delays what arrives.
        """
        _check_rule(iterations, minimum_s)
        deep = self.depth if depth is None else depth
        if not 1 <= deep <= DEEPEST:
            raise UsageError(f"a depth of {deep}", hint=f"from 1 to {DEEPEST}")
        due_ns = arrivals.schedule_ns(iterations, minimum_s)
        with driver_errors():
            table = self._timer.replay(iterations, round(minimum_s * NANOSECONDS_PER_SECOND), due_ns, deep)
        gpu = GpuTimes(
            table["gpu_begin_ns"],
            table["gpu_end_ns"],
            table["enqueue_end_ns"],
            table["gpu_origin_ns"],
            table["gpu_origin_uncertainty_ns"],
        )
        due = table["due_ns"] if len(due_ns) else None
        return Times(table["enqueue_begin_ns"], table["end_ns"], due, gpu, deep, apart=self.before is not None)


def as_replayer(work: Replayer | Callable[[], object]) -> Replayer:
    """A callable as a replayer; a replayer as it is."""
    return CallReplayer(work) if callable(work) else work


def _check_rule(iterations: int, minimum_s: float) -> None:
    if iterations < 0 or not 0 <= minimum_s < float("inf"):
        raise UsageError(f"cannot time {iterations} iterations for {minimum_s} s", hint="both must be at least 0")
