# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import csv

import numpy as np
import pytest

from pybench.measure import Quantity, Window, integrate
from pybench.measure.energy.gpu import to_quantity
from pybench.measure.energy.plain_methods import measure_tick_s
from pybench.measure.energy.profile import ASSUMED
from pybench.measure.energy.trace import CounterChannel, Trace
from tests.measure.replay import TRACE

SECOND = 1_000_000_000


def channel_of(power_w: float, *, tick_s: float = 0.1, call_s: float = 0.0, duration_s: float = 10.0) -> CounterChannel:
    """A counter at constant power, stepping every `tick_s`, read every 5 ms."""
    calls = np.arange(0, round(duration_s * 1e9), 5_000_000, dtype=np.int64)
    energy = power_w * np.floor((calls + 1) / (tick_s * 1e9)) * tick_s
    return CounterChannel(calls, calls + round(call_s * 1e9), energy)


def window_of(begin_s: float, end_s: float) -> Window:
    return Window("energy", round(begin_s * SECOND), round(end_s * SECOND), 1)


def counter_difference(window: Window, channel: CounterChannel) -> Quantity:
    edges = (np.array([edge], np.int64) for edge in (window.begin_ns, window.end_ns))
    energies = integrate(Trace(counter=channel), *edges, ASSUMED, "counter-difference")
    return to_quantity(energies, 0, window.name)


def recorded_channel() -> CounterChannel:
    rows = np.loadtxt(TRACE / "counter.csv", delimiter=",", skiprows=1)
    return CounterChannel((rows[:, 0] * 1000).astype(np.int64), (rows[:, 1] * 1000).astype(np.int64), rows[:, 2])


def recorded_window() -> Window:
    with (TRACE / "windows.csv").open() as file:
        row = next(csv.DictReader(file))
    return Window("energy", int(row["start_us"]) * 1000, int(row["end_us"]) * 1000, int(row["iterations"]))


def test_constant_power_gives_power_times_time_and_the_uncertainty_of_the_worked_example() -> None:
    energy = counter_difference(window_of(2.001, 4.001), channel_of(500.0))
    assert energy.value == pytest.approx(1000.0)
    assert energy.valid is True
    # 500 W * sqrt((0.1^2 + 0.001^2 + 0.001^2) / 3): the readings are 1 ms away from the edges
    assert energy.u_standard == pytest.approx(28.870, rel=1e-4)
    # that and 5 % of 1000 J as a rectangular bound, 28.868 J
    assert energy.u_absolute == pytest.approx(40.826, rel=1e-4)
    assert (energy.method, energy.scope) == ("counter-difference", "board")


def test_the_tick_is_measured_from_the_steps() -> None:
    assert measure_tick_s(channel_of(500.0, tick_s=0.1)) == pytest.approx(0.1, rel=0.05)
    assert measure_tick_s(channel_of(500.0, tick_s=0.02)) == pytest.approx(0.02, rel=0.05)
    assert measure_tick_s(recorded_channel()) == pytest.approx(0.1, rel=0.05)


def test_readings_far_apart_do_not_pass_for_the_tick() -> None:
    channel = channel_of(500.0, duration_s=60.0)
    sparse = CounterChannel(channel.call_ns[::200], channel.return_ns[::200], channel.energy_j[::200])
    assert measure_tick_s(sparse) is None


def test_a_window_shorter_than_the_minimum_keeps_its_value_and_is_invalid() -> None:
    energy = counter_difference(window_of(2.001, 2.501), channel_of(500.0))
    assert energy.value == pytest.approx(250.0)
    assert energy.valid is False
    assert str(energy.reasons[0]).startswith("window_too_short: ")


def test_a_counter_reset_makes_the_energy_invalid() -> None:
    channel = channel_of(500.0)
    channel.energy_j[700:] -= 1000.0
    energy = counter_difference(window_of(2.0, 5.0), channel)
    assert energy.valid is False
    assert any(str(reason).startswith("counter_reset") for reason in energy.reasons)


def test_a_counter_that_does_not_move_is_no_energy() -> None:
    energy = counter_difference(window_of(2.0, 5.0), channel_of(0.0))
    assert (energy.valid, energy.u_standard) == (False, None)
    assert any(str(reason).startswith("counter_stuck") for reason in energy.reasons)


def test_failed_reads_are_missing_and_not_zero() -> None:
    channel = channel_of(500.0)
    channel.energy_j[::3] = np.nan
    energy = counter_difference(window_of(2.001, 4.001), channel)
    assert energy.value == pytest.approx(1000.0, abs=51)
    assert energy.valid is True


def test_no_reading_near_an_edge_makes_the_energy_invalid() -> None:
    channel = channel_of(500.0)
    channel.energy_j[350:450] = np.nan
    energy = counter_difference(window_of(0.5, 2.0), channel)
    assert energy.valid is False
    assert any(str(reason).startswith("counter_gap") for reason in energy.reasons)


def test_an_unsupported_counter_is_null_with_a_reason() -> None:
    channel = channel_of(500.0)
    channel.energy_j[:] = np.nan
    energy = counter_difference(window_of(2.0, 4.0), channel)
    assert energy.value is None
    assert energy.valid is None
    assert str(energy.reasons[0]).startswith("counter_unreadable")


def test_an_assumed_tick_is_named() -> None:
    energy = counter_difference(window_of(0.0, 2.0), channel_of(500.0, tick_s=0.9, duration_s=2.1))
    assert any(str(reason).startswith("tick_assumed") for reason in energy.reasons)


def test_the_recorded_window_agrees_with_the_integrated_samples_within_its_uncertainty() -> None:
    window = recorded_window()
    energy = counter_difference(window, recorded_channel())
    assert energy.value is not None
    assert energy.u_standard is not None
    samples = np.loadtxt(TRACE / "samples.csv", delimiter=",", skiprows=1)
    # An independent channel: the driver's 20 ms samples, 10 ms late as characterised, by the trapezoid rule.
    times_s, power_w = samples[:, 0] * 1e-6 - 0.010, samples[:, 1]
    grid = np.linspace(window.begin_ns * 1e-9, window.end_ns * 1e-9, 4000)
    integral_j = float(np.trapezoid(np.interp(grid, times_s, power_w), grid))
    assert energy.valid is True
    assert abs(energy.value - integral_j) < 2 * energy.u_standard


@pytest.mark.parametrize("phase_s", np.linspace(0, 0.1, 20).tolist())
def test_from_idle_to_load_the_error_stays_within_two_uncertainties(phase_s: float) -> None:
    calls = np.arange(0, 6 * SECOND, 5_000_000, dtype=np.int64)
    step_s = np.floor((calls * 1e-9 + phase_s) / 0.1) * 0.1 - phase_s  # the counter's last step before each call
    energy_j = 100.0 * step_s + 500.0 * np.clip(step_s - 2.0, 0, 2.0)  # 100 W idle; 600 W from 2 s to 4 s
    energy = counter_difference(window_of(2.0, 4.0), CounterChannel(calls, calls, energy_j))
    assert energy.value is not None
    assert energy.u_standard is not None
    assert abs(energy.value - 1200.0) < 2 * energy.u_standard
