# SPDX-License-Identifier: Apache-2.0
"""The energy counter's clockwork: the grid on which it ticks, how far ticks lie off it, how late its energy is.

The counter is read back to back; a tick lies between the last reading with the old value and the first with the new
one. The value is taken to be latched in the middle of a call. On two H200 recordings that places every tick on one grid
without a contradiction, and latching at the call's begin or end does not. The delay is the time by which the counter
must be shifted to agree with the integral of the samples, whose lag is taken off first. It agrees from a tick before a
step of power to one after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, sqrt

import numpy as np

from pybench.measure.energy.trace import CounterChannel
from pybench.measure.sensor.estimation import Numbers, UncertainValue, minimise, robust_mean, to_seconds
from pybench.measure.sensor.lag_inversion import BoardPower
from pybench.measure.sensor.step_response import PowerStep, Response

FEWEST_TICKS = 8
READINGS_A_TICK = 2.5  # fewer show the readings' own distance, not the tick
JITTERS_S = tuple(np.geomspace(1e-4, 2e-2, 16))  # s: tried for the ticks' distance from their grid
SHARPNESS = 1.702  # 1: scale of the logistic that lies within 0.01 of the normal distribution
FARTHEST_DELAY_S = 0.1
LATCH_SHARE = 0.25  # 1: of a call: the same recordings leave the latch no more room than this around the middle
SETTLED_TICKS_S = 0.03  # s after a step, beyond its response: the next tick there closes the interval


@dataclass(frozen=True, slots=True)
class TickGrid:
    """Tick `number` (0, 1, ...) is at `begin_s + number * tick.value`; `energy_j[i]` is the counter's value from tick
    `number[i]` on. `jitter_s`: standard deviation of ticks around the grid, or what the readings resolve of it."""

    begin_s: float
    tick: UncertainValue
    jitter_s: float
    number: Numbers
    energy_j: Numbers

    @property
    def time_s(self) -> Numbers:
        return self.begin_s + self.number * self.tick.value


def measure_call_s(channel: CounterChannel) -> float | None:
    """The median length of one call in s."""
    if len(channel.call_ns) == 0:
        return None
    return float(np.median(channel.return_ns - channel.call_ns)) * 1e-9


def measure_grid(channel: CounterChannel, origin_ns: int) -> TickGrid | None:
    """The grid of the counter's ticks, times in s after `origin_ns`; None where the readings do not show one."""
    channel = channel.readable()
    middle_s = (to_seconds(channel.call_ns, origin_ns) + to_seconds(channel.return_ns, origin_ns)) / 2
    moved = np.flatnonzero(np.diff(channel.energy_j) > 0)
    if len(moved) < FEWEST_TICKS or len(middle_s) < READINGS_A_TICK * len(moved):
        return None
    low_s, high_s = middle_s[moved], middle_s[moved + 1]
    found_s = (low_s + high_s) / 2
    tick_s = float(np.median(np.diff(found_s)))
    number = np.concatenate(([0.0], np.cumsum(np.round(np.diff(found_s) / tick_s))))
    for _ in range(3):
        tick_s, begin_s = np.polyfit(number, found_s, 1)
        number = np.round((found_s - begin_s) / tick_s)
    # The line's own uncertainty: that of the ticks' places within their brackets, as a fit by least squares has it.
    spread_s = float(np.std(found_s - begin_s - number * tick_s)) / np.sqrt(np.sum((number - number.mean()) ** 2))
    begin_s, tick_s, jitter_s = _most_likely(low_s, high_s, number, float(begin_s), float(tick_s))
    return TickGrid(begin_s, UncertainValue(tick_s, float(spread_s)), jitter_s, number, channel.energy_j[moved + 1])


