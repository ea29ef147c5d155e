# SPDX-License-Identifier: Apache-2.0
"""The two committed H200 recordings with what they can be judged by: joules an iteration, from the counter alone.

The reference is never the method under test. Of a kernel it is the counter over its 10 s windows, interpolated to their
edges, as the recordings' own tables have it. That reads 0.5 % low: the counter is 10 to 110 ms behind, so that rest
comes in and load is left out. Or it is the power between the counter's steps inside, times the length. Power of a load
falls short of that in its first second (0.5 to 1.5 %: temperature). So short windows are also judged by the same first
seconds of the long ones.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pybench.measure.energy.counter_steps import find_steps
from pybench.measure.energy.integration import WindowEnergies, integrate
from pybench.measure.energy.plain_methods import counter_interpolated_j
from pybench.measure.energy.profile import ASSUMED, SensorProfile
from pybench.measure.energy.trace import Trace, read_trace, seconds_since

DATA = Path(__file__).parent / "data"
NAMES = ("h200-windows", "h200-kernels")
CAPPED = "matrix_cap"  # its clocks move: joules an iteration are no constant

# What normalised steps of both recordings give (robust fit), and the counter's grid.
H200: SensorProfile = replace(
    ASSUMED,
    origin="trace",
    sample_delay_s=0.0036,
    u_sample_delay_s=0.0003,
    response_s=0.0128,
    u_response_s=0.0003,
    stamp_jitter_s=0.0015,
    counter_delay_s=0.0115,
    u_counter_delay_s=0.0005,
    counter_tick_jitter_s=0.0005,
)


@dataclass(frozen=True)
class Recording:
    """One array entry a window."""

    trace: Trace
    begin_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    nominal_s: NDArray[np.float64]
    iterations: NDArray[np.float64]
    kernel: NDArray[np.str_]

    def integrate(self, method: str = "fused", profile: SensorProfile = H200) -> WindowEnergies:
        return integrate(self.trace, self.begin_ns, self.end_ns, profile, method)


@cache
def recording(name: str) -> Recording:
    with (DATA / name / "windows.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return Recording(
        read_trace(DATA / name),
        np.array([round(float(row["start_us"]) * 1000) for row in rows]),
        np.array([round(float(row["end_us"]) * 1000) for row in rows]),
        np.array([float(row["nominal_s"]) for row in rows]),
        np.array([float(row["iterations"]) for row in rows]),
        np.array([row.get("kernel", "add") for row in rows]),
    )


@dataclass(frozen=True)
class Judged:
    """Windows of both recordings and what their energy should be, in J."""

    kernel: NDArray[np.str_]
    nominal_s: NDArray[np.float64]
    interpolated_j: NDArray[np.float64]  # by the 10 s windows, the counter interpolated to their edges
    reference_j: NDArray[np.float64]  # by the 10 s windows, the counter's power inside times their length
    settled_j: NDArray[np.float64]  # that, with the power that the kernel's long windows have in their first seconds


@cache
def judged() -> Judged:
    parts = [_judge(recording(name)) for name in NAMES]
    names = (field.name for field in fields(Judged))
    return Judged(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def _judge(recorded: Recording) -> Judged:
    counter = recorded.trace.counter
    interpolated_j = counter_interpolated_j(counter, recorded.begin_ns, recorded.end_ns)
    steps = find_steps(counter, 0, H200.counter_tick_s, H200.counter_tick_jitter_s)
    time_s = steps.time_s - H200.counter_delay_s
    begin_s, end_s = seconds_since(0, recorded.begin_ns), seconds_since(0, recorded.end_ns)

    def power_w(from_s: float, to_s: float) -> float:
        """Between the first and the last step within."""
        inside = np.flatnonzero((time_s >= from_s) & (time_s <= to_s))
        first, last = inside[0], inside[-1]
        return float((steps.energy_j[last] - steps.energy_j[first]) / (time_s[last] - time_s[first]))

    answers = np.full((3, len(begin_s)), np.nan)
    for kernel in np.unique(recorded.kernel):
        of_kernel = recorded.kernel == kernel
        longest = np.flatnonzero(of_kernel & (recorded.nominal_s == 10))
        whole_w = np.array([power_w(begin_s[each], end_s[each]) for each in longest])
        by_iteration_j = (
            np.mean(interpolated_j[longest] / recorded.iterations[longest]),
            np.mean(whole_w * (end_s - begin_s)[longest] / recorded.iterations[longest]),
        )
        for length_s in np.unique(recorded.nominal_s[of_kernel]):
            chosen = of_kernel & (recorded.nominal_s == length_s)
            # 0.5 s at least, because a step knows its time to a millisecond only.
            first_w = [
                power_w(begin_s[each], begin_s[each] + max(length_s, 0.5))
                for each in np.flatnonzero(of_kernel & (recorded.nominal_s >= max(length_s, 5)))
            ]
            settling = float(np.mean(first_w) / np.mean(whole_w))
            for row, each_j in enumerate((*by_iteration_j, by_iteration_j[1] * settling)):
                answers[row, chosen] = each_j * recorded.iterations[chosen]
    return Judged(recorded.kernel, recorded.nominal_s, *answers)
