# SPDX-License-Identifier: Apache-2.0
"""What a kernel's iterations cost by the energy counter alone: the reference that methods are judged against.

Windows of 5 s and more are long against the counter's period; the board is idle before each. The counter shows the
energy of the board's power through a first-order lag (10 ms on an H200), so in steady power the energy of some time
ago. Within a few lags of a window's begin no tick is used. From the idle power before a window comes the energy at its
begin, from the ticks inside it the energy after any number of iterations. Two references:

    long    joules an iteration over windows of 10 s: energy should be proportional to work
    first   joules an iteration over a kernel's first L seconds after rest, which a window of L seconds repeats

The kernel's own variation is what these windows say of it, too: how far its first L seconds are from each reference,
for temperature and clocks are others then.

No sample of the driver's buffer and no polled power is looked at. A kernel that alternates as slowly as the counter
ticks (`ALTERNATING`) draws two powers; both are found by least squares over all its ticks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.energy.recording import Recording
from pybench.measure.energy.counter_steps import find_steps
from pybench.measure.energy.profile import SensorProfile
from pybench.measure.energy.trace import Numbers

LONG_S = 10.0
LONG_ENOUGH_S = 5.0  # for the first seconds of a load
LAGS = 5  # after which a first-order lag has settled to 0.7 %
IDLE_TICKS = 3
ALTERNATING = {"bursts_50": 0.5}  # share of an iteration, from its begin, that draws the higher power
FEWEST_FOR_SPREAD = 2


@dataclass(frozen=True, slots=True)
class Reference:
    """In J an iteration, each by kernel or by kernel and length.

    The variations are a kernel's own: its first seconds in each long window, against the reference; standard deviation
    and root mean square, relative, NaN from fewer than FEWEST_FOR_SPREAD windows.
    """

    long_j: dict[str, float]
    first_j: dict[tuple[str, float], float]
    first_variation: dict[tuple[str, float], float]
    long_variation: dict[tuple[str, float], float]


@dataclass(frozen=True, slots=True)
class _Load:
    """One long window, times in s after its begin. Ticks inside, with the energy since the begin that each stands for
    if power were steady; marks of the work done."""

    kernel: str
    nominal_s: float
    tick_s: Numbers
    energy_j: Numbers
    mark_s: Numbers
    done: Numbers


@dataclass(frozen=True, slots=True)
class _Curve:
    """Energy of a long window after some iterations: float64 [n] each."""

    kernel: str
    nominal_s: float
    mark_s: Numbers
    done: Numbers
    energy_j: Numbers

    def an_iteration_j(self, length_s: float) -> float:
        """Over the iterations of the first `length_s`: whole ones, where one is a good part of that."""
        done = float(np.interp(length_s, self.mark_s, self.done))
        done = max(round(done), 1) if self.kernel in ALTERNATING else done
        return float(np.interp(done, self.done, self.energy_j)) / done


def find_reference(recordings: list[Recording], profile: SensorProfile, lengths_s: list[float]) -> Reference:
    """`profile`: of the board of all `recordings`; only what it says of the counter is used."""
    loads = [load for recording in recordings for load in _loads(recording, profile)]
    curves = [
        curve
        for kernel in sorted({load.kernel for load in loads})
        for curve in _curves([load for load in loads if load.kernel == kernel], profile.counter_delay_s)
    ]
    long_j, first_j, first_variation, long_variation = {}, {}, {}, {}
    for kernel in sorted({curve.kernel for curve in curves}):
        mine = [curve for curve in curves if curve.kernel == kernel]
        longest = [curve.energy_j[-1] / curve.done[-1] for curve in mine if curve.nominal_s >= LONG_S]
        if longest:
            long_j[kernel] = float(np.mean(longest))
        for length_s in lengths_s:
            # A window of 5 s is no reference for windows of 5 s.
            figures = [curve.an_iteration_j(length_s) for curve in mine if curve.nominal_s > length_s]
            if figures:
                key = kernel, length_s
                first_j[key] = float(np.mean(figures))
                known = len(figures) >= FEWEST_FOR_SPREAD
                first_variation[key] = float(np.std(figures, ddof=1)) / first_j[key] if known else np.nan
                apart = np.array(figures) / long_j[kernel] - 1 if longest else np.full(1, np.nan)
                long_variation[key] = float(np.sqrt(np.mean(apart**2))) if known else np.nan
    return Reference(long_j, first_j, first_variation, long_variation)


def _loads(recording: Recording, profile: SensorProfile) -> list[_Load]:
    """The recording's long windows."""
    origin_ns = int(recording.trace.counter.call_ns[0])
    steps = find_steps(
        recording.trace.counter, origin_ns, profile.counter_tick_s, profile.counter_tick_jitter_s, tick_is_known=True
    )
    tick_s, energy_j = steps.time_s - profile.counter_delay_s, steps.energy_j
    windows, loads = recording.windows, []
    for index in np.flatnonzero(windows.nominal_s >= LONG_ENOUGH_S):
        begin_s, end_s = ((edge[index] - origin_ns) * 1e-9 for edge in (windows.begin_ns, windows.end_ns))
        before = int(np.searchsorted(tick_s, begin_s)) - 1
        first = int(np.searchsorted(tick_s, begin_s + LAGS * profile.counter_delay_s))
        last = int(np.searchsorted(tick_s, end_s))
        if before < IDLE_TICKS or last - first < 2:
            continue
        idle = slice(before - IDLE_TICKS, before + 1)
        idle_w = (energy_j[idle][-1] - energy_j[idle][0]) / (tick_s[idle][-1] - tick_s[idle][0])
        begin_j = energy_j[before] + idle_w * (begin_s - tick_s[before])
        mark_s, done = recording.progress[index]
        loads.append(
            _Load(
                str(windows.kernel[index]), float(windows.nominal_s[index]), tick_s[first:last] - begin_s,
                energy_j[first:last] - begin_j, mark_s - origin_ns * 1e-9 - begin_s, done,
            )
        )  # fmt: skip
    return loads


