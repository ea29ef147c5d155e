# SPDX-License-Identifier: Apache-2.0
"""Replaying graphs and calls one after another, against a simulated driver whose times are known."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from pybench import _native
from pybench.errors import DeviceMemoryError, PybenchError, UnsupportedError, UsageError
from pybench.measure import (
    CLOSED,
    Arrivals,
    CallReplayer,
    GraphReplayer,
    Times,
    as_replayer,
    fixed,
    judge_steadiness,
    monotonic_ns,
    summarise_latency,
)
from pybench.measure.timing.replay import NO_TIMES, GpuTimes
from tests.measure.simulated_cuda import BEFORE, GRAPH, SimulatedDriver, interrupted_after, replayer

MICROSECOND = 1_000


def fastest(work: GraphReplayer, depth: int) -> Times:
    """The least disturbed of a few series: other work on the machine holds the host up now and then."""
    return min((work.replay(40, depth=depth) for _ in range(8)), key=lambda times: times.span_s)


# --- graphs, closed loop ---------------------------------------------------------------------------------------------


def test_each_replay_has_times_on_the_gpu_and_on_the_host(simulated: SimulatedDriver) -> None:
    before_ns = monotonic_ns()
    times = replayer(simulated).replay(200)
    assert len(times) == 200
    assert times.gpu is not None
    assert times.due_ns is None
    assert times.gpu.begin_ns[0] == 0
    assert np.all(times.gpu.begin_ns[1:] >= times.gpu.end_ns[:-1])
    durations = times.gpu.end_ns - times.gpu.begin_ns
    assert np.quantile(durations, 0.1) == durations.min() == 100 * MICROSECOND  # a preempted host makes some longer
    assert np.all(times.gpu.enqueue_end_ns >= times.begin_ns)
    assert np.all(times.end_ns >= times.gpu.enqueue_end_ns)
    assert times.begin_ns[0] >= before_ns
    assert times.end_ns[-1] <= monotonic_ns()


def test_the_gpu_time_line_is_tied_to_the_raw_clock(simulated: SimulatedDriver) -> None:
    times = replayer(simulated).replay(50)
    assert times.gpu is not None
    tolerance_ns = times.gpu.origin_uncertainty_ns + MICROSECOND
    ends_ns = times.gpu.origin_ns + times.gpu.end_ns
    assert np.all(times.end_ns >= ends_ns - tolerance_ns)
    # The host spins, so it sees an end at once, where it has the CPU.
    assert np.quantile(times.end_ns - ends_ns, 0.1) < 200 * MICROSECOND
    assert abs(times.gpu.origin_ns - times.begin_ns[0]) < 1_000_000


@pytest.mark.timing
def test_depth_two_hides_the_launch_that_depth_one_shows(
    simulated: SimulatedDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYBENCH_FAKE_CUDA_LAUNCH_US", "300")
    monkeypatch.setenv("PYBENCH_FAKE_CUDA_GRAPH_US", "1000")
    work = replayer(simulated)
    deep, alone = (fastest(work, depth) for depth in (2, 1))
    assert (deep.depth, alone.depth) == (2, 1)
    assert summarise_latency(deep.latency_ns).p50_s == pytest.approx(1000e-6, abs=5e-6)
    assert 1300e-6 <= summarise_latency(alone.latency_ns).p50_s < 2600e-6
    assert 40 * 1000e-6 <= deep.span_s < 0.95 * alone.span_s
    assert alone.span_s > 40 * 1290e-6
    assert np.all(deep.begin_ns[1:] < deep.end_ns[:-1])  # the next one is launched before this one has ended
    assert np.all(alone.begin_ns[1:] >= alone.end_ns[:-1])
    for times in (deep, alone):
        assert times.enqueue_ns is not None
        assert 300e-6 <= summarise_latency(times.enqueue_ns).p50_s < 600e-6


def test_the_later_of_replays_and_time_ends_the_series(simulated: SimulatedDriver) -> None:
    work = replayer(simulated)
    by_time = work.replay(1, 0.05)
    assert (by_time.end_ns[-1] - by_time.begin_ns[0]) * 1e-9 >= 0.05
    assert len(by_time) <= 600
    assert len(work.replay(7, 1e-9)) == 7
    assert len(work.replay(0)) == 0


def test_times_stay_exact_over_a_long_series(simulated: SimulatedDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every replay takes 3000.5 us, and time stamps are whole steps of 0.5 us. After a second a float of milliseconds
    steps by 0.12 us, so that against the first event the last ones would be off; hop by hop nothing is lost."""
    monkeypatch.setenv("PYBENCH_FAKE_CUDA_GRAPH_US", "3000.5")
    times = replayer(simulated).replay(1, 1.2)
    assert times.gpu is not None
    durations = times.gpu.end_ns - times.gpu.begin_ns
    assert np.quantile(durations, 0.1) == durations.min() == 3_000_500
    for hops_ns in (durations, np.diff(times.gpu.begin_ns)):
        # A longer one, where another process had the CPU, is a float of milliseconds in steps of 2 ns and more.
        assert np.all(hops_ns[hops_ns < 16_000_000] % 500 == 0)
    against_first = (times.gpu.begin_ns * 1e-6).astype(np.float32).astype(np.float64) * 1e6
    assert np.any(np.round(against_first).astype(np.int64) % 500 != 0)


