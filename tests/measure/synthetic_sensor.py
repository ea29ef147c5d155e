# SPDX-License-Identifier: Apache-2.0
"""A made-up board whose sensor is known exactly: the trace that it would give, for tests of what measures sensors.

Power is constant between switching times. A sample is the exact first-order lag of it, `delay_s` late; some samples are
stale (older than their stamp). The counter ticks on a grid and is read back to back. The polled fields repeat the
lagged power, or average it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pybench.measure.energy.trace import CounterChannel, PolledChannel, SampleChannel, Trace

Numbers = NDArray[np.float64]
ORIGIN_NS = 1_000_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensor:
    """The truth. `stale_share` of the samples are up to `stale_s` older than stamped."""

    delay_s: float = 0.0036
    response_s: float = 0.0128
    period_s: float = 0.020
    stamp_spread_s: float = 0.004
    noise_w: float = 1.0
    stale_share: float = 0.05
    stale_s: float = 0.012
    tick_s: float = 0.1
    tick_phase_s: float = 0.037
    tick_jitter_s: float = 0.0
    counter_delay_s: float = 0.0115
    call_s: float = 0.003
    gain: float = 1.001  # samples over counter
    refresh_s: float = 0.1017
    instant_age_s: float = 0.010
    window_s: float = 1.0
    poll_s: float = 0.005
    overshoot: float = 0.0  # of the step, gone after 50 ms
    box_s: float = 0.0  # a mean over this long instead of the lag


def switch(rng: np.random.Generator, count: int, first_s: float = 2.0) -> Numbers:
    """float64 [count, 2] s: loads of 0.3 to 0.8 s with 0.4 to 0.8 s between them, at random phases."""
    on_s, off_s = rng.uniform(0.3, 0.8, count), rng.uniform(0.4, 0.8, count)
    begin_s = first_s + np.cumsum(on_s + off_s) - on_s - off_s
    return np.column_stack((begin_s, begin_s + on_s))


def record(rng: np.random.Generator, sensor: Sensor, loads_s: Numbers, high_w: float = 640.0) -> Trace:
    """The trace of a board at 120 W, and at `high_w` during the loads."""
    board = _Board(sensor, loads_s, 120.0, high_w)
    end_s = float(loads_s.max()) + 2.0
    counter = _read_counter(rng, sensor, board, end_s)
    return Trace(samples=_sample(rng, sensor, board, end_s), counter=counter, polled=_poll(rng, sensor, board, end_s))


def to_ns(times_s: Numbers) -> NDArray[np.int64]:
    return ORIGIN_NS + np.round(times_s * 1e9).astype(np.int64)


class _Board:
    """Power, its energy and its lagged copy, on a grid of 0.2 ms that both are exact on but at the switching times."""

    def __init__(self, sensor: Sensor, loads_s: Numbers, low_w: float, high_w: float) -> None:
        self.time_s = np.arange(-1.0, float(loads_s.max()) + 2.5, 2e-4)
        self.energy_j = low_w * self.time_s
        self.lagged_w = np.full_like(self.time_s, low_w)
        for sign, edge_s in [(sign, edge) for load in loads_s for sign, edge in zip((1, -1), load, strict=True)]:
            after_s = np.maximum(self.time_s - edge_s, 0.0)
            height_w = sign * (high_w - low_w)
            self.energy_j = self.energy_j + height_w * after_s
            # An overshoot is a second step that goes back 50 ms later.
            for part, late_s in (
                ((1 + sensor.overshoot, 0.0), (-sensor.overshoot, 0.05)) if sensor.overshoot else ((1.0, 0.0),)
            ):
                self.lagged_w = self.lagged_w + part * height_w * _respond(sensor, after_s - late_s)

    def lagged(self, time_s: Numbers) -> Numbers:
        seen: Numbers = np.interp(time_s, self.time_s, self.lagged_w)
        return seen

    def energy(self, time_s: Numbers) -> Numbers:
        spent: Numbers = np.interp(time_s, self.time_s, self.energy_j)
        return spent


def _respond(sensor: Sensor, after_s: Numbers) -> Numbers:
    if sensor.box_s:
        return np.clip(after_s / sensor.box_s, 0.0, 1.0)
    return -np.expm1(-np.maximum(after_s, 0.0) / sensor.response_s)


def _sample(rng: np.random.Generator, sensor: Sensor, board: _Board, end_s: float) -> SampleChannel:
    time_s = np.arange(0.0, end_s, sensor.period_s)
    time_s = time_s + rng.uniform(-sensor.stamp_spread_s, sensor.stamp_spread_s, len(time_s))
    age_s = np.where(rng.random(len(time_s)) < sensor.stale_share, rng.uniform(0, sensor.stale_s, len(time_s)), 0.0)
    power_w = board.lagged(time_s - sensor.delay_s - age_s) * sensor.gain + rng.normal(0, sensor.noise_w, len(time_s))
    return SampleChannel(to_ns(time_s), power_w)


def _read_counter(rng: np.random.Generator, sensor: Sensor, board: _Board, end_s: float) -> CounterChannel:
    calls_s = sensor.call_s * rng.choice((0.9, 1.0, 1.1, 3.0), int(end_s / sensor.call_s), p=(0.3, 0.4, 0.2, 0.1))
    return_s = np.cumsum(calls_s + 0.0005)
    return_s = return_s[return_s < end_s]
    calls_s = calls_s[: len(return_s)]
    ticks_s = sensor.tick_phase_s + sensor.tick_s * np.arange(-1, int(end_s / sensor.tick_s) + 1)
    ticks_s = ticks_s + rng.normal(0, sensor.tick_jitter_s, len(ticks_s))
    last = np.searchsorted(ticks_s, return_s - calls_s / 2, side="right") - 1
    energy_j = board.energy(ticks_s[last] - sensor.counter_delay_s)
    return CounterChannel(to_ns(return_s - calls_s), to_ns(return_s), np.round(energy_j + 1000, 3))


def _poll(rng: np.random.Generator, sensor: Sensor, board: _Board, end_s: float) -> PolledChannel:
    time_s = np.arange(1.2, end_s, sensor.poll_s) + rng.uniform(0, 1e-4)
    last_s = np.floor(time_s / sensor.refresh_s) * sensor.refresh_s
    noise_w = rng.normal(0, sensor.noise_w, 1 + int(end_s / sensor.refresh_s))
    instant_w = board.lagged(last_s - sensor.delay_s - sensor.instant_age_s)
    instant_w = instant_w + noise_w[np.floor(time_s / sensor.refresh_s).astype(int)]
    summed_j = np.concatenate(([0.0], np.cumsum(board.lagged_w[1:] * np.diff(board.time_s))))
    ends_s = (last_s - sensor.delay_s, last_s - sensor.delay_s - sensor.window_s)
    end_j, begin_j = (np.interp(each, board.time_s, summed_j) for each in ends_s)
    average_w = (end_j - begin_j) / sensor.window_s
    return PolledChannel(to_ns(time_s), np.round(instant_w, 3), np.round(average_w, 3))
