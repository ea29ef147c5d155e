# SPDX-License-Identifier: Apache-2.0
"""Energy of slow iterations against boards whose power is known exactly."""

from __future__ import annotations

import numpy as np
import pytest

from pybench.catalogue.reasons import ReasonCode
from pybench.measure.energy.slow_iterations import find_slow, recovered_resolution_s, slow_energies
from pybench.measure.energy.trace import SampleChannel, Trace
from pybench.measure.quantity import Quantity
from pybench.measure.timing.replay import GpuTimes, Times
from tests.measure.recordings import H200
from tests.oracles.simulated_board import SimulatedBoard, to_ns

BEGIN_S = 2.0


def back_to_back(durations_s: list[float]) -> Times:
    """Iterations without a pause, from `BEGIN_S` on."""
    edges_ns = to_ns(BEGIN_S + np.concatenate(([0.0], np.cumsum(durations_s))))
    return Times(edges_ns[:-1], edges_ns[1:])


def measured(durations_s: list[float], powers_w: list[float], seed: int = 1) -> dict[str, Quantity]:
    """What is said of iterations on a board that draws `powers_w` in each, and 100 W otherwise."""
    edges_s = BEGIN_S + np.concatenate(([0.0], np.cumsum(durations_s)))
    board = SimulatedBoard(np.concatenate(([0.0], edges_s)), np.array([100.0, *powers_w, 100.0]))
    trace = board.trace(float(edges_s[-1]) + 2, H200, np.random.default_rng(seed), noise_w=1.0)
    return slow_energies(trace, back_to_back(durations_s), "timing", H200)


def split(count: int, slow: dict[int, tuple[float, float]], quick: tuple[float, float]) -> tuple[list[float], ...]:
    """Durations and powers of `count` iterations; `slow`: place -> (s, W)."""
    each = [slow.get(place, quick) for place in range(count)]
    return [one[0] for one in each], [one[1] for one in each]


@pytest.mark.parametrize("seed", range(5))
def test_a_row_of_slow_iterations_has_the_energy_that_the_board_spent_in_them(seed: int) -> None:
    slow = dict.fromkeys(range(40, 45), (0.03, 250.0))  # 150 ms together, 37.5 J
    found = measured(*split(100, slow, (0.020, 600.0)), seed)["gpu_slow_p95_energy_j"]
    assert found.value == pytest.approx(37.5, rel=0.05)
    assert found.u_standard is not None
    assert abs(found.value - 37.5) < 3 * found.u_standard
    assert (found.samples, found.window, found.valid) == (5, "timing", True)
    assert found.method == "fused; 5 of 5 iterations beyond p95"


def test_slow_iterations_that_stand_alone_are_below_the_resolution() -> None:
    slow = dict.fromkeys((10, 30, 50, 70, 90), (0.03, 250.0))  # as slow and as many, never two in a row
    found = measured(*split(100, slow, (0.020, 600.0)))["gpu_slow_p95_energy_j"]
    assert (found.value, found.valid) == (None, None)
    (reason,) = found.reasons
    assert reason.code is ReasonCode.TAIL_BELOW_RESOLUTION
    assert "the longest takes 30 ms" in reason.detail


def test_only_the_rows_that_are_long_enough_are_added_up() -> None:
    slow = {10: (0.03, 600.0)} | dict.fromkeys((60, 61, 62, 63), (0.03, 200.0))
    found = measured(*split(100, slow, (0.020, 600.0)))["gpu_slow_p95_energy_j"]
    assert found.value == pytest.approx(0.12 * 200, rel=0.07)
    assert (found.samples, found.method) == (4, "fused; 4 of 5 iterations beyond p95")


def test_one_iteration_that_is_long_enough_needs_no_neighbour() -> None:
    found = measured(*split(200, {150: (0.4, 300.0)}, (0.02, 600.0)))["gpu_slow_p99_energy_j"]
    assert found.value == pytest.approx(120, rel=0.02)
    assert found.samples == 1


def test_equal_iterations_have_no_slow_ones() -> None:
    found = measured(*split(100, {}, (0.02, 600.0)))
    for name, percentile in (("gpu_slow_p95_energy_j", "p95"), ("gpu_slow_p99_energy_j", "p99")):
        assert str(found[name].reasons[0]) == f"tail_below_resolution: no iteration is beyond {percentile}"


def test_a_row_that_was_not_recorded_says_so() -> None:
    durations_s, powers_w = split(100, dict.fromkeys(range(40, 45), (0.03, 250.0)), (0.020, 600.0))
    times = back_to_back(durations_s)
    board = SimulatedBoard(np.array([0.0, BEGIN_S]), np.array([100.0, powers_w[0]]))
    short = board.trace(BEGIN_S + 0.2, H200, np.random.default_rng(1))
    found = slow_energies(short, times, "timing", H200)["gpu_slow_p95_energy_j"]
    assert found.value is None
    assert "not_covered" in {reason.code.value for reason in found.reasons}


def test_the_resolution_is_two_intervals_between_samples_and_without_samples_two_ticks() -> None:
    sampled = Trace(samples=SampleChannel(to_ns(np.arange(0.0, 2.0, 0.1)), np.full(20, 300.0)))
    assert recovered_resolution_s(sampled, H200) == pytest.approx(0.2)
    assert recovered_resolution_s(Trace(), H200) == pytest.approx(2 * H200.counter_tick_s)


def test_with_arrivals_the_response_time_decides_and_the_work_is_what_is_integrated() -> None:
    begin_ns = to_ns(np.arange(100) * 0.1)
    due_ns = begin_ns.copy()
    due_ns[50:55] -= to_ns(np.array([0.5]))  # waited, and ran no longer than the others
    found = find_slow(Times(begin_ns, begin_ns + 10_000_000, due_ns), 95)
    assert (found.begin_ns.tolist(), found.end_ns.tolist()) == ([begin_ns[50]], [begin_ns[54] + 10_000_000])
    assert found.iterations.tolist() == [5]


def test_times_of_the_gpu_are_put_on_the_clock_of_the_samples() -> None:
    begin_ns = np.arange(100) * 1_000_000
    end_ns = begin_ns + np.where(np.arange(100) == 99, 900_000, 500_000)
    gpu = GpuTimes(begin_ns, end_ns, begin_ns, origin_ns=7_000_000_000, origin_uncertainty_ns=10)
    found = find_slow(Times(begin_ns, end_ns, None, gpu, 2), 95)
    assert (found.begin_ns.tolist(), found.end_ns.tolist()) == ([7_099_000_000], [7_099_900_000])
