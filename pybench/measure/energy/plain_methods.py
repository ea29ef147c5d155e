# SPDX-License-Identifier: Apache-2.0
"""Energy the plain ways, by name, because papers and other tools use them: trapezoids and differences, uncorrected.

    samples-trapezoid       the driver's 20 ms samples, as stamped
    instant-trapezoid       field 186 as polled
    average-trapezoid       field 185 (a one-second trailing average) as polled
    counter-difference      the energy counter's readings nearest to the two edges
    counter-interpolated    the counter's readings, interpolated to the edges

Only the counter's difference has a printed uncertainty. Its tick is T, and readings are r seconds away from an edge,
half the length of their call included. One edge is then off by a uniform share of T and of r, so

    u(E) = E / L * sqrt((T^2 + r_begin^2 + r_end^2) / 3)

as a time. A reading is old by 0 to T, which is T^2/3 in the mean of squares, and off by -r to r, which is r^2/3. At one
power, what is old at both edges cancels but for T^2/6; before a load the power is lower, so the end's T^2/3 is counted.
The others are wrong by the sensor's lag, which they do not know.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pybench.catalogue.reasons import Reason, ReasonCode, invalidate
from pybench.measure.energy.trace import CounterChannel, Numbers, Times, Trace

WANTED_RELATIVE = 0.05  # 1: a standard uncertainty above 5 % says little about precisions that differ by 15 %
ASSUMED_TICK_S = 0.1  # s: H200 (median of two recordings 0.100), as Zeus reports for other parts
FEWEST_STEPS = 5  # steps of the counter from which its tick is measured instead of assumed

TRAPEZOIDS = ("samples-trapezoid", "instant-trapezoid", "average-trapezoid")


def trapezoid_j(method: str, trace: Trace, begin_ns: Times, end_ns: Times) -> Numbers:
    """Energy in J of each window by one of `TRAPEZOIDS`; NaN where the channel does not reach over the window."""
    if method == "samples-trapezoid":
        samples = trace.samples.ordered()
        return _trapezoid_j(samples.time_ns, samples.power_w, begin_ns, end_ns)
    power_w = trace.polled.instant_w if method == "instant-trapezoid" else trace.polled.average_w
    known = np.isfinite(power_w)
    return _trapezoid_j(trace.polled.time_ns[known], power_w[known], begin_ns, end_ns)


def counter_interpolated_j(channel: CounterChannel, begin_ns: Times, end_ns: Times) -> Numbers:
    """Energy in J between the counter's readings, interpolated to the edges; NaN outside of them."""
    channel = channel.readable()
    middle_ns = (channel.call_ns + channel.return_ns) // 2
    return _difference(middle_ns, channel.energy_j, begin_ns, end_ns)


def counter_resets(channel: CounterChannel, begin_ns: Times, end_ns: Times) -> NDArray[np.bool_]:
    """For each window, whether the counter went back between the readings around it."""
    channel = channel.readable()
    if len(channel.energy_j) < 2:
        return np.zeros(len(begin_ns), bool)
    resets = np.concatenate(([0], np.cumsum(np.diff(channel.energy_j) < 0)))
    middle_ns = (channel.call_ns + channel.return_ns) // 2
    first = np.maximum(np.searchsorted(middle_ns, begin_ns, "right") - 1, 0)
    last = np.minimum(np.searchsorted(middle_ns, end_ns), len(resets) - 1)
    return np.asarray(resets[first] != resets[last], bool)


def measure_tick_s(channel: CounterChannel) -> float | None:
    """The time between two steps of the counter, in s: the median over the channel.

    None with too few steps, or when readings are so far apart that most of them see a new value: those do not show
    the tick but their own distance.
    """
    steps = np.flatnonzero(np.diff(channel.energy_j) > 0) + 1
    if len(steps) < FEWEST_STEPS or len(steps) > len(channel.energy_j) / 2:
        return None
    return float(np.median(np.diff(channel.return_ns[steps]))) * 1e-9


