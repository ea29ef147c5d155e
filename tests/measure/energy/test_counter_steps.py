# SPDX-License-Identifier: Apache-2.0
"""When the energy counter stepped, on counters whose steps are known."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from pybench.measure.energy.counter_steps import CounterSteps, find_steps
from pybench.measure.energy.trace import CounterChannel
from tests.measure.recordings import recording

TICK_S, PHASE_S, CALL_S = 0.1, 0.0337, 0.0037
Numbers = NDArray[np.float64]


def read_at(call_s: Numbers, ticks_s: Numbers) -> CounterChannel:
    """40 J a tick, each latched in the middle of a call."""
    energy_j = 40.0 * np.searchsorted(ticks_s, call_s + CALL_S / 2, "right")
    call_ns = np.round(call_s * 1e9).astype(np.int64)
    return CounterChannel(call_ns, call_ns + round(CALL_S * 1e9), energy_j)


def grid_ticks(length_s: float, period_s: float = TICK_S) -> Numbers:
    return np.arange(PHASE_S, length_s, period_s)


def off_s(steps: CounterSteps, ticks_s: Numbers) -> Numbers:
    """Each step's time less that of the tick which gave it its energy."""
    number = np.round(steps.energy_j / 40.0).astype(int)
    seen = number > 0
    return (steps.time_s[seen] - ticks_s[number[seen] - 1]) / np.maximum(steps.u_time_s[seen], 1e-9)


def find(channel: CounterChannel, *, known: bool = False) -> CounterSteps:
    return find_steps(channel, 0, TICK_S, 0.0005, tick_is_known=known)


def test_dense_readings_tell_the_grid_to_a_fraction_of_their_distance() -> None:
    ticks_s = grid_ticks(60.0)
    steps = find(read_at(np.arange(0.0, 60.0, 0.0083), ticks_s))
    assert steps.tick_s == pytest.approx(TICK_S, rel=1e-6)
    assert steps.u_phase_s < 0.001
    number = np.round(steps.energy_j / 40.0).astype(int)
    errors_s = steps.time_s[number > 0] - ticks_s[number[number > 0] - 1]
    assert np.max(np.abs(errors_s)) < 0.0005
    assert len(steps.time_s) >= 595


def test_a_clock_that_drifts_is_followed() -> None:
    # 20 ppm one way and then the other: 0.6 ms either way, which one straight line would leave.
    numbers = np.arange(6000)
    ticks_s = PHASE_S + numbers * TICK_S + 0.006 * np.sin(numbers / 6000 * 2 * np.pi)
    steps = find(read_at(np.arange(0.0, 600.0, 0.0083), ticks_s))
    assert steps.tick_s is not None
    number = np.round(steps.energy_j / 40.0).astype(int)
    assert np.max(np.abs(steps.time_s[number > 0] - ticks_s[number[number > 0] - 1])) < 0.002


def test_seldom_readings_continue_a_known_grid_and_say_how_sure_they_are() -> None:
    ticks_s = grid_ticks(40.0)
    call_s = np.concatenate((np.arange(0, 0.6, 0.0066), np.arange(0.61, 40, 2.0)))
    steps = find(read_at(call_s, ticks_s), known=True)
    assert steps.tick_s is not None
    assert np.mean(np.abs(off_s(steps, ticks_s)) < 6) > 0.95
    assert steps.u_time_s[-1] > steps.u_time_s[1]
    assert steps.u_time_s[-1] < 0.005


def test_seldom_readings_do_not_continue_a_grid_whose_period_nobody_measured() -> None:
    # Half a second of readings leaves the period open by milliseconds a second: 40 s on, the phase is anybody's guess.
    ticks_s = grid_ticks(40.0, period_s=0.10008)
    call_s = np.concatenate((np.arange(0, 0.6, 0.0066), np.arange(0.61, 40, 2.0)))
    steps = find(read_at(call_s, ticks_s))
    late = steps.time_s > 10
    assert np.all(steps.u_time_s[late] > 0.02)
    assert np.all(np.abs(off_s(steps, ticks_s)) < 3.5)


@pytest.mark.parametrize("share", [0.5, 0.25, 0.2])
def test_readings_at_a_fraction_of_the_tick_do_not_pass_for_sure(share: float) -> None:
    # They see every tick in the same place: what the brackets leave open does not average out.
    ticks_s = grid_ticks(60.0)
    steps = find(read_at(np.arange(0.0, 60.0, share * TICK_S), ticks_s))
    if steps.tick_s is not None:
        assert steps.u_phase_s > 0.2 * share * TICK_S
        number = np.round(steps.energy_j / 40.0).astype(int)
        error_s = np.mean(steps.time_s[number > 0] - ticks_s[number[number > 0] - 1])
        assert abs(error_s) < 2 * steps.u_phase_s


def test_a_counter_without_a_grid_gives_what_each_bracket_holds() -> None:
    generator = np.random.default_rng(1)
    ticks_s = np.cumsum(generator.uniform(0.05, 0.15, 500))
    steps = find(read_at(np.arange(0.0, 45.0, 0.0083), ticks_s))
    assert steps.tick_s is None
    assert np.all(np.abs(off_s(steps, ticks_s)) < 2)


def test_a_counter_with_another_tick_is_not_pressed_into_the_expected_one() -> None:
    ticks_s = grid_ticks(20.0, period_s=0.02)
    steps = find(read_at(np.arange(0.0, 20.0, 0.0043), ticks_s))
    assert steps.tick_s is None
    assert np.all(np.abs(off_s(steps, ticks_s)) < 2)


