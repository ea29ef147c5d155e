# SPDX-License-Identifier: Apache-2.0
"""The board's power over time, for the eye: from the driver's samples with the sensor's lag taken off, and from the
counter.

A sample y follows the board's power p through a first-order lag (time constant tau), `sample_delay_s` late. With p
constant between two samples, dt apart,

    p = (y1 - y0 q) / (1 - q),    q = exp(-dt / tau)

as in the integrator of the measuring half (docs/method/energy.md). It is computed here and not stored: it follows from
power_samples.csv and the profile in energy.json alone, and a stored copy could only disagree with them. It amplifies
the noise of a sample by (1 + q) / (1 - q) at most. No energy is computed here: that is in energy.json, with its
uncertainty.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pybench.analysis.statistics.elementary import exp_of

Numbers = NDArray[np.float64]

KNOT_SHARE = 0.1  # 1: a mean power of the counter is shown when the times of its two ends are known to 10 % of the step


@dataclass(frozen=True, slots=True)
class Steps:
    """Power that is constant from `edges_s[i, 0]` to `edges_s[i, 1]`: float64 [n, 2] s, [n] W."""

    edges_s: Numbers
    power_w: Numbers


def recover_power(samples_s: Numbers, samples_w: Numbers, delay_s: float, response_s: float) -> Steps:
    """The power that samples (float64 [n] s and W, in any order) stand for; empty for fewer than two.

    Of samples with one stamp the first counts: the driver repeats one now and then. Error: stale samples, which hold an
    older value than their stamp says, show as a pair of spikes of opposite sign.
    """
    time_s, first = np.unique(samples_s, return_index=True)
    sensed_w = samples_w[first]
    kept = exp_of(-np.diff(time_s) / response_s)
    power_w = (sensed_w[1:] - sensed_w[:-1] * kept) / (1 - kept)
    knots_s = time_s - delay_s
    return Steps(np.column_stack((knots_s[:-1], knots_s[1:])), power_w)


def counter_power(counter_s: Numbers, counter_j: Numbers, tick_s: float, delay_s: float) -> Steps:
    """Mean power between readings of the energy counter, where the readings are dense enough to tell.

    `counter_s`: float64 [n, 2] s, call and return of each reading; `counter_j`: float64 [n] in joules.

    A new value was made in the last `tick_s` before its reading returned, and not before the reading before was called.
    From one such time to the next the mean is the difference of the two values; a step is kept once both times are
    known to `KNOT_SHARE` of it. Where the counter goes back (it was reset), a new chain begins.
    """
    rises = np.flatnonzero(np.diff(counter_j) != 0) + 1
    latest_s = counter_s[rises, 1]
    earliest_s = np.maximum(counter_s[rises - 1, 0], latest_s - tick_s)
    middle_s, half_s = (earliest_s + latest_s) / 2 - delay_s, (latest_s - earliest_s) / 2
    edges: list[tuple[float, float]] = []
    power_w: list[float] = []
    knot = 0
    for index in range(1, len(rises)):
        gained_j = counter_j[rises[index]] - counter_j[rises[knot]]
        if counter_j[rises[index]] < counter_j[rises[index - 1]]:
            knot = index
            continue
        length_s = middle_s[index] - middle_s[knot]
        if np.hypot(half_s[index], half_s[knot]) <= KNOT_SHARE * length_s:
            edges.append((middle_s[knot], middle_s[index]))
            power_w.append(gained_j / length_s)
            knot = index
    return Steps(np.array(edges, np.float64).reshape(-1, 2), np.array(power_w, np.float64))
