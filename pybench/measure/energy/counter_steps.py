# SPDX-License-Identifier: Apache-2.0
"""When the energy counter stepped: its grid in time, found from readings that see it only between calls.

A counter that is updated on a fixed grid (every 100.00 ms on an H200) needs few readings. The phase of the grid comes
from those readings between which it moved. Then every reading tells the energy at the last grid time before it. A
counter without a grid gives only what each pair of readings brackets. Values are not corrected for the counter's delay.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pybench.measure.energy.trace import CounterChannel, seconds_since

FEWEST_BRACKETS = 4  # steps seen between two near readings; fewer say nothing of a grid
BRACKET_SHARE = 0.6  # of a tick: a wider bracket may hold a tick anywhere, or two
GUARD_S = 0.003  # s: a reading so near to a tick may show it or not
STRETCH = 300  # brackets whose common place is found at once: 30 s, over which two clocks drift 0.1 ms apart
FEWEST_TOGETHER = 40  # brackets that tell a place by what they all hold; the middles of fewer are averaged
FARTHEST_OUT_S = 0.001  # s: beyond, a tick outside its bracket says that the bracket is wrong
STEPS_INTO_BRACKETS = 50
PERIOD_TOLERANCE = 0.002  # 1: how far a fitted tick may lie from the expected one
LOST_SHARE = 0.1  # of a tick: a grid whose place is less sure does not tell which tick a reading shows
CLOCK_RELATIVE = 5e-5  # 1: how far two quartz clocks drift apart, where the period itself is known
AGREEING = 0.95  # 1: share of brackets that hold their tick; threads are preempted between the clock and the call
DISAGREEING = 0.02  # 1: share of readings that contradict a true grid by chance (preempted threads)


@dataclass(frozen=True, slots=True)
class CounterSteps:
    """Steps in order of time.

    time_s: float64 [n] s since the origin
    u_time_s: float64 [n] s, the standard deviation of `time_s`
    energy_j: float64 [n] J, the counter's value
    segment: int64 [n], a number that changes where the counter was reset
    tick_s: the grid's period, None without a grid
    u_phase_s: standard uncertainty of the whole grid's place
    """

    time_s: NDArray[np.float64]
    u_time_s: NDArray[np.float64]
    energy_j: NDArray[np.float64]
    segment: NDArray[np.int64]
    tick_s: float | None
    u_phase_s: float


def find_steps(
    channel: CounterChannel, origin_ns: int, tick_s: float, jitter_s: float, *, tick_is_known: bool = False
) -> CounterSteps:
    """The counter's steps.

    `tick_s`, `jitter_s`: the period that is expected, and how far ticks lie off their grid. `tick_is_known`: the period
    was measured on this board, so that the grid can be continued through seldom readings.
    """
    channel = channel.readable()
    call_s = seconds_since(origin_ns, channel.call_ns)
    return_s = seconds_since(origin_ns, channel.return_ns)
    energy_j = channel.energy_j
    segment = np.concatenate(([0], np.cumsum(np.diff(energy_j) < 0))) if len(energy_j) else np.empty(0, np.int64)
    moved = np.flatnonzero((np.diff(energy_j) != 0) & (np.diff(segment) == 0))
    width_s = return_s[moved + 1] - call_s[moved]
    tight = moved[width_s < BRACKET_SHARE * tick_s]
    # A value may be latched anywhere in its call: a bracket reaches from the old reading's begin to the new one's end.
    middle_s = (call_s[tight] + return_s[tight] + call_s[tight + 1] + return_s[tight + 1]) / 4
    u_tick_s = tick_s * (CLOCK_RELATIVE if tick_is_known else PERIOD_TOLERANCE)
    apart_s = (call_s[tight + 1] + return_s[tight + 1] - call_s[tight] - return_s[tight]) / 2
    grid = _fit_grid(middle_s, return_s[tight + 1] - call_s[tight], apart_s, tick_s, u_tick_s)
    if grid is not None:
        steps = _on_grid(grid, call_s, return_s, energy_j, segment, jitter_s)
        if steps is not None:
            return steps
    # Without a grid a value is as old as one tick at most, or as the bracket says.
    u_s = np.full(len(energy_j), tick_s / np.sqrt(12))
    time_s = (call_s + return_s) / 2 - tick_s / 2
    time_s[tight + 1], u_s[tight + 1] = middle_s, (return_s[tight + 1] - call_s[tight]) / np.sqrt(12)
    new = np.concatenate(([True], (np.diff(energy_j) != 0))) if len(energy_j) else np.empty(0, bool)
    return _in_order(time_s[new], u_s[new], energy_j[new], segment[new], None, 0.0)


def _in_order(
    time_s: NDArray[np.float64],
    u_s: NDArray[np.float64],
    energy_j: NDArray[np.float64],
    segment: NDArray[np.int64],
    tick_s: float | None,
    u_phase_s: float,
) -> CounterSteps:
    """In order of time; a step that was guessed to lie before a reset it came after moves to its segment's begin."""
    order = np.lexsort((time_s, segment))
    time_s = np.maximum.accumulate(time_s[order])
    return CounterSteps(time_s, u_s[order], energy_j[order], segment[order], tick_s, u_phase_s)


