# SPDX-License-Identifier: Apache-2.0
"""The polled power fields: how often each is refreshed, how late the instant one is, how long the average one averages.

A refresh is seen as a change between two polls and placed in their middle. The instant field (186) is compared with the
samples some time before its refresh. The average field (185) is compared with the samples' mean over a window that ends
there. The time and the window that fit best are the answers. Uncertainties come from leaving out one part of the
recording at a time. On an H200 the instant field repeats samples of varying age, which its uncertainty then shows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import hypot, sqrt

import numpy as np

from pybench.measure.energy.trace import SampleChannel
from pybench.measure.sensor.estimation import Numbers, UncertainValue, leave_one_out, to_seconds
from pybench.measure.sensor.lag_inversion import BoardPower

FEWEST_REFRESHES = 12
POLLS_A_REFRESH = 2.5  # fewer show the polls' own distance
PARTS = 10  # of the recording, each left out once
OLDEST_S = 0.5  # s: of an instant value
DELAYS_S: Numbers = np.arange(0.0, OLDEST_S, 0.0005)
WINDOWS_S: Numbers = np.geomspace(0.01, 3.0, 60)  # s: the published ones are 0.01 to 1 s (arXiv 2312.02741)
WINDOW_ZOOM = (0.01, 0.0005)  # 1: relative steps of the two finer searches
ZOOM_REACH = 25  # steps either way: beyond the next candidate of the search before
LEAST_SCALE_W = 1.0


@dataclass(frozen=True, slots=True)
class Refreshes:
    """When a field changed (float64 [n] s), to what (W), and how far apart the polls are (s)."""

    time_s: Numbers
    power_w: Numbers
    poll_s: float

    def period(self) -> UncertainValue | None:
        """The time between two refreshes; None where polls or changes are too few to see it."""
        between_s = np.diff(self.time_s)
        if len(between_s) < FEWEST_REFRESHES:
            return None
        usual_s = float(np.median(between_s))
        if usual_s < POLLS_A_REFRESH * self.poll_s:
            return None
        counts = np.maximum(np.round(between_s / usual_s), 1)  # equal values hide a refresh
        u_s = float(np.std(between_s / counts)) / sqrt(len(between_s))
        return UncertainValue(float(between_s.sum() / counts.sum()), u_s)


def find_refreshes(time_s: Numbers, power_w: Numbers) -> Refreshes:
    """The changes of a polled field, float64 [n] s and W; readings that failed (NaN) are left out."""
    known = np.isfinite(power_w)
    time_s, power_w = time_s[known], power_w[known]
    changed = np.flatnonzero(np.diff(power_w) != 0)
    poll_s = float(np.median(np.diff(time_s))) if len(time_s) > 1 else 0.0
    return Refreshes((time_s[changed] + time_s[changed + 1]) / 2, power_w[changed + 1], poll_s)


def measure_instant_delay(refreshes: Refreshes, board: BoardPower) -> UncertainValue | None:
    """How late the instant field is at its refresh, in the sense of the samples' own delay; None with too few."""
    at_s, shown_w = _inside(refreshes, board.time_s, OLDEST_S)
    if len(at_s) < FEWEST_REFRESHES:
        return None
    wrong_w = shown_w[:, None] - board.shown(at_s[:, None] - DELAYS_S[None, :])
    delay = _best_with_uncertainty(_cost(wrong_w, float(np.ptp(board.shown_w))), DELAYS_S)
    return UncertainValue(delay.value, hypot(delay.u, refreshes.poll_s / sqrt(12)))


def measure_window(refreshes: Refreshes, samples: SampleChannel, origin_ns: int) -> UncertainValue | None:
    """The length over which the average field averages; None with too few refreshes, or where nothing fits."""
    time_s, power_w = to_seconds(samples.time_ns, origin_ns), samples.power_w
    at_s, shown_w = _inside(refreshes, time_s, float(WINDOWS_S[-1]))
    if len(at_s) < FEWEST_REFRESHES:
        return None
    summed_j = np.concatenate(([0.0], np.cumsum((power_w[1:] + power_w[:-1]) / 2 * np.diff(time_s))))

    def wrong(windows_s: Numbers) -> Numbers:
        begin_j = np.interp(at_s[:, None] - windows_s[None, :], time_s, summed_j)
        off: Numbers = shown_w[:, None] - (np.interp(at_s, time_s, summed_j)[:, None] - begin_j) / windows_s
        return off

    return _zoom(wrong, float(np.ptp(power_w)), refreshes.poll_s)


def _zoom(wrong: Callable[[Numbers], Numbers], range_w: float, poll_s: float) -> UncertainValue:
    """The best window on a coarse grid, then on two finer ones around it."""
    windows_s = WINDOWS_S
    for relative in WINDOW_ZOOM:
        cost = _cost(wrong(windows_s), range_w)
        best_s = windows_s[int(np.argmin(cost.sum(axis=0)))]
        windows_s = best_s * (1 + relative * np.arange(-ZOOM_REACH, ZOOM_REACH + 1))
    found = _best_with_uncertainty(_cost(wrong(windows_s), range_w), windows_s)
    step_s = WINDOW_ZOOM[-1] * found.value / sqrt(12)
    # A refresh lies anywhere between two polls, on average in their middle: what remains is the mean's uncertainty.
    return UncertainValue(found.value, sqrt(found.u**2 + step_s**2 + (poll_s / 4) ** 2 / 3))


def _inside(refreshes: Refreshes, time_s: Numbers, reach_s: float) -> tuple[Numbers, Numbers]:
    """The refreshes that lie inside the samples, `reach_s` after their begin."""
    if len(time_s) == 0:
        return np.empty(0), np.empty(0)
    inside = (refreshes.time_s > time_s[0] + reach_s) & (refreshes.time_s < time_s[-1])
    return refreshes.time_s[inside], refreshes.power_w[inside]


def _cost(wrong_w: Numbers, range_w: float) -> Numbers:
    """Cauchy's loss of float64 [refresh, candidate]; its scale is a hundredth of the range that power went through."""
    cost: Numbers = np.log1p((wrong_w / max(LEAST_SCALE_W, 0.01 * range_w)) ** 2)
    return cost


def _best_with_uncertainty(cost: Numbers, candidates: Numbers) -> UncertainValue:
    """The candidate with the least cost over all refreshes, and how far leaving out parts of them moves it."""
    part = np.arange(len(cost)) * PARTS // len(cost)
    by_part = np.array([cost[part == each].sum(axis=0) for each in range(PARTS)])
    best = float(candidates[int(np.argmin(by_part.sum(axis=0)))])
    u = leave_one_out(lambda kept: candidates[[int(np.argmin(by_part[kept].sum(axis=0)))]], PARTS)
    return UncertainValue(best, float(u[0]))
