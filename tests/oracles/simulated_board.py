# SPDX-License-Identifier: Apache-2.0
"""A board whose power is known exactly, and what its sensor would have recorded of it.

Power is constant between changes. The sensor is a first-order lag y' = (p - y) / response, solved in closed form, read
`sample_delay_s` later at irregular stamps. The counter steps on its grid to the exact energy spent until
`counter_delay_s` before. It shares no code with what it judges. Noise, stale stamps and rounding are added only where
asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pybench.measure.energy.profile import SensorProfile
from pybench.measure.energy.trace import CounterChannel, SampleChannel, Trace

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class SimulatedBoard:
    """`power_w[i]` holds from `change_s[i]` on; the first holds before its time, too."""

    change_s: Numbers
    power_w: Numbers

    def energy_j(self, begin_s: Numbers, end_s: Numbers) -> Numbers:
        """Exact."""
        return self._until_j(np.asarray(end_s)) - self._until_j(np.asarray(begin_s))

    def sensed_w(self, time_s: Numbers, response_s: float) -> Numbers:
        """The lag's state at each time; it rests at the first power before the first change."""
        states = [self.power_w[0]]
        for index in range(1, len(self.change_s)):
            passed_s = self.change_s[index] - self.change_s[index - 1]
            power_w = self.power_w[index - 1]
            states.append(power_w + (states[-1] - power_w) * np.exp(-passed_s / response_s))
        last = self._piece(time_s)
        since_s = np.maximum(time_s - self.change_s[last], 0.0)
        return self.power_w[last] + (np.array(states)[last] - self.power_w[last]) * np.exp(-since_s / response_s)

    def trace(
        self,
        length_s: float,
        profile: SensorProfile,
        generator: np.random.Generator,
        *,
        noise_w: float = 0.0,
        stale_share: float = 0.0,
        tick_phase_s: float = 0.02,
        tick_jitter_s: float = 0.0,
        read_every_s: float = 0.0066,
        call_s: float = 0.0025,
    ) -> Trace:
        """What is recorded from 0 to `length_s`: stamps 7 to 33 ms apart, a reading of the counter every few ms.

        `stale_share` of the samples show the value of up to 20 ms before their stamp, so that a `stamp_jitter_s` of
        sqrt(stale_share * 0.02^2 / 3) describes them.
        """
        stamps_s = np.cumsum(generator.uniform(0.007, 0.033, round(length_s / 0.02 * 1.1)))
        stamps_s = stamps_s[stamps_s < length_s]
        stale = generator.random(len(stamps_s)) < stale_share
        age_s = profile.sample_delay_s + np.where(stale, generator.uniform(0, 0.02, len(stamps_s)), 0.0)
        sensed_w = self.sensed_w(stamps_s - age_s, profile.response_s)
        sensed_w = sensed_w + generator.normal(0, noise_w, len(stamps_s)) if noise_w else sensed_w
        ticks_s = np.arange(tick_phase_s, length_s, profile.counter_tick_s)
        ticks_s = np.sort(ticks_s + generator.normal(0, tick_jitter_s, len(ticks_s))) if tick_jitter_s else ticks_s
        shown_j = 1000 + self._until_j(ticks_s - profile.counter_delay_s)
        calls_s = np.arange(0.001, length_s, read_every_s)
        latched = np.searchsorted(ticks_s, calls_s + call_s / 2, "right") - 1
        counter_j = np.where(latched >= 0, shown_j[np.maximum(latched, 0)], 1000.0)
        return Trace(
            samples=SampleChannel(to_ns(stamps_s), sensed_w),
            counter=CounterChannel(to_ns(calls_s), to_ns(calls_s + call_s), counter_j),
        )

    def _piece(self, time_s: Numbers) -> NDArray[np.intp]:
        return np.maximum(np.searchsorted(self.change_s, time_s, "right") - 1, 0)

    def _until_j(self, time_s: Numbers) -> Numbers:
        """Energy since the first change (negative before)."""
        whole_j = np.concatenate(([0.0], np.cumsum(self.power_w[:-1] * np.diff(self.change_s))))
        piece = self._piece(time_s)
        return whole_j[piece] + self.power_w[piece] * (time_s - self.change_s[piece])


def to_ns(time_s: Numbers) -> NDArray[np.int64]:
    return np.round(np.asarray(time_s) * 1e9).astype(np.int64)


def bursts(
    begin_s: Numbers, end_s: Numbers, load_w: Numbers, idle_w: float = 120.0, first_s: float = 0.0
) -> SimulatedBoard:
    """Idle but for the windows, each at a power of its own."""
    change_s, power_w = [first_s], [idle_w]
    for begin, end, power in zip(begin_s, end_s, load_w, strict=True):
        change_s += [begin, end]
        power_w += [power, idle_w]
    return SimulatedBoard(np.array(change_s), np.array(power_w))
