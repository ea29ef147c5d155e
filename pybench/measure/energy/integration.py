# SPDX-License-Identifier: Apache-2.0
"""The board's energy in any window of a trace, with two standard uncertainties, their parts, and reasons for doubt.

`fused`, the method of pybench: the driver's samples give the shape, with the sensor's delay and lag taken off. The
energy counter gives the long-run truth (native/energy_integrator.hpp has the model, docs/method/energy.md the
equations). Each parameter of the sensor that is itself uncertain is moved by its standard uncertainty, both ways, and
the larger change of the energy is that part. Without samples the counter alone is used, without a counter the samples;
both are said.
The plain methods of other tools stay available by name (`plain_methods`).

Two uncertainties: `u_within_j` is what a ratio on one board carries; `u_absolute_j` adds the board's unknown gain.
It does not average over repetitions and knows nothing of what ran.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pybench import _native
from pybench.catalogue.reasons import Reason, ReasonCode, invalidate
from pybench.catalogue.sensors import ENERGY_METHODS, FUSED
from pybench.errors import UsageError
from pybench.measure.energy.counter_steps import CounterSteps, find_steps
from pybench.measure.energy.plain_methods import (
    TRAPEZOIDS,
    WANTED_RELATIVE,
    counter_difference,
    counter_interpolated_j,
    counter_resets,
    trapezoid_j,
)
from pybench.measure.energy.profile import SensorProfile
from pybench.measure.energy.trace import CounterChannel, Numbers, SampleChannel, Times, Trace, seconds_since

SCOPE = "board"

BOARD_GAIN = 0.05  # 1: bound of a board's gain error, Yang et al.; rectangular, so u = 5 % / sqrt(3)
COUNTER_NOISE_J = 0.03  # J: counter against samples from tick to tick at constant power, two H200 recordings
TRANSIENT_S = 0.003  # s: how well a tick's time is known where power changes around it (same recordings)
GAP_PERIODS = 4.0  # of the sample period: stamps of an H200 lie up to 2.4 periods apart
DISAGREEING_SIGMAS = 3.0
DISAGREEING_RELATIVE = 0.01  # 1: samples and counter of an H200 differ by up to 0.4 % in the long run
STUCK_TICKS = 5.0
FEWEST_SAMPLES = 3
TREND_SIGMAS = 2.0
DRIFTING_RELATIVE = 0.02  # 1: more than a board's own state does; a kernel that runs into the power cap is at 5 %
SETTLING_S = 2.0  # s: in which the power of a constant load settles after rest (H200, counter: 1.5 to 3 s)


@dataclass(frozen=True, slots=True)
class WindowEnergies:
    """Energies of m windows, in the order asked.

    method: how they were found
    energy_j: float64 [m], J; NaN: not measured
    u_within_j: float64 [m], J, standard uncertainty that differs from window to window
    u_absolute_j: float64 [m], J, standard uncertainty of the number itself
    valid: bool [m]; False: not to be used
    reasons: [m], why a window is not valid, or what is doubtful about it
    parts: source -> float64 [m], standard uncertainties in J that add in squares to `u_within_j`
    """

    method: str
    energy_j: Numbers
    u_within_j: Numbers
    u_absolute_j: Numbers
    valid: NDArray[np.bool_]
    reasons: list[tuple[Reason, ...]]
    parts: Mapping[str, Numbers]


def integrate(
    trace: Trace, begin_ns: Times, end_ns: Times, profile: SensorProfile, method: str = FUSED
) -> WindowEnergies:
    """The energy of every window [begin, end): int64 [m] ns on the trace's clock, in any order, overlapping or not.

    Raises UsageError for an unknown method or a window that ends before it begins.
    """
    begin_ns, end_ns = np.asarray(begin_ns, np.int64), np.asarray(end_ns, np.int64)
    if method not in ENERGY_METHODS:
        raise UsageError(f"no method {method!r}", hint=f"choose one of {', '.join(ENERGY_METHODS)}")
    empty = np.flatnonzero(end_ns <= begin_ns)
    if len(empty):
        raise UsageError(f"window {empty[0] + 1} ends before it begins, or has no length")
    fused = method == FUSED
    energies = _fused(trace, begin_ns, end_ns, profile) if fused else _plain(trace, begin_ns, end_ns, method)
    return _with_states(energies, trace, begin_ns, end_ns)


def _plain(trace: Trace, begin_ns: Times, end_ns: Times, method: str) -> WindowEnergies:
    if method == "counter-difference":
        energy_j, u_j, why, valid = counter_difference(trace.counter, begin_ns, end_ns)
        return WindowEnergies(method, energy_j, u_j, _absolute(energy_j, u_j), valid, why, {"counter_edges": u_j})
    by_trapezoid = method in TRAPEZOIDS
    energy_j = (
        trapezoid_j(method, trace, begin_ns, end_ns)
        if by_trapezoid
        else counter_interpolated_j(trace.counter, begin_ns, end_ns)
    )
    known = np.isfinite(energy_j)
    reasons: list[tuple[Reason, ...]] = [
        (Reason(ReasonCode.PLAIN_METHOD, "the error of this method is not known"),)
        if each
        else (Reason(ReasonCode.NOT_COVERED, "the channel was not recorded over the whole window"),)
        for each in known
    ]
    if not by_trapezoid:
        reset = counter_resets(trace.counter, begin_ns, end_ns)
        known &= ~reset
        for index in np.flatnonzero(reset):
            reasons[index] += (Reason(ReasonCode.COUNTER_RESET, _TEXTS[ReasonCode.COUNTER_RESET]),)
    unknown = np.full(len(begin_ns), np.nan)
    return WindowEnergies(method, energy_j, unknown, unknown, known, reasons, {})


@dataclass(frozen=True, slots=True)
class _IntegrationPass:
    """One pass of the integrator over all windows."""

    energy_j: Numbers
    samples_j: Numbers
    interior_variance_j2: Numbers
    fused_variance_j2: Numbers
    edge_variance_j2: Numbers
    drift_w: Numbers
    drift_variance_w2: Numbers
    doubts: NDArray[np.uint32]


def _fused(trace: Trace, begin_ns: Times, end_ns: Times, profile: SensorProfile) -> WindowEnergies:
    given = _look_at(trace, begin_ns, profile)
    if given is None:
        return _nothing(len(begin_ns))
    length_s = seconds_since(0, end_ns - begin_ns)
    base, parts = _with_sensor_parts(given, begin_ns, end_ns)
    reasons = _doubt(base, parts, _board_parts(base, length_s, profile), length_s)
    if not given.by_samples:
        _take_difference(base.energy_j, parts, reasons, trace.counter, given, begin_ns, end_ns)
    parts |= _board_parts(base, length_s, profile)
    u_within_j = np.sqrt(sum((part**2 for part in parts.values()), np.zeros(len(begin_ns))))
    u_within_j[~np.isfinite(base.energy_j)] = np.nan
    assumed = profile.what_is_assumed(samples=given.by_samples, counter=len(given.steps.time_s) > 0)
    if assumed is not None:
        reasons = [(*why, Reason(ReasonCode.SENSOR_ASSUMED, assumed)) for why in reasons]
    if not given.by_samples:
        alone = Reason(ReasonCode.SAMPLES_UNREADABLE, "the driver gave no power samples, the counter alone is used")
        reasons = [(*why, alone) for why in reasons]
    _find_stuck(reasons, trace.counter, begin_ns, end_ns, profile.counter_tick_s)
    _compare_instant(reasons, trace, begin_ns, end_ns, base.energy_j)
    valid = np.array([not invalidate(why) for why in reasons], bool)
    return WindowEnergies(FUSED, base.energy_j, u_within_j, _absolute(base.energy_j, u_within_j), valid, reasons, parts)


@dataclass(frozen=True, slots=True)
class _IntegrationInput:
    """What windows are integrated from: samples (or, without them, power between the counter's ticks), the counter's
    steps, and the profile that says how late both are. Times in s are since `origin_ns`."""

    samples: SampleChannel
    steps: CounterSteps
    origin_ns: int
    profile: SensorProfile
    by_samples: bool


def _look_at(trace: Trace, begin_ns: Times, profile: SensorProfile) -> _IntegrationInput | None:
    """None where neither samples nor the counter show any power."""
    samples = trace.samples.ordered()
    by_samples = len(samples.time_ns) >= FEWEST_SAMPLES
    origin_ns = int(samples.time_ns[0]) if by_samples else int(begin_ns[0]) if len(begin_ns) else 0
    steps = find_steps(
        trace.counter,
        origin_ns,
        profile.counter_tick_s,
        profile.counter_tick_jitter_s,
        tick_is_known=profile.origin != "assumed" and "counter_tick_s" not in profile.missing,
    )
    if by_samples:
        if profile.origin == "assumed" or "sample_period_s" in profile.missing:
            # Boards differ in how often they are sampled: what is missing is told by this trace's usual distance.
            usual_s = float(np.median(np.diff(samples.time_ns))) * 1e-9
            profile = replace(profile, sample_period_s=max(profile.sample_period_s, usual_s))
        return _IntegrationInput(samples, steps, origin_ns, profile, True)
    samples = _from_counter(steps, origin_ns)
    if len(samples.time_ns) < FEWEST_SAMPLES:
        return None
    as_late_as_counter = replace(
        profile,
        sample_delay_s=profile.counter_delay_s,
        u_sample_delay_s=profile.u_counter_delay_s,
        response_s=1e-6,
        u_response_s=0.0,
        stamp_jitter_s=profile.counter_tick_s / np.sqrt(12),
        sample_period_s=profile.counter_tick_s,
    )
    return _IntegrationInput(samples, steps, origin_ns, as_late_as_counter, False)


def _with_sensor_parts(
    given: _IntegrationInput, begin_ns: Times, end_ns: Times
) -> tuple[_IntegrationPass, dict[str, Numbers]]:
    """The energies, and the parts of their uncertainty in J that come from how the board is read."""
    # In order of time, neighbours in memory are looked up one after another: three times as fast for many windows.
    order = np.argsort(begin_ns, kind="stable")
    back = np.argsort(order, kind="stable")
    sorted_s = seconds_since(given.origin_ns, begin_ns[order]), seconds_since(given.origin_ns, end_ns[order])

    def run(moved: SensorProfile, with_variances: bool = False) -> _IntegrationPass:
        table = _integrate_once(given.samples, given.steps, given.origin_ns, *sorted_s, moved, with_variances)
        return _IntegrationPass(**{name: column[back] for name, column in table.items()})

    profile = given.profile
    base = run(profile, with_variances=True)
    parts = {"sampling": np.sqrt(base.fused_variance_j2), "edges": np.sqrt(base.edge_variance_j2)}
    u_counter_s = float(np.hypot(profile.u_counter_delay_s, given.steps.u_phase_s))
    for part, name, u_s in (
        ("sensor_delay", "sample_delay_s", profile.u_sample_delay_s),
        ("sensor_response", "response_s", profile.u_response_s),
        ("counter_delay", "counter_delay_s", u_counter_s),
    ):
        parts[part] = np.zeros(len(begin_ns))
        for sign in (1, -1) if u_s > 0 else ():
            moved_s = max(getattr(profile, name) + sign * u_s, 1e-6)
            change_j = run(replace(profile, **{name: moved_s})).energy_j - base.energy_j
            parts[part] = np.maximum(parts[part], np.abs(change_j))
    return base, parts


def _board_parts(run: _IntegrationPass, length_s: Numbers, profile: SensorProfile) -> dict[str, Numbers]:
    """The parts in J that come from what the board itself does, however well it is read."""
    # Where power drifts through the window, its mean is not what the work costs later on: the level meant lies
    # anywhere between the line's two ends. What noise or bursts alone would show is taken off.
    drifted_w2 = np.maximum(run.drift_w**2 - TREND_SIGMAS**2 * run.drift_variance_w2, 0)
    return {
        "board_state": profile.state_ratio * state_share(length_s) * np.abs(np.nan_to_num(run.energy_j)),
        "drift": np.sqrt(drifted_w2 / 12) * length_s,
    }


def _integrate_once(
    samples: SampleChannel,
    steps: CounterSteps,
    origin_ns: int,
    begin_s: Numbers,
    end_s: Numbers,
    profile: SensorProfile,
    with_variances: bool,
) -> dict[str, NDArray[Any]]:
    model = _native.SensorModel(
        delay_s=profile.sample_delay_s,
        response_s=profile.response_s,
        stamp_jitter_s=profile.stamp_jitter_s,
        sample_noise_w=profile.sample_noise_w,
        counter_noise_j=COUNTER_NOISE_J,
        transient_s=TRANSIENT_S,
        longest_gap_s=GAP_PERIODS * profile.sample_period_s,
    )
    return _native.integrate_energy(
        seconds_since(origin_ns, samples.time_ns),
        samples.power_w,
        steps.time_s - profile.counter_delay_s,
        steps.u_time_s,
        steps.energy_j,
        steps.segment,
        model,
        begin_s,
        end_s,
        with_variances,
    )


def _from_counter(steps: CounterSteps, origin_ns: int) -> SampleChannel:
    """Mean power between ticks as if it were sampled: sample k holds from tick k - 1 to tick k, with no lag at all."""
    length_s = np.diff(steps.time_s)
    usable = (length_s > 0) & (np.diff(steps.segment) == 0)
    power_w = np.diff(steps.energy_j)[usable] / length_s[usable]
    time_ns = origin_ns + np.round(steps.time_s[1:][usable] * 1e9).astype(np.int64)
    return SampleChannel(time_ns, power_w).ordered()


def _take_difference(
    energy_j: Numbers,
    parts: dict[str, Numbers],
    reasons: list[tuple[Reason, ...]],
    counter: CounterChannel,
    given: _IntegrationInput,
    begin_ns: Times,
    end_ns: Times,
) -> None:
    """Puts the difference of the readings next to a window's edges in the place of what the steps between them tell,
    where those are far apart or less sure. A session reads the counter seldom but at the edges of its windows."""
    steps, apart_s = given.steps, np.diff(given.steps.time_s)
    power_w = np.diff(steps.energy_j) / np.maximum(apart_s, 1e-9) * ((apart_s > 0) & (np.diff(steps.segment) == 0))
    last = np.searchsorted(steps.time_s, seconds_since(given.origin_ns, begin_ns), "right") - 1
    before_w = power_w[np.clip(last - 1, 0, len(power_w) - 1)]
    difference_j, u_j, why, _ = counter_difference(counter, begin_ns, end_ns, given.profile.counter_tick_s, before_w)
    u_steps_j = np.sqrt(sum((part**2 for part in parts.values()), 0.0))
    parts["counter_edges"] = np.zeros(len(u_j))
    apart = np.array([any(reason.code is ReasonCode.GAP for reason in each) for each in reasons], bool)
    near = np.array([all(reason.code is not ReasonCode.COUNTER_GAP for reason in each) for each in why], bool)
    for index in np.flatnonzero(near & (u_j > 0) & (apart | ~(u_steps_j <= u_j))):
        energy_j[index], reasons[index] = difference_j[index], why[index]
        for name, part in parts.items():
            part[index] = u_j[index] if name == "counter_edges" else 0.0


def _doubt(
    run: _IntegrationPass, parts: Mapping[str, Numbers], of_board: Mapping[str, Numbers], length_s: Numbers
) -> list[tuple[Reason, ...]]:
    """Reasons of each window. `parts`: of the uncertainty, by the sensor; `of_board`: by what the board did."""
    # How short a window the sensor allows has nothing to do with what the board did in it.
    u_sensor_j = np.sqrt(sum((part**2 for part in parts.values()), 0.0))
    correction_j = run.energy_j - run.samples_j
    systematic_j2 = sum((parts[name] ** 2 for name in ("sensor_delay", "sensor_response", "counter_delay")), 0.0)
    expected_j = np.sqrt(run.interior_variance_j2 + run.fused_variance_j2 + systematic_j2)
    disagree = np.abs(correction_j) > DISAGREEING_SIGMAS * expected_j + DISAGREEING_RELATIVE * np.abs(run.energy_j)

    def text(code: ReasonCode, index: Any) -> str:
        energy_j, samples_j, long_s = run.energy_j[index], run.samples_j[index], length_s[index]
        if code is ReasonCode.WINDOW_TOO_SHORT:
            needed_s = long_s * u_sensor_j[index] / (WANTED_RELATIVE * abs(energy_j)) if energy_j else np.inf
            return f"{long_s:.3g} s, and 5 % standard uncertainty need about {needed_s:.3g} s"
        if code is ReasonCode.CHANNELS_DISAGREE:
            return (
                f"samples say {samples_j:.5g} J, with the counter {energy_j:.5g} J, and {expected_j[index]:.2g} J is "
                "their joint uncertainty"
            )
        return _TEXTS[code]

    flags = {
        ReasonCode.NOT_COVERED: run.doubts & _native.DOUBT_NOT_COVERED != 0,
        ReasonCode.GAP: run.doubts & _native.DOUBT_GAP != 0,
        ReasonCode.COUNTER_RESET: run.doubts & _native.DOUBT_COUNTER_RESET != 0,
        ReasonCode.DRIFTING: of_board["drift"] > DRIFTING_RELATIVE * np.abs(run.energy_j),
        ReasonCode.WINDOW_TOO_SHORT: u_sensor_j > WANTED_RELATIVE * np.abs(run.energy_j),
        ReasonCode.CHANNELS_DISAGREE: disagree,
        ReasonCode.COUNTER_UNREADABLE: run.doubts & _native.DOUBT_NO_COUNTER != 0,
    }
    reasons: list[list[Reason]] = [[] for _ in length_s]
    for code, flagged in flags.items():
        for index in np.flatnonzero(flagged):
            reasons[index].append(Reason(code, text(code, index)))
    return [tuple(why) for why in reasons]


_TEXTS = {
    ReasonCode.DRIFTING: "power drifts through the window: the same work costs another energy later on",
    ReasonCode.NOT_COVERED: "power was not recorded over the window",
    ReasonCode.GAP: "samples of the driver are missing inside the window",
    ReasonCode.COUNTER_RESET: "the energy counter went back inside the window",
    ReasonCode.COUNTER_UNREADABLE: "no step of the energy counter is near, the samples alone are used",
}


def _find_stuck(
    reasons: list[tuple[Reason, ...]], counter: CounterChannel, begin_ns: Times, end_ns: Times, tick_s: float
) -> None:
    """Adds a reason where the counter was read again and again inside a window and never moved: no board draws 0 W."""
    counter = counter.readable()
    if len(counter.energy_j) < 2:
        return
    last = len(counter.energy_j) - 1
    first_in = np.minimum(np.searchsorted(counter.call_ns, begin_ns), last)
    last_in = np.maximum(np.searchsorted(counter.return_ns, end_ns, "right") - 1, 0)
    apart_s = (counter.call_ns[last_in] - counter.return_ns[first_in]) * 1e-9
    still = counter.energy_j[last_in] == counter.energy_j[first_in]
    for index in np.flatnonzero(still & (apart_s > STUCK_TICKS * tick_s)):
        reasons[index] += (
            Reason(ReasonCode.COUNTER_STUCK, f"the energy counter did not move in {apart_s[index]:.3g} s"),
        )


def _compare_instant(
    reasons: list[tuple[Reason, ...]], trace: Trace, begin_ns: Times, end_ns: Times, energy_j: Numbers
) -> None:
    """Adds a reason where field 186 contradicts: a check of windows that are long against its update period."""
    instant_j = trapezoid_j("instant-trapezoid", trace, begin_ns, end_ns)
    known_w = trace.polled.instant_w[np.isfinite(trace.polled.instant_w)]
    if len(known_w) == 0:
        return
    # Two edges, each off by up to three update periods of 0.1 s (seen on an H200), at the largest change of power.
    edges_j = 0.3 * float(np.ptp(known_w))
    off = np.abs(instant_j - energy_j) > WANTED_RELATIVE * np.abs(energy_j) + edges_j
    for index in np.flatnonzero(off):
        reasons[index] += (
            Reason(ReasonCode.INSTANT_DISAGREES, f"the instantaneous field says {instant_j[index]:.5g} J"),
        )


def _with_states(energies: WindowEnergies, trace: Trace, begin_ns: Times, end_ns: Times) -> WindowEnergies:
    """Adds what the board's state says: lowered clocks (a reason only) and other processes (not our energy)."""
    seen = trace.states.seen(begin_ns, end_ns)
    reasons, valid = list(energies.reasons), energies.valid & (seen.most_processes <= 1)
    for index in np.flatnonzero(seen.throttling):
        why = ", ".join(seen.throttle_words(index))
        reasons[index] += (
            Reason(ReasonCode.THROTTLED, f"the GPU lowered its clocks for heat or power during the window ({why})"),
        )
    for index in np.flatnonzero(seen.most_processes > 1):
        reasons[index] += (Reason(ReasonCode.FOREIGN_PROCESS, "another process held the GPU during the window"),)
    return replace(energies, reasons=reasons, valid=valid)


def state_share(length_s: Numbers) -> Numbers:
    """How much of `SensorProfile.state_ratio` a window of that length carries: 1 for the shortest, 1/2 for the longest.

    Three quarters of the variance are the mean of an exponential settling over the window, one quarter (where the board
    stood before) stays however long it is.
    """
    settling = length_s / SETTLING_S
    mean = -np.expm1(-settling) / np.maximum(settling, 1e-9)
    share: Numbers = np.sqrt(0.25 + 0.75 * mean**2)
    return share


def _absolute(energy_j: Numbers, u_within_j: Numbers) -> Numbers:
    absolute_j: Numbers = np.sqrt(u_within_j**2 + (BOARD_GAIN * energy_j) ** 2 / 3)
    return absolute_j


def _nothing(count: int) -> WindowEnergies:
    unknown = np.full(count, np.nan)
    why = (Reason(ReasonCode.POWER_UNREADABLE, "neither samples nor enough counter readings were recorded"),)
    return WindowEnergies(FUSED, unknown, unknown, unknown, np.zeros(count, bool), [why] * count, {})
