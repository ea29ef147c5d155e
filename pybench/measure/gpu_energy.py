# SPDX-License-Identifier: Apache-2.0
"""Energy of the GPU board in a window: the plain difference of NVML's energy counter, labelled as such.

The counter (`nvmlDeviceGetTotalEnergyConsumption`) steps every T, about 0.1 s on an H200, and its call takes 3 to
16 ms. At each edge the reading nearest in time is taken, so each edge misses up to T of power. Which power is not known
(idle before the window, load in it), so the error in time of the difference is anywhere in [-T, T], standard deviation
T / sqrt(3). A reading whose call of length c has its middle m away from the edge is somewhere in [-r, r] with
r = m + c / 2, at either edge. With E / L the mean power in a window of length L:

    u_within   = E / L * sqrt(T^2 / 3 + r1^2 / 3 + r2^2 / 3)
    u_absolute = sqrt(u_within^2 + (0.05 * E)^2 / 3)           the board's gain, +-5 %, rectangular (arXiv 2312.02741)

Worked example: T = 0.1 s, r1 = r2 = 5 ms, L = 2 s, E = 1000 J: u_within = 500 W * 0.0579 s = 28.9 J (2.9 %).
A window is valid when u_within / E <= 5 %: with these numbers from 1.16 s on. It corrects nothing: no sensor
delay, no interpolation, no idle baseline, no other channel.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from pybench.measure.clock import NANOSECONDS_PER_SECOND
from pybench.measure.quantity import Quantity, unmeasured
from pybench.measure.windows import Window

METRIC = "gpu_energy_j"
METHOD = "nvml-counter-difference"
SCOPE = "board"

WANTED_RELATIVE = 0.05  # 1: a standard uncertainty above 5 % says little about precisions that differ by 15 %
ASSUMED_TICK_S = 0.1  # s: H200 (median of two recordings 0.100), as Zeus reports for other parts
FEWEST_STEPS = 5  # steps of the counter from which its tick is measured instead of assumed
BOARD_GAIN = 0.05  # 1: bound of a board's gain error, Yang et al.


@dataclass(frozen=True, slots=True)
class CounterChannel:
    """The energy counter as read: arrays of one length, in order of time; energy is NaN where the read failed."""

    call_ns: NDArray[np.int64]
    return_ns: NDArray[np.int64]
    energy_j: NDArray[np.float64]

    def readable(self) -> CounterChannel:
        """Without the failed reads."""
        good = np.isfinite(self.energy_j)
        return CounterChannel(self.call_ns[good], self.return_ns[good], self.energy_j[good])


def measure_tick_s(channel: CounterChannel) -> float | None:
    """The time between two steps of the counter, in s: the median over the channel.

    None with too few steps, or when readings are so far apart that most of them see a new value: those do not show
    the tick but their own distance.
    """
    steps = np.flatnonzero(np.diff(channel.energy_j) > 0) + 1
    if len(steps) < FEWEST_STEPS or len(steps) > len(channel.energy_j) / 2:
        return None
    return float(np.median(np.diff(channel.return_ns[steps]))) / NANOSECONDS_PER_SECOND


def minimum_window_s(tick_s: float, reading_s: float, wanted_relative: float = WANTED_RELATIVE) -> float:
    """The shortest window whose relative standard uncertainty is `wanted_relative`; `reading_s` is r at either edge."""
    return _edge_time_s(tick_s, reading_s, reading_s) / wanted_relative


def counter_difference(window: Window, channel: CounterChannel) -> Quantity:
    """The energy of the board in `window`, in J, with its uncertainties; invalid, with reasons, if not to be used."""
    channel = channel.readable()
    if len(channel.energy_j) < 2:
        reason = "counter_unreadable: the energy counter gave fewer than two values"
        return unmeasured(METRIC, window.name, method=METHOD, scope=SCOPE, reasons=(reason,))
    middle_ns = (channel.call_ns + channel.return_ns) // 2
    first, last = (int(np.argmin(np.abs(middle_ns - edge))) for edge in (window.begin_ns, window.end_ns))
    energy_j = float(channel.energy_j[last] - channel.energy_j[first])
    measured_tick_s = measure_tick_s(channel)
    tick_s = ASSUMED_TICK_S if measured_tick_s is None else measured_tick_s
    misses_s = [
        (abs(int(middle_ns[index]) - edge_ns) + int(channel.return_ns[index] - channel.call_ns[index]) / 2) * 1e-9
        for index, edge_ns in ((first, window.begin_ns), (last, window.end_ns))
    ]
    edge_s = _edge_time_s(tick_s, *misses_s)

    reasons = []
    if edge_s > WANTED_RELATIVE * window.duration_s:
        shortest = edge_s / WANTED_RELATIVE
        reasons.append(
            f"window_too_short: {window.duration_s:.3g} s, and 5 % standard uncertainty need {shortest:.3g} s"
        )
    between = channel.energy_j[first : last + 1]
    if np.any(np.diff(between) < 0):
        reasons.append("counter_reset: the energy counter went back inside the window")
    elif energy_j == 0:
        reasons.append("counter_stuck: the energy counter did not move in the window")
    if max(misses_s) > tick_s:
        reasons.append(f"counter_gap: the reading nearest to an edge is up to {max(misses_s):.3g} s away from it")
    valid = not reasons
    if measured_tick_s is None:
        reasons.append(f"tick_assumed: too few readings to measure the counter's tick, {ASSUMED_TICK_S} s assumed")
    within_j = abs(energy_j) / window.duration_s * edge_s
    absolute_j = sqrt(within_j**2 + (BOARD_GAIN * energy_j) ** 2 / 3)
    return Quantity(METRIC, window.name, energy_j, "J", within_j, absolute_j, METHOD, SCOPE, valid, tuple(reasons))


def _edge_time_s(tick_s: float, first_s: float, last_s: float) -> float:
    """Standard uncertainty of the difference as a time: both edges together."""
    return sqrt((tick_s**2 + first_s**2 + last_s**2) / 3)