def test_a_reset_begins_a_segment_and_times_never_go_back() -> None:
    ticks_s = grid_ticks(20.0)
    for every_s in (0.0083, 0.7):
        channel = read_at(np.arange(0.0, 20.0, every_s), ticks_s)
        energy_j = np.where(channel.call_ns < 11_000_000_000, channel.energy_j, channel.energy_j - 4300)
        steps = find(CounterChannel(channel.call_ns, channel.return_ns, energy_j))
        assert set(steps.segment.tolist()) == {0, 1}
        assert np.all(np.diff(steps.segment) >= 0)
        assert np.all(np.diff(steps.time_s) >= 0)
        assert np.all(np.diff(steps.energy_j)[np.diff(steps.segment) == 0] >= 0)


def test_failed_reads_are_left_out() -> None:
    ticks_s = grid_ticks(20.0)
    channel = read_at(np.arange(0.0, 20.0, 0.0083), ticks_s)
    channel.energy_j[::5] = np.nan
    steps = find(channel)
    assert steps.tick_s == pytest.approx(TICK_S, rel=1e-5)
    assert np.all(np.isfinite(steps.energy_j))


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_hardly_any_readings_are_no_error(count: int) -> None:
    steps = find(read_at(np.arange(count) * 0.05, grid_ticks(1.0)))
    assert steps.tick_s is None
    assert len(steps.time_s) <= count


@pytest.mark.parametrize(("name", "period_s"), [("h200-windows", 0.099998), ("h200-kernels", 0.0999995)])
def test_a_recorded_counter_lies_on_its_grid(name: str, period_s: float) -> None:
    steps = find(recording(name).trace.counter)
    assert steps.tick_s == pytest.approx(period_s, abs=1e-6)
    assert steps.u_phase_s < 0.001
    assert np.all(np.diff(steps.time_s) > 0.09)
    assert np.all(np.diff(steps.energy_j) > 0)


def at_constant_power(middle_s: Numbers) -> CounterChannel:
    """Readings at those times of a counter without end, so that a step's energy tells its tick."""
    energy_j = 60.0 * np.floor((middle_s - PHASE_S) / TICK_S)
    call_ns = np.round((middle_s - CALL_S / 2) * 1e9).astype(np.int64)
    return CounterChannel(call_ns, call_ns + round(CALL_S * 1e9), energy_j)


def from_ticks_s(steps: CounterSteps) -> Numbers:
    """How far each step of `at_constant_power` lies from the tick that brought its energy."""
    return np.asarray(steps.time_s - (PHASE_S + np.round(steps.energy_j / 60.0) * TICK_S), np.float64)


@pytest.mark.parametrize("every_s", [0.00694, 0.0071420, 0.0071436, 0.0099993])
def test_the_rhythm_of_the_readings_does_not_move_the_grid(every_s: float) -> None:
    # Most of these beat with the tick: for seconds on end each tick falls into the same place between two readings.
    steps = find_steps(at_constant_power(np.arange(0.0, 200.0, every_s)), 0, TICK_S, 0.0003)
    assert steps.tick_s == pytest.approx(TICK_S, rel=1e-5)
    assert len(steps.time_s) > 1900
    assert np.max(np.abs(from_ticks_s(steps))) < 0.0012


def test_readings_in_step_with_the_tick_say_that_they_leave_its_place_open() -> None:
    steps = find_steps(at_constant_power(np.arange(0.0, 200.0, 0.0125)), 0, TICK_S, 0.0003)
    assert steps.u_phase_s > 0.003
    assert np.max(np.abs(from_ticks_s(steps))) < 2 * steps.u_phase_s


def test_what_a_preempted_thread_saw_does_not_move_the_grid() -> None:
    generator = np.random.default_rng(3)
    middle_s = np.cumsum(np.where(generator.random(20000) < 0.05, 0.024, 0.007))
    assert np.max(np.abs(from_ticks_s(find_steps(at_constant_power(middle_s), 0, TICK_S, 0.0003)))) < 0.0012


@pytest.mark.parametrize("seed", range(20))
def test_few_brackets_give_no_reading_to_a_tick_that_it_may_not_show(seed: int) -> None:
    # Six pairs of readings 30 to 50 ms apart leave tens of milliseconds open; the others are seconds apart.
    generator = np.random.default_rng(seed)
    seldom_s = np.sort(generator.uniform(0, 300, 300))
    ticks_s = PHASE_S + TICK_S * generator.integers(10, 2900, 6)
    widths_s = generator.uniform(0.03, 0.05, 6)
    earlier_s = ticks_s - generator.uniform(0.1, 0.9, 6) * widths_s
    middle_s = np.sort(np.concatenate((seldom_s, earlier_s, earlier_s + widths_s)))
    middle_s = middle_s[np.concatenate(([True], np.diff(middle_s) > 0.004))]
    steps = find_steps(at_constant_power(middle_s), 0, TICK_S, 0.0003, tick_is_known=True)
    if steps.tick_s is None:
        assert np.all(np.abs(from_ticks_s(steps)) <= TICK_S / 2 + 0.01)
        return
    # Half a tick off would be the neighbour's energy.
    assert np.max(np.abs(from_ticks_s(steps))) < TICK_S / 2 - 0.01
