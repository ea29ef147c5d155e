# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import time

import numpy as np
import pytest

from pybench.errors import UsageError
from pybench.measure import anchor_clock, monotonic_ns, seconds_since, sleep_until_ns, time_calls
from tests.measure.simulated_cuda import interrupted_after


def test_the_clock_is_the_raw_monotonic_one() -> None:
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
    now = monotonic_ns()
    assert before <= now <= time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


def test_seconds_are_those_from_a_time_until_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pybench.measure.timing.clock.monotonic_ns", lambda: 3_500_000_003)
    assert seconds_since(1_000_000_000) == 2.500000003


def test_the_anchor_brackets_realtime() -> None:
    realtime_before = time.time_ns()
    anchor = anchor_clock()
    assert realtime_before <= anchor.realtime_ns <= time.time_ns()
    assert 0 < anchor.uncertainty_ns < 1_000_000


@pytest.mark.timing
def test_sleeping_reaches_the_deadline_without_using_the_cpu() -> None:
    cpu_s, begin_ns = time.thread_time(), monotonic_ns()
    sleep_until_ns(begin_ns + 100_000_000)
    slept_ns, cpu_s = monotonic_ns() - begin_ns, time.thread_time() - cpu_s
    assert slept_ns >= 100_000_000
    assert cpu_s * 1e9 < 0.4 * slept_ns


def test_a_deadline_in_the_past_returns_at_once() -> None:
    before = monotonic_ns()
    sleep_until_ns(before - 100_000_000_000)
    assert monotonic_ns() - before < 50_000_000_000


def test_a_signal_handler_that_raises_ends_the_sleep() -> None:
    with pytest.raises(KeyboardInterrupt), interrupted_after(0.05):
        sleep_until_ns(monotonic_ns() + 100_000_000_000)


def test_each_call_is_timed_once_and_in_order() -> None:
    seen: list[int] = []
    times = time_calls(lambda: seen.append(len(seen)), iterations=50)
    assert times.shape == (50, 2)
    assert times.dtype == np.int64
    assert seen == list(range(50))
    assert np.all(times[:, 1] >= times[:, 0])
    assert np.all(times[1:, 0] >= times[:-1, 1])


def test_a_call_lasts_as_long_as_its_sleep() -> None:
    times = time_calls(lambda: time.sleep(0.01), iterations=3)
    assert np.all(times[:, 1] - times[:, 0] >= 10_000_000)


def test_the_later_of_iterations_and_time_ends_the_loop() -> None:
    by_time = time_calls(lambda: time.sleep(0.005), iterations=1, minimum_s=0.1)
    assert by_time[-1, 1] - by_time[0, 0] >= 100_000_000
    assert 1 <= len(by_time) <= 20
    by_count = time_calls(lambda: None, iterations=200, minimum_s=1e-9)
    assert len(by_count) == 200


def test_no_iterations_and_no_time_make_no_call() -> None:
    times = time_calls(lambda: pytest.fail("called"), iterations=0)
    assert times.shape == (0, 2)


def test_an_exception_of_the_callable_passes_through() -> None:
    with pytest.raises(ZeroDivisionError):
        time_calls(lambda: 1 // 0, iterations=3)


def test_a_signal_ends_a_loop_of_calls_that_never_enter_python() -> None:
    with pytest.raises(KeyboardInterrupt), interrupted_after(0.05):
        time_calls(time.monotonic, iterations=0, minimum_s=100)


@pytest.mark.parametrize(("iterations", "minimum_s"), [(-1, 0.0), (1, -0.5), (1, float("nan")), (1, float("inf"))])
def test_an_impossible_stopping_rule_is_refused(iterations: int, minimum_s: float) -> None:
    with pytest.raises(UsageError):
        time_calls(lambda: None, iterations=iterations, minimum_s=minimum_s)
