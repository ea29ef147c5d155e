# SPDX-License-Identifier: Apache-2.0
"""What it costs to know the phase of the energy counter's ticks: cadences of reading it, simulated on recorded calls.

    python bench/energy/counter_cadence.py TRACE [--session-s 60] [--trials 40]

TRACE is a folder with a counter.csv (t_call_us, t_return_us, energy_j) that was read back to back. From it come the
grid and, for each phase of it, the lengths of calls: right after a tick they are long. A simulated counter with that
grid and those lengths is then read by each cadence; the value is taken at a random place of the call's first 2 ms. From
the readings of a cadence alone, all grids that could be are enclosed, and the middle of them is compared with the
truth.
The schedule is pybench's own (native/counter_schedule.cpp), the very code that runs. Nothing here needs a GPU.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pybench import _native

MS = 1_000_000
SAMPLED_CALLS = 25  # the recorded calls nearest in phase, of which one is drawn
WAKE_NS = 60_000  # mean lateness of a sleeping thread
POWER_MJ_PER_NS = 300e-6  # any constant power will do: only whether the value moved is looked at
START_S, STOP_S = 0.6, 0.3  # s: of reading back to back, at the two ends of a session
TRACK_START_S, TRACK_STOP_S = 0.1, 0.1  # s: of the schedule; a scan goes on until it is done

Readings = list[tuple[int, int, float]]


@dataclass(frozen=True)
class Calls:
    """Recorded calls: phase after a tick and length, both in ns, sorted by phase."""

    period_ns: float
    phase_ns: NDArray[np.float64]
    length_ns: NDArray[np.float64]


class Counter:
    """A counter with a recorded counter's habits. `now_ns` moves on by sleeping and by calling."""

    def __init__(self, calls: Calls, random: np.random.Generator) -> None:
        self.calls, self.random = calls, random
        self.now_ns = 10_000_000_000
        self.first_tick_ns = self.now_ns + random.uniform(0, calls.period_ns)
        self.readings: Readings = []

    def sleep_until(self, time_ns: float) -> None:
        self.now_ns = int(max(self.now_ns, time_ns) + self.random.exponential(WAKE_NS))

    def read(self) -> tuple[int, int, float]:
        calls = self.calls
        phase = (self.now_ns - self.first_tick_ns) % calls.period_ns
        nearest = np.searchsorted(calls.phase_ns, phase) + self.random.integers(-SAMPLED_CALLS // 2, SAMPLED_CALLS // 2)
        length = float(calls.length_ns[nearest % len(calls.length_ns)])
        latch_ns = self.now_ns + self.random.uniform(0.2, 0.8) * min(length, 2.4 * MS)
        ticks = np.floor((latch_ns - self.first_tick_ns) / calls.period_ns)
        reading = (
            self.now_ns,
            int(self.now_ns + length),
            float(np.round(1e6 + ticks * calls.period_ns * POWER_MJ_PER_NS)),
        )
        self.now_ns = reading[1]
        self.readings.append(reading)
        return reading

    def read_back_to_back(self, seconds: float) -> None:
        until = self.now_ns + seconds * 1e9
        while self.now_ns < until:
            self.read()
            self.sleep_until(self.now_ns + 1 * MS)

    def follow(self, schedule: _native.CounterSchedule, until_ns: float) -> None:
        while schedule.due_ns < until_ns:
            self.sleep_until(schedule.due_ns)
            begin, end, energy = self.read()
            schedule.note(begin, end, energy, True)
        self.sleep_until(until_ns)


def recorded_calls(folder: Path) -> Calls:
    call, end, energy = np.loadtxt(folder / "counter.csv", delimiter=",", skiprows=1).T
    call, end = call * 1000, end * 1000
    steps = np.flatnonzero(np.diff(energy) > 0)
    grid = enclose(call[steps], end[steps + 1], 100.0 * MS)
    phase = (call - grid.tick_ns) % grid.period_ns
    order = np.argsort(phase)
    return Calls(grid.period_ns, phase[order], (end - call)[order])


@dataclass(frozen=True)
class Grid:
    """The middle of all grids that could be, and how far the last tick's place is known, as a half width."""

    period_ns: float
    tick_ns: float
    half_width_ns: float

    def nearest_ns(self, time_ns: float) -> float:
        return self.tick_ns + round((time_ns - self.tick_ns) / self.period_ns) * self.period_ns


def enclose(low_ns: NDArray[np.float64], high_ns: NDArray[np.float64], near_ns: float) -> Grid:
    """The grids with one tick in each bracket: every period near `near_ns` that leaves room for a phase."""
    base = low_ns[0]
    number = np.round(((low_ns + high_ns) / 2 - (low_ns[0] + high_ns[0]) / 2) / near_ns)
    span = max(1.0, number[-1])
    periods = near_ns + np.linspace(-1, 1, 4001) * min(25.0 * MS / span, 0.02 * MS)
    low = (low_ns - base - 0.1 * MS - np.outer(periods, number)).max(axis=1)
    high = (high_ns - base + 0.1 * MS - np.outer(periods, number)).min(axis=1)
    room = np.maximum(high - low, 0)
    if not room.any():
        raise SystemExit("the brackets fit no grid")
    period = float(np.average(periods, weights=room))
    tick = float(np.average((low + high) / 2, weights=room))
    last = ((low + high) / 2 + number[-1] * periods)[room > 0]
    return Grid(period, base + tick, float(np.ptp(last)) / 2 + float(room.max()) / 2)


def brackets(readings: Readings, period_ns: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    begin, end, energy = (np.array(column, float) for column in zip(*readings, strict=True))
    stepped = (np.diff(energy) > 0) & (end[1:] - begin[:-1] < 0.8 * period_ns)
    return begin[:-1][stepped], end[1:][stepped]


def seldom(counter: Counter, until_ns: float, interval_s: float) -> None:
    while counter.now_ns + interval_s * 1e9 < until_ns:
        counter.sleep_until(counter.now_ns + interval_s * 1e9)
        counter.read()


def bursts(counter: Counter, session_ns: float) -> None:
    until = counter.now_ns + session_ns
    counter.read_back_to_back(START_S)
    seldom(counter, until - STOP_S * 1e9, 2.0)
    counter.read_back_to_back(STOP_S)


def locked(interval_s: float) -> Callable[[Counter, float], None]:
    def run(counter: Counter, session_ns: float) -> None:
        schedule = _native.CounterSchedule(round(interval_s * 1e9))
        until = counter.now_ns + session_ns
        schedule.track(counter.now_ns, round(counter.now_ns + TRACK_START_S * 1e9))
        counter.follow(schedule, until - TRACK_STOP_S * 1e9)
        schedule.track(counter.now_ns, round(until))
        counter.follow(schedule, until)

    return run


CADENCES: dict[str, Callable[[Counter, float], None]] = {
    "every 2 s": lambda counter, session_ns: seldom(counter, counter.now_ns + session_ns, 2.0),
    "back to back 0.6 s + 0.3 s, every 2 s": bursts,
    "schedule, visits every 2 s": locked(2.0),
    "schedule, visits every 5 s": locked(5.0),
    "schedule, visits every 10 s": locked(10.0),
}


def judge(cadence: Callable[[Counter, float], None], calls: Calls, session_s: float, trials: int) -> str:
    """One row: cost in the session's first 2 s and as a share of a core, and the error of predicted ticks."""
    errors, costs, widths = [], [], []
    for trial in range(trials):
        counter = Counter(calls, np.random.default_rng(trial))
        cadence(counter, session_s * 1e9)
        costs.append(sum(end - begin for begin, end, _ in counter.readings))
        low, high = brackets(counter.readings, calls.period_ns)
        if len(low) < 3:
            continue
        grid = enclose(low, high, calls.period_ns)
        widths.append(grid.half_width_ns / MS)
        for share in np.linspace(0, 1, 21):
            true = counter.first_tick_ns + np.round(share * session_s * 1e9 / calls.period_ns) * calls.period_ns
            errors.append((grid.nearest_ns(true) - true) / MS)
    cost = float(np.mean(costs))
    shares = f"{cost / MS:8.0f} {cost / session_s / 1e7:8.3f}"
    if len(errors) < 21 * trials / 2:
        return f"{shares}   no grid"
    rms, worst = float(np.sqrt(np.mean(np.square(errors)))), float(np.abs(errors).max())
    return f"{shares} {rms:8.2f} {np.mean(errors):+8.2f} {worst:8.2f} {np.mean(widths):8.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace", type=Path)
    parser.add_argument("--session-s", type=float, default=60.0)
    parser.add_argument("--trials", type=int, default=40)
    options = parser.parse_args()
    calls = recorded_calls(options.trace)
    what = f"{len(calls.length_ns)} calls, period {calls.period_ns / MS:.4f} ms"
    print(f"{options.trace.name}: {what}; sessions of {options.session_s:g} s")
    print(f"{'':38} {'ms CPU':>8} {'% core':>8} {'rms ms':>8} {'bias ms':>8} {'worst ms':>8} {'+- ms':>8}")
    for name, cadence in CADENCES.items():
        print(f"{name:38} {judge(cadence, calls, options.session_s, options.trials)}")


if __name__ == "__main__":
    main()
