# SPDX-License-Identifier: Apache-2.0
"""Replaying at a pace: what an open loop sees, and the schedules of its arrivals."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from pybench.errors import UsageError
from pybench.measure import (
    CLOSED,
    Arrivals,
    CallReplayer,
    GraphReplayer,
    fixed,
    monotonic_ns,
    poisson,
    summarise_latency,
)
from tests.measure.simulated_cuda import SimulatedDriver, interrupted_after, replayer

MICROSECOND = 1_000


def graph_work(simulated: SimulatedDriver, monkeypatch: pytest.MonkeyPatch, milliseconds: list[float]) -> GraphReplayer:
    monkeypatch.setenv("PYBENCH_FAKE_CUDA_GRAPH_US", ",".join(str(each * 1000) for each in milliseconds))
    return replayer(simulated)


def call_work(milliseconds: list[float]) -> CallReplayer:
    pauses = iter(milliseconds)
    return CallReplayer(lambda: time.sleep(next(pauses) / 1000))


ONE_STALL = [0.3] * 150 + [60.0] + [0.3] * 249


@pytest.mark.timing
@pytest.mark.parametrize("kind", ["graph", "call"])
def test_open_loop_sees_in_p99_the_stall_that_a_closed_loop_hides(
    kind: str, simulated: SimulatedDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One iteration in 400 stalls for 60 ms: the closed loop's p99 never sees it. With an arrival every millisecond,
    some forty arrivals wait for it."""

    def work() -> GraphReplayer | CallReplayer:
        return graph_work(simulated, monkeypatch, ONE_STALL) if kind == "graph" else call_work(ONE_STALL)

    closed = summarise_latency(work().replay(400).latency_ns)
    opened = summarise_latency(work().replay(400, arrivals=fixed(1000.0)).latency_ns)
    assert closed.p99_s < closed.maximum_s / 2
    assert opened.p99_s > opened.maximum_s / 2
    assert opened.p50_s < opened.p99_s / 2


@pytest.mark.parametrize("kind", ["graph", "call"])
def test_latency_counts_from_the_scheduled_arrival_and_late_starts_are_in_it(
    kind: str, simulated: SimulatedDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes 2 ms and one arrives every millisecond: arrival k waits for k others, so latency grows by 1 ms
    each.
    """
    pauses = [2.0] * 40
    work = graph_work(simulated, monkeypatch, pauses) if kind == "graph" else call_work(pauses)
    times = work.replay(40, arrivals=fixed(1000.0))
    assert times.due_ns is not None
    assert np.all(np.diff(times.due_ns) == 1_000_000)
    assert np.all(times.begin_ns >= times.due_ns)
    latency_ms = (times.latency_ns[:, 1] - times.latency_ns[:, 0]) * 1e-6
    assert latency_ms[0] >= 1.99
    assert latency_ms[-1] >= 2 + 39 * 0.99
    assert "scheduled arrival" in times.definition


def test_an_idle_server_starts_each_arrival_on_time(simulated: SimulatedDriver) -> None:
    for work in (replayer(simulated), CallReplayer(lambda: None)):
        times = work.replay(50, arrivals=fixed(500.0))
        assert times.due_ns is not None
        # Of itself it is on time, and late where another process has the CPU.
        assert np.quantile(times.begin_ns - times.due_ns, 0.1) < 20 * MICROSECOND


def test_open_loop_keeps_at_most_the_depth_in_flight(
    simulated: SimulatedDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = graph_work(simulated, monkeypatch, [2.0])
    for depth in (1, 2, 4):
        times = work.replay(30, arrivals=fixed(5000.0), depth=depth)
        assert np.all(times.begin_ns[depth:] >= times.end_ns[:-depth])
        assert depth == 1 or np.any(times.begin_ns[depth - 1 :] < times.end_ns[: 1 - depth])


def test_an_open_loop_ends_with_the_later_of_arrivals_and_time(simulated: SimulatedDriver) -> None:
    work = replayer(simulated)
    times = work.replay(1, 0.1, arrivals=fixed(200.0))
    assert len(times) == 21
    assert times.span_s >= 0.1
    assert len(work.replay(30, 0.001, arrivals=poisson(5000.0, seed=1))) == 30
    before_ns = monotonic_ns()
    assert work.replay(1, 0.1, arrivals=poisson(500.0, seed=1)).end_ns[-1] - before_ns >= 100_000_000


@pytest.mark.timeout(100)
def test_ctrl_c_ends_a_wait_for_an_arrival(simulated: SimulatedDriver) -> None:
    for work in (replayer(simulated), CallReplayer(lambda: None)):
        with pytest.raises(KeyboardInterrupt), interrupted_after(0.1):
            work.replay(3, arrivals=fixed(0.01))


@pytest.mark.timing
def test_waiting_for_an_arrival_gives_the_gil_away_and_sleeps() -> None:
    begin, cpu = time.monotonic(), time.process_time()
    CallReplayer(lambda: None).replay(10, arrivals=fixed(50.0))
    assert time.process_time() - cpu < 0.4 * (time.monotonic() - begin)


# --- schedules -------------------------------------------------------------------------------------------------------


def test_fixed_arrivals_are_evenly_spaced_and_begin_at_once() -> None:
    assert fixed(4.0).schedule_ns(3, 0.0).tolist() == [0, 250_000_000, 500_000_000]
    assert fixed(4.0).schedule_ns(1, 1.0).tolist()[-1] == 1_000_000_000
    assert CLOSED.schedule_ns(3, 1.0).tolist() == []


def test_poisson_arrivals_have_exponential_gaps_and_follow_their_seed() -> None:
    due_ns = poisson(1000.0, seed=3).schedule_ns(20_000, 0.0)
    gaps_s = np.diff(due_ns) * 1e-9
    assert len(due_ns) == 20_000
    assert gaps_s.mean() == pytest.approx(1e-3, rel=0.03)
    assert gaps_s.std() == pytest.approx(1e-3, rel=0.05)
    assert (gaps_s > 1e-3).mean() == pytest.approx(np.exp(-1), abs=0.02)
    assert np.array_equal(due_ns, poisson(1000.0, seed=3).schedule_ns(20_000, 0.0))
    assert not np.array_equal(due_ns, poisson(1000.0, seed=4).schedule_ns(20_000, 0.0))
    by_time = poisson(1000.0, seed=3).schedule_ns(1, 2.0)
    assert by_time[-2] < 2_000_000_000 <= by_time[-1]


@pytest.mark.parametrize(
    "arrivals",
    [lambda: fixed(0.0), lambda: poisson(-1.0, 0), lambda: Arrivals("fixed"), lambda: Arrivals("closed", 1.0),
     lambda: fixed(1e9).schedule_ns(1, 1.0)],
)  # fmt: skip
def test_impossible_arrivals_are_refused(arrivals: Callable[[], object]) -> None:
    with pytest.raises(UsageError) as caught:
        arrivals()
    assert caught.value.hint is not None
