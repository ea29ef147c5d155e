# SPDX-License-Identifier: Apache-2.0
"""The board's power from samples that lag behind it: first order, inverted exactly for power constant between samples.

Between samples y0 and y1, dt apart, a constant power p gives y1 = p + (y0 - p) q with q = exp(-dt / response), so
p = (y1 - y0 q) / (1 - q). Where the power steps inside an interval this p puts the step too early, on average by

    dt * (1 / (1 - exp(-a)) - 1 / a - 1 / 2),  a = dt / response        about dt^2 / (12 response): 2.5 ms on an H200

so known steps are put in: at their time the sensor still shows the level before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pybench.measure.sensor.estimation import Numbers
from pybench.measure.sensor.step_response import PowerStep

SHORTEST_S = 1e-4  # s: nodes nearer than this say nothing of the power between them


@dataclass(frozen=True, slots=True)
class BoardPower:
    """Nodes in order of time: when the sensor showed what (s, as if without delay; W), and the board's energy since the
    first (J). Between nodes the power is constant."""

    time_s: Numbers
    shown_w: Numbers
    energy_j: Numbers
    response_s: float

    def between(self, begin_s: Numbers, end_s: Numbers) -> Numbers:
        """The board's energy in J in intervals, float64 [n] s each."""
        both: Numbers = np.interp(end_s, self.time_s, self.energy_j) - np.interp(begin_s, self.time_s, self.energy_j)
        return both

    def shown(self, time_s: Numbers) -> Numbers:
        """What the sensor shows of the board at float64 [...] s when it is read without delay, in W."""
        index = np.clip(np.searchsorted(self.time_s, time_s, side="right") - 1, 0, len(self.time_s) - 2)
        power_w = (self.energy_j[index + 1] - self.energy_j[index]) / (self.time_s[index + 1] - self.time_s[index])
        kept = np.exp(-np.maximum(time_s - self.time_s[index], 0.0) / self.response_s)
        value_w: Numbers = power_w + (self.shown_w[index] - power_w) * kept
        return value_w


def invert_lag(
    time_s: Numbers, power_w: Numbers, delay_s: float, response_s: float, steps: Sequence[PowerStep] = ()
) -> BoardPower:
    """The board's power from samples (float64 [n] s in order, [n] W), with the sensor's delay and lag taken off."""
    response_s = max(response_s, 1e-6)
    edge_s = np.array([step.time_s for step in steps])
    moved_s = np.concatenate((time_s - delay_s, edge_s))
    shown_w = np.concatenate((power_w, [step.before_w for step in steps]))
    order = np.argsort(moved_s, kind="stable")
    apart = np.concatenate(([True], np.diff(moved_s[order]) >= SHORTEST_S))
    order = order[apart]
    moved_s, shown_w = moved_s[order], shown_w[order]
    length_s = np.diff(moved_s)
    kept = np.exp(-length_s / response_s)
    board_w = (shown_w[1:] - shown_w[:-1] * kept) / (1 - kept)
    return BoardPower(moved_s, shown_w, np.concatenate(([0.0], np.cumsum(board_w * length_s))), response_s)