def _most_likely(
    low_s: Numbers, high_s: Numbers, number: Numbers, begin_s: float, tick_s: float
) -> tuple[float, float, float]:
    """Begin, period and jitter (s) of the grid under which the brackets are most likely, ticks scattering around it."""
    centred = number - number.mean()
    middle_s = begin_s + number.mean() * tick_s
    span = max(float(np.abs(centred).max()), 1.0)

    def loss(place: Numbers, jitter_s: float) -> float:
        grid_s = place[0] + centred * place[1]
        inside = _logistic((high_s - grid_s) / jitter_s) - _logistic((low_s - grid_s) / jitter_s)
        return -float(np.sum(np.log(np.maximum(inside, 1e-12))))

    best = (np.inf, np.array((middle_s, tick_s)), JITTERS_S[-1])
    for jitter_s in reversed(JITTERS_S):  # from wide to narrow: each begins where the wider one ended
        step = np.array((1e-3, 1e-3 / span))
        place = minimise(lambda each, jitter_s=jitter_s: loss(each, jitter_s), best[1], step)  # type: ignore[misc]
        found = loss(place, jitter_s)
        if found < best[0]:
            best = (found, place, jitter_s)
    _, (middle_s, tick_s), jitter_s = best
    return float(middle_s - number.mean() * tick_s), float(tick_s), float(jitter_s)


def _logistic(value: Numbers) -> Numbers:
    result: Numbers = 1 / (1 + np.exp(np.clip(-SHARPNESS * value, -500, 500)))
    return result


def measure_delay(
    grid: TickGrid, board: BoardPower, steps: Sequence[PowerStep], gain: float, response: Response, call_s: float
) -> UncertainValue | None:
    """How far before a tick the energy that it shows ends; None with too few steps next to ticks.

    `gain`: samples' energy over the counter's. The value is the mean of rising and falling steps, as energy that
    either channel has in excess moves them apart. Parts of the uncertainty: half that distance, the latch's place in a
    call, and what the model of the samples leaves unexplained.
    """
    delays_s: dict[bool, list[float]] = {True: [], False: []}
    for step in steps:
        delay_s = _delay_of(step, grid, board, gain, response.response.value)
        if delay_s is not None:
            delays_s[step.height_w > 0].append(delay_s)
    rising, falling = (robust_mean(np.array(delays_s[each])) for each in (True, False))
    common_s = hypot(LATCH_SHARE * call_s / sqrt(3), response.misfit_s)  # of the latch: rectangular
    if rising is None or falling is None:
        both = robust_mean(np.array(delays_s[True] + delays_s[False]))
        return None if both is None else UncertainValue(max(both.value, 0.0), hypot(both.u, common_s))
    value_s = (rising.value + falling.value) / 2
    statistical_s = hypot(rising.u, falling.u) / 2
    apart_s = max(0.0, abs(rising.value - falling.value) - 2 * hypot(rising.u, falling.u)) / 2
    return UncertainValue(max(value_s, 0.0), sqrt(statistical_s**2 + apart_s**2 + common_s**2))


def _delay_of(step: PowerStep, grid: TickGrid, board: BoardPower, gain: float, response_s: float) -> float | None:
    """The delay at which the counter's energy across one step agrees with the samples'; None without ticks there."""
    time_s = grid.time_s
    first = int(np.searchsorted(time_s, step.time_s)) - 1
    last = int(np.searchsorted(time_s, step.time_s + SETTLED_TICKS_S + response_s))
    if first < 0 or last >= len(time_s) or time_s[last] > step.level_until_s:
        return None
    counted_j = (grid.energy_j[last] - grid.energy_j[first]) * gain
    ends_s = time_s[[first, last]]
    delay_s = 0.0
    for _ in range(
        4
    ):  # power is level at both ends, so Newton's steps with the step's height as slope converge at once
        mismatch_j = float(board.between(ends_s[:1] - delay_s, ends_s[1:] - delay_s)[0]) - counted_j
        delay_s += mismatch_j / step.height_w
        if abs(delay_s) > FARTHEST_DELAY_S:
            return None
    return delay_s


def measure_gain(grid: TickGrid, board: BoardPower, levels_s: Sequence[tuple[float, float]]) -> UncertainValue | None:
    """Samples' energy over the counter's, tick by tick inside intervals (begin, end) of constant load."""
    time_s = grid.time_s
    ratios = [np.empty(0)]
    for begin_s, end_s in levels_s:
        inside = np.flatnonzero((time_s >= begin_s) & (time_s <= end_s))
        if len(inside) > 1:
            ticks_s = time_s[inside]
            ratios.append(board.between(ticks_s[:-1], ticks_s[1:]) / np.diff(grid.energy_j[inside]))
    return robust_mean(np.concatenate(ratios))