@dataclass(frozen=True, slots=True)
class _Grid:
    """Tick `n` is at begin_s + n * tick_s + the drift interpolated over `drift_at` (tick numbers)."""

    begin_s: float
    tick_s: float
    drift_at: NDArray[np.float64]
    drift_s: NDArray[np.float64]
    u_phase_s: float
    u_tick_s: float
    open_s: float  # length of what the brackets leave open of the grid's place

    def time_s(self, number: NDArray[np.float64]) -> NDArray[np.float64]:
        drift_s: NDArray[np.float64] = np.interp(number, self.drift_at, self.drift_s)
        return self.begin_s + number * self.tick_s + drift_s

    def number(self, time_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """The last tick at or before each time."""
        rough = (time_s - self.begin_s) / self.tick_s
        return np.floor((time_s - self.begin_s - np.interp(rough, self.drift_at, self.drift_s)) / self.tick_s)

    def u_s(self, number: NDArray[np.float64]) -> NDArray[np.float64]:
        """Standard uncertainty of each tick's time: the grid is only continued where no bracket is near."""
        after = np.clip(np.searchsorted(self.drift_at, number), 1, len(self.drift_at) - 1)
        away = np.minimum(np.abs(number - self.drift_at[after - 1]), np.abs(self.drift_at[after] - number))
        u_s: NDArray[np.float64] = away * self.u_tick_s
        return u_s


def _fit_grid(
    middle_s: NDArray[np.float64],
    width_s: NDArray[np.float64],
    apart_s: NDArray[np.float64],
    tick_s: float,
    u_tick_s: float,
) -> _Grid | None:
    """The grid through the brackets' middles; None where there are too few, or they do not lie on one.

    `apart_s`: from the middle of one call to that of the next. When in a call the value is taken is one constant of the
    board, which the counter's delay holds already.
    """
    if len(middle_s) < FEWEST_BRACKETS:
        return None
    # Numbers are counted from bracket to bracket, so that a period off by 0.1 % does not lose count over an hour.
    number = np.concatenate(([0.0], np.cumsum(np.round(np.diff(middle_s) / tick_s))))
    period_s = tick_s
    for _ in range(3):
        if number[-1] == 0:
            return None
        begin_s, period_s, u_period_s = _fit_line(number, middle_s, width_s / np.sqrt(12), tick_s, u_tick_s)
        number = np.round((middle_s - begin_s) / period_s)
    residual_s = middle_s - (begin_s + number * period_s)
    expected_s = float(np.sqrt(np.mean(width_s**2) / 12))
    if abs(period_s / tick_s - 1) > PERIOD_TOLERANCE or np.sqrt(np.mean(residual_s**2)) > 2 * expected_s + 0.002:
        return None
    if len(middle_s) >= FEWEST_TOGETHER:
        begin_s, period_s = _into_brackets(number, middle_s, apart_s, begin_s, period_s)
        residual_s = middle_s - (begin_s + number * period_s)
    drift_s = _drift(residual_s, apart_s)
    # Readings at a fraction of the tick always see it in the same place: their brackets do not average out. What they
    # leave open together does not shrink then, while that of readings at all phases nearly vanishes.
    low_s, high_s = _held_by_all(residual_s - drift_s, apart_s)
    open_s = max(high_s - low_s, 0.0)
    u_phase_s = max(expected_s / np.sqrt(min(len(middle_s), STRETCH)), open_s / np.sqrt(12))
    return _Grid(begin_s, period_s, number, drift_s, u_phase_s, u_period_s, open_s)


def _into_brackets(
    number: NDArray[np.float64],
    middle_s: NDArray[np.float64],
    apart_s: NDArray[np.float64],
    begin_s: float,
    period_s: float,
) -> tuple[float, float]:
    """The line moved into the brackets, then to the middle of what they leave open.

    A line through middles follows the readings: where their distance beats with the tick, hundreds of brackets in a row
    see it late. Least squares of what sticks out of a bracket, each counted at most as FARTHEST_OUT_S.
    """
    at = number - number.mean()
    line = np.array((begin_s + number.mean() * period_s, period_s))
    design = np.stack((np.ones_like(at), at), axis=1)
    scale = np.array((1.0, max(float(np.abs(at).max()), 1.0)))
    for _ in range(STEPS_INTO_BRACKETS):
        off_s = middle_s - design @ line
        out_s = np.sign(off_s) * np.clip(np.abs(off_s) - apart_s / 2, 0, FARTHEST_OUT_S)
        outside = out_s != 0
        if np.mean(outside) < 1 - AGREEING:
            break
        line += np.linalg.lstsq(design[outside] / scale, out_s[outside])[0] / scale
    low_s, high_s = _held_by_all(middle_s - design @ line, apart_s)
    line[0] += (low_s + high_s) / 2
    return float(line[0] - number.mean() * line[1]), float(line[1])


def _drift(residual_s: NDArray[np.float64], apart_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far the ticks lie off the line, at each bracket: as little as the brackets of each stretch allow."""
    count = len(residual_s)
    if count < FEWEST_TOGETHER:
        return np.zeros(count)
    stretches = np.array_split(np.arange(count), max(round(count / STRETCH), 1))
    centres, places_s = [], []
    for stretch in stretches:
        low_s, high_s = _held_by_all(residual_s[stretch], apart_s[stretch])
        centres.append(float(np.mean(stretch)))
        places_s.append((low_s + high_s) / 2 if low_s > high_s else min(max(0.0, low_s), high_s))
    drift_s: NDArray[np.float64] = np.interp(np.arange(count), centres, places_s)
    return drift_s


def _held_by_all(middle_s: NDArray[np.float64], apart_s: NDArray[np.float64]) -> tuple[float, float]:
    """Bounds of the place that AGREEING of the brackets hold, on either side; crossed where they leave nothing open."""
    low_s, high_s = middle_s - apart_s / 2, middle_s + apart_s / 2
    return float(np.quantile(low_s, AGREEING)), float(np.quantile(high_s, 1 - AGREEING))


def _fit_line(
    number: NDArray[np.float64], middle_s: NDArray[np.float64], u_s: NDArray[np.float64], tick_s: float, u_tick_s: float
) -> tuple[float, float, float]:
    """Begin, period, and the period's uncertainty: weighted least squares, with what is known of the period."""
    weight = 1 / np.maximum(u_s, 3e-5) ** 2
    at, mean_s = np.average(number, weights=weight), np.average(middle_s, weights=weight)
    told = float(np.sum(weight * (number - at) ** 2))
    known = 1 / u_tick_s**2
    period_s = float((np.sum(weight * (number - at) * (middle_s - mean_s)) + known * tick_s) / (told + known))
    return float(mean_s - period_s * at), period_s, float(1 / np.sqrt(told + known))


def _on_grid(
    grid: _Grid,
    call_s: NDArray[np.float64],
    return_s: NDArray[np.float64],
    energy_j: NDArray[np.float64],
    segment: NDArray[np.int64],
    jitter_s: float,
) -> CounterSteps | None:
    """One step for each tick that a reading shows beyond doubt; None where readings contradict the grid.

    Where the grid was continued too far to tell a reading's tick, the value is as old as one tick at most.
    """
    number = grid.number(call_s - GUARD_S)
    u_grid_s = grid.u_s(number)
    lost = u_grid_s > LOST_SHARE * grid.tick_s
    sure = (number == grid.number(return_s + GUARD_S)) & ~lost
    middle_s, open_s = (call_s + return_s) / 2, 0.499 * grid.open_s
    sure &= grid.number(middle_s - open_s) == grid.number(middle_s + open_s)
    number, value_j, part = number[sure], energy_j[sure], segment[sure]
    if len(number) == 0:
        return None
    same_tick = np.diff(number) == 0
    contradicting = np.count_nonzero(same_tick & (np.diff(value_j) != 0) & (np.diff(part) == 0))
    if contradicting > DISAGREEING * len(number) + 1:
        return None
    first = np.concatenate(([True], ~same_tick | (np.diff(part) != 0)))
    late_s = (call_s + return_s)[lost] / 2 - grid.tick_s / 2
    time_s = np.concatenate((grid.time_s(number[first]), late_s))
    u_s = np.concatenate((np.hypot(jitter_s, u_grid_s[sure][first]), np.full(len(late_s), grid.tick_s / np.sqrt(12))))
    value_j = np.concatenate((value_j[first], energy_j[lost]))
    part = np.concatenate((part[first], segment[lost]))
    return _in_order(time_s, u_s, value_j, part, grid.tick_s, grid.u_phase_s)