def test_a_level_shift_of_the_gpu_times_is_labelled(
    simulated: SimulatedDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYBENCH_FAKE_CUDA_GRAPH_US", ",".join(["150"] * 40 + ["100"] * 60))
    assert judge_steadiness(replayer(simulated).replay(100).latency_ns).label == "warmup"
    monkeypatch.setenv("PYBENCH_FAKE_CUDA_GRAPH_US", "100")
    assert judge_steadiness(replayer(simulated).replay(100).latency_ns).label == "flat"


def test_other_python_threads_run_during_a_replay(simulated: SimulatedDriver) -> None:
    ticks: list[int] = []
    ended = threading.Event()

    def tick() -> None:
        while not ended.wait(0.005):
            ticks.append(1)

    thread = threading.Thread(target=tick)
    thread.start()
    replayer(simulated).replay(1, 0.3)
    ended.set()
    thread.join()
    assert len(ticks) > 5  # of sixty


@pytest.mark.timeout(100)
def test_ctrl_c_ends_a_replay_and_leaves_nothing_in_flight(simulated: SimulatedDriver) -> None:
    work = replayer(simulated)
    with pytest.raises(KeyboardInterrupt), interrupted_after(0.1):
        work.replay(1, 200.0)
    assert len(work.replay(3)) == 3


def test_events_are_given_back(simulated: SimulatedDriver) -> None:
    work = replayer(simulated)
    before = simulated.held()
    work.replay(10)
    assert simulated.held() == before


# --- graphs, with another one before each ----------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2])
def test_what_stands_before_each_replay_is_in_none_of_its_times(
    simulated: SimulatedDriver, monkeypatch: pytest.MonkeyPatch, depth: int
) -> None:
    monkeypatch.setenv("PYBENCH_FAKE_CUDA_GRAPH_US", "500")
    monkeypatch.setenv("PYBENCH_FAKE_CUDA_BEFORE_US", "2000")
    times = GraphReplayer(GRAPH, simulated.stream(), before=BEFORE).replay(20, depth=depth)
    assert times.gpu is not None
    durations = times.gpu.end_ns - times.gpu.begin_ns
    assert 500 * MICROSECOND <= durations.min() < 2000 * MICROSECOND  # a host between the event and the launch is in it
    assert np.all(times.gpu.begin_ns[1:] - times.gpu.end_ns[:-1] >= 2000 * MICROSECOND)
    assert times.span_s == pytest.approx(durations.sum() * 1e-9)
    assert times.definition.endswith("what stands before it left out")


def test_alone_the_host_waits_for_what_stands_before(
    simulated: SimulatedDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYBENCH_FAKE_CUDA_GRAPH_US", "500")
    monkeypatch.setenv("PYBENCH_FAKE_CUDA_BEFORE_US", "20000")
    times = GraphReplayer(GRAPH, simulated.stream(), before=BEFORE).replay(10, depth=1)
    seen_by_host_ns = times.host_ns[:, 1] - times.host_ns[:, 0]
    assert 500 * MICROSECOND <= seen_by_host_ns.min() < 20_000 * MICROSECOND


def test_what_stands_before_can_be_repeated_alone(simulated: SimulatedDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYBENCH_FAKE_CUDA_BEFORE_US", "2000")
    assert replayer(simulated).before is None
    before = GraphReplayer(GRAPH, simulated.stream(), before=BEFORE).before
    assert before is not None
    times = before.replay(5)
    assert times.gpu is not None
    assert (times.gpu.end_ns - times.gpu.begin_ns).min() == 2000 * MICROSECOND
    assert not times.apart


# --- graphs, errors --------------------------------------------------------------------------------------------------


def test_a_launch_that_fails_says_which_and_why(simulated: SimulatedDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYBENCH_FAKE_CUDA_FAIL", "cuGraphLaunch:700:6")
    work = replayer(simulated)
    before = simulated.held()
    with pytest.raises(PybenchError) as caught:
        work.replay(20)
    assert caught.value.message == (
        "cuGraphLaunch at replay 5: CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered"
    )
    assert caught.value.hint is not None
    assert simulated.held() == before


def test_memory_that_runs_out_is_told_as_such(simulated: SimulatedDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYBENCH_FAKE_CUDA_FAIL", "cuGraphLaunch:2:1")
    with pytest.raises(DeviceMemoryError) as caught:
        replayer(simulated).replay(20)
    assert caught.value.evidence == "cuGraphLaunch at replay 0: CUDA_ERROR_OUT_OF_MEMORY"


def test_a_handle_that_is_no_graph_or_no_stream_is_refused(simulated: SimulatedDriver) -> None:
    with pytest.raises(PybenchError, match="cuGraphLaunch at replay 0: CUDA_ERROR_INVALID_HANDLE"):
        GraphReplayer(GRAPH + 1, simulated.stream()).replay(1)
    with pytest.raises(PybenchError, match="cuStreamGetCtx: CUDA_ERROR_INVALID_HANDLE"):
        GraphReplayer(GRAPH, 0xDEAD)
    for graph, stream in ((0, simulated.stream()), (GRAPH, 0)):
        with pytest.raises(UsageError):
            GraphReplayer(graph, stream)


def test_without_a_driver_replaying_is_unsupported_and_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYBENCH_CUDA_LIBRARY", "libabsent-cuda.so.1")
    with pytest.raises(UnsupportedError, match=r"libabsent-cuda\.so\.1") as caught:
        GraphReplayer(GRAPH, 1)
    assert caught.value.reason.stored_code == "no_cuda_driver"
    assert caught.value.hint is not None


def test_a_library_that_is_no_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = _native.open_cuda("libm.so.6")
    assert not driver.available
    assert driver.reason == "libm.so.6 is no CUDA driver of version 9.2 or later: it lacks cuInit"
    assert driver.devices() == []


def test_a_driver_without_a_device_is_unsupported(simulated: SimulatedDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYBENCH_FAKE_CUDA_FAIL", "cuInit:100:1")
    with pytest.raises(UnsupportedError, match="CUDA_ERROR_NO_DEVICE") as caught:
        GraphReplayer(GRAPH, 1)
    assert caught.value.reason.stored_code == "no_gpu"


# --- calls -----------------------------------------------------------------------------------------------------------


def test_a_call_is_replayed_as_often_as_asked() -> None:
    calls: list[int] = []
    times = as_replayer(lambda: calls.append(1)).replay(5)
    assert (len(times), len(calls), times.depth) == (5, 5, 1)
    assert times.gpu is None
    assert times.enqueue_ns is None
    assert list(times.columns(0)) == ["gap_ns", "host_ns"]
    assert np.array_equal(times.latency_ns, times.host_ns)


def test_a_replayer_is_taken_as_it_is(simulated: SimulatedDriver) -> None:
    work = replayer(simulated)
    assert as_replayer(work) is work
    assert list(work.replay(2).columns(0)) == ["gap_ns", "host_ns", "enqueue_ns", "gpu_gap_ns", "gpu_ns"]


def test_what_is_stored_of_times_is_as_worked_out_by_hand() -> None:
    times = Times(
        begin_ns=np.array([1_010, 1_040, 1_190]),
        end_ns=np.array([1_110, 1_180, 1_290]),
        due_ns=np.array([1_005, 1_040, 1_150]),
        gpu=GpuTimes(np.array([0, 95, 180]), np.array([90, 170, 260]), np.array([1_013, 1_044, 1_195]), 1_015, 1),
    )
    assert {name: column.tolist() for name, column in times.columns(1_000).items()} == {
        "gap_ns": [10, -70, 10],  # the second began before the first had ended
        "host_ns": [100, 140, 100],
        "waiting_ns": [5, 0, 40],
        "enqueue_ns": [3, 4, 5],
        "gpu_gap_ns": [0, 5, 10],
        "gpu_ns": [90, 75, 80],
    }
    assert all(column.dtype == np.int64 for column in times.columns(1_000).values())
    assert {name: len(column) for name, column in NO_TIMES.columns(1_000).items()} == {"gap_ns": 0, "host_ns": 0}


def test_sums_of_what_is_stored_are_the_times_again() -> None:
    rng = np.random.default_rng(7)
    window_ns = 1_795_476_011_284_501_516
    begin_ns = window_ns + 40 + np.cumsum(rng.integers(1, 10**6, 500))
    end_ns = begin_ns + rng.integers(1, 10**7, 500)
    gpu_begin_ns = np.cumsum(rng.integers(1, 10**6, 500))  # some time lines begin later than 0
    gpu = GpuTimes(gpu_begin_ns, gpu_begin_ns + rng.integers(1, 10**5, 500), begin_ns + 7, 0, 0)
    table = Times(begin_ns, end_ns, begin_ns - 9, gpu).columns(window_ns)
    ends_ns = window_ns + np.cumsum(table["gap_ns"] + table["host_ns"])
    gpu_ends_ns = np.cumsum(table["gpu_gap_ns"] + table["gpu_ns"])
    for found, expected in (
        (ends_ns, end_ns),
        (ends_ns - table["host_ns"], begin_ns),
        (gpu_ends_ns, gpu.end_ns),
        (gpu_ends_ns - table["gpu_ns"], gpu.begin_ns),
    ):
        assert np.array_equal(found, expected)


@pytest.mark.parametrize("arrivals", [CLOSED, fixed(1000.0)])
def test_an_exception_of_a_call_passes_through_at_any_pace(arrivals: Arrivals) -> None:
    with pytest.raises(ZeroDivisionError):
        CallReplayer(lambda: 1 // 0).replay(3, arrivals=arrivals)


@pytest.mark.parametrize("rule", [(-1, 0.0), (1, -0.5), (1, float("nan")), (1, float("inf"))])
def test_an_impossible_stopping_rule_is_refused_by_both(rule: tuple[int, float], simulated: SimulatedDriver) -> None:
    for work in (replayer(simulated), CallReplayer(lambda: None)):
        with pytest.raises(UsageError):
            work.replay(*rule)


def test_impossible_depths_are_refused(simulated: SimulatedDriver) -> None:
    with pytest.raises(UsageError):
        CallReplayer(lambda: None).replay(1, depth=2)
    for depth in (0, 65):
        with pytest.raises(UsageError):
            replayer(simulated).replay(1, depth=depth)


def test_times_are_frozen() -> None:
    times: Times = CallReplayer(lambda: None).replay(1)
    with pytest.raises(AttributeError):
        times.depth = 3  # type: ignore[misc]