def _curves(loads: list[_Load], lag_s: float) -> list[_Curve]:
    """Of one kernel's long windows."""
    share = ALTERNATING.get(loads[0].kernel)
    if share is not None:
        return _alternating_curves(loads, share, lag_s)
    curves = []
    for load in loads:
        done = np.concatenate(([0.0], np.interp(load.tick_s, load.mark_s, load.done)))
        at_s = np.concatenate(([0.0], load.tick_s))
        energy_j = np.concatenate(([0.0], load.energy_j))
        curves.append(_Curve(load.kernel, load.nominal_s, at_s, done, energy_j))
    return curves


def _alternating_curves(loads: list[_Load], share: float, lag_s: float) -> list[_Curve]:
    """Energy at whole iterations: that of the two powers, and what the ticks around say beside it."""
    times = [_time_in_each_phase(load, share) for load in loads]
    # The counter sees both phases through its lag; a tick stands for a time one lag earlier.
    seen = [_lagged(load, phases, lag_s) for load, phases in zip(loads, times, strict=True)]
    # From the begin to the first tick too: where the tick keeps step with the kernel, only that tells the powers apart.
    powers_w = np.linalg.lstsq(
        np.concatenate([np.diff(each, axis=0, prepend=0.0) for each in seen]),
        np.concatenate([np.diff(load.energy_j, prepend=0.0) for load in loads]),
    )[0]
    curves = []
    for load, phases, at_ticks in zip(loads, times, seen, strict=True):
        whole = np.arange(0.0, np.floor(load.done[-1]) + 1)
        mark_s = np.interp(whole, load.done, load.mark_s)
        model_j = np.stack([np.interp(mark_s, load.mark_s, phase) for phase in phases.T], axis=1) @ powers_w
        beside_j = np.interp(mark_s, np.append(0.0, load.tick_s), np.append(0.0, load.energy_j - at_ticks @ powers_w))
        curves.append(_Curve(load.kernel, load.nominal_s, mark_s, whole, model_j + beside_j))
    return curves


def _time_in_each_phase(load: _Load, share: float) -> NDArray[np.float64]:
    """Seconds spent in the first and in the second phase until each mark: float64 [marks, 2]."""
    high = np.mod(load.done[:-1] + 1e-9, 1) < share - 1e-6
    lengths_s = np.diff(load.mark_s)
    spent = np.stack([lengths_s * high, lengths_s * ~high], axis=1)
    return np.concatenate((np.zeros((1, 2)), np.cumsum(spent, axis=0)))


def _lagged(load: _Load, phases: NDArray[np.float64], lag_s: float) -> NDArray[np.float64]:
    """Seconds in each phase as the counter's lag shows them at the ticks: float64 [ticks, 2]."""
    step_s = 0.001
    at_s = np.arange(0.0, load.mark_s[-1] + step_s, step_s)
    rates = np.diff([np.interp(at_s, load.mark_s, phase) for phase in phases.T], axis=1) / step_s
    kept = np.exp(-step_s / lag_s)
    shown = np.zeros((2, len(at_s)))
    for index in range(rates.shape[1]):
        shown[:, index + 1] = shown[:, index] * kept + rates[:, index] * (1 - kept)
    until = np.concatenate((np.zeros((2, 1)), np.cumsum(shown[:, 1:], axis=1)), axis=1) * step_s
    return np.stack([np.interp(load.tick_s + lag_s, at_s, each) for each in until], axis=1)