def counter_difference(
    channel: CounterChannel,
    begin_ns: Times,
    end_ns: Times,
    tick_s: float | None = None,
    before_w: Numbers | float = 0.0,
) -> tuple[Numbers, Numbers, list[tuple[Reason, ...]], NDArray[np.bool_]]:
    """For each window: energy in J, standard uncertainty in J, reasons, and whether the value may be used.

    `tick_s`: where it is known; else it is that of the channel. `before_w`: power before each window, which may be
    higher than in it.
    """
    channel = channel.readable()
    count = len(begin_ns)
    if len(channel.energy_j) < 2:
        nothing = np.full(count, np.nan)
        reason = Reason(ReasonCode.COUNTER_UNREADABLE, "the energy counter gave fewer than two values")
        return nothing, nothing, [(reason,)] * count, np.zeros(count, bool)
    known_tick_s = measure_tick_s(channel) if tick_s is None else tick_s
    tick_s = ASSUMED_TICK_S if known_tick_s is None else known_tick_s
    middle_ns = (channel.call_ns + channel.return_ns) // 2
    half_call_s = (channel.return_ns - channel.call_ns) * 0.5e-9
    first, last = _nearest(middle_ns, begin_ns), _nearest(middle_ns, end_ns)
    miss_begin_s = np.abs(middle_ns[first] - begin_ns) * 1e-9 + half_call_s[first]
    miss_end_s = np.abs(middle_ns[last] - end_ns) * 1e-9 + half_call_s[last]
    energy_j: Numbers = channel.energy_j[last] - channel.energy_j[first]
    length_s = (end_ns - begin_ns) * 1e-9
    edge_s = np.sqrt((tick_s**2 + miss_begin_s**2 + miss_end_s**2) / 3)
    edge_s *= np.maximum(before_w * length_s / np.maximum(np.abs(energy_j), 1e-9), 1.0)
    u_j = np.abs(energy_j) / length_s * edge_s
    reach_ns = round(tick_s * 1e9)
    outside = (begin_ns < channel.call_ns[0] - reach_ns) | (end_ns > channel.return_ns[-1] + reach_ns)
    energy_j[outside] = u_j[outside] = np.nan
    u_j[energy_j == 0] = np.nan  # a counter that did not move says nothing of the power
    resets = np.concatenate(([0], np.cumsum(np.diff(channel.energy_j) < 0)))
    reasons: list[tuple[Reason, ...]] = []
    valid = np.ones(count, bool)
    for index in range(count):
        if outside[index]:
            reasons.append((Reason(ReasonCode.NOT_COVERED, "the counter was not read over the whole window"),))
            valid[index] = False
            continue
        why = _doubts(
            length_s=length_s[index],
            edge_s=edge_s[index],
            worst_s=max(miss_begin_s[index], miss_end_s[index]),
            tick_s=tick_s,
            is_reset=resets[first[index]] != resets[last[index]],
            is_stuck=energy_j[index] == 0,
        )
        valid[index] = not invalidate(why)
        if known_tick_s is None:
            why.append(
                Reason(
                    ReasonCode.TICK_ASSUMED,
                    f"too few readings to measure the counter's tick, {ASSUMED_TICK_S} s assumed",
                )
            )
        reasons.append(tuple(why))
    return energy_j, u_j, reasons, valid


def _doubts(
    *, length_s: float, edge_s: float, worst_s: float, tick_s: float, is_reset: bool, is_stuck: bool
) -> list[Reason]:
    """Of one window. `edge_s`: the uncertainty of its edges together; `worst_s`: how far a reading is from its edge."""
    why: list[Reason] = []
    if edge_s > WANTED_RELATIVE * length_s:
        needed_s = edge_s / WANTED_RELATIVE
        detail = f"{length_s:.3g} s, and 5 % standard uncertainty need {needed_s:.3g} s"
        why.append(Reason(ReasonCode.WINDOW_TOO_SHORT, detail))
    if is_reset:
        why.append(Reason(ReasonCode.COUNTER_RESET, "the energy counter went back inside the window"))
    elif is_stuck:
        why.append(Reason(ReasonCode.COUNTER_STUCK, "the energy counter did not move in the window"))
    if worst_s > tick_s:
        detail = f"the reading nearest to an edge is up to {worst_s:.3g} s away from it"
        why.append(Reason(ReasonCode.COUNTER_GAP, detail))
    return why


def _nearest(times_ns: Times, wanted_ns: Times) -> NDArray[np.int64]:
    after = np.clip(np.searchsorted(times_ns, wanted_ns), 1, len(times_ns) - 1)
    before_is_nearer = wanted_ns - times_ns[after - 1] <= times_ns[after] - wanted_ns
    return np.asarray(after - before_is_nearer, np.int64)


def _trapezoid_j(time_ns: Times, power_w: Numbers, begin_ns: Times, end_ns: Times) -> Numbers:
    if len(time_ns) < 2:
        return np.full(len(begin_ns), np.nan)
    lengths_s = np.diff(time_ns) * 1e-9
    until_j = np.concatenate(([0.0], np.cumsum((power_w[1:] + power_w[:-1]) / 2 * lengths_s)))

    def until(edge_ns: Times) -> Numbers:
        left = np.clip(np.searchsorted(time_ns, edge_ns, "right") - 1, 0, len(time_ns) - 2)
        part_s = (edge_ns - time_ns[left]) * 1e-9
        slope = (power_w[left + 1] - power_w[left]) / lengths_s[left]
        reached: Numbers = until_j[left] + power_w[left] * part_s + slope * part_s**2 / 2
        return reached

    energy_j = until(end_ns) - until(begin_ns)
    covered = (begin_ns >= time_ns[0]) & (end_ns <= time_ns[-1])
    return np.where(covered, energy_j, np.nan)


def _difference(time_ns: Times, energy_j: Numbers, begin_ns: Times, end_ns: Times) -> Numbers:
    if len(time_ns) < 2:
        return np.full(len(begin_ns), np.nan)
    origin_ns = time_ns[0]
    at_s = (time_ns - origin_ns) * 1e-9
    begin_j, end_j = (np.interp((edge_ns - origin_ns) * 1e-9, at_s, energy_j) for edge_ns in (begin_ns, end_ns))
    covered = (begin_ns >= time_ns[0]) & (end_ns <= time_ns[-1])
    return np.where(covered, end_j - begin_j, np.nan)
