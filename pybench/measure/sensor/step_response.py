# SPDX-License-Identifier: Apache-2.0
"""How samples follow a step of the board's power: delay and first-order time constant, from loads of known times.

At an edge e of a load, with levels a before and b after, a sample stamped t should read

    z(t) = (y(t) - a) / (b - a) = 1 - exp(-(t - e - delay) / response)   for t > e + delay, else 0

Only steps whose level is flat on both sides and which do not overshoot are used: a load that runs into the power cap
has no level. The fit is robust (Cauchy's loss), because some stamps are younger than their value. Uncertainties come
from leaving out one step at a time; what the model leaves over systematically is added to that of the response.
It does not look at counters or polled fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pybench.errors import InputError
from pybench.measure.sensor.estimation import Numbers, UncertainValue, leave_one_out, minimise, robust_spread

FEWEST_STEPS = 6  # of which one more than half may be left out and still fix two parameters
FEWEST_AT_LEVEL = 4  # samples that show a level flat
LEVEL_S = 0.25  # s: of the level next to a step; far levels have drifted
SETTLES_S = (0.1, 0.2, 0.4)  # s: how long a step may take; tried in this order until enough steps turn out flat
SETTLED = 6.0  # time constants after which a step has arrived within 0.25 %
UNFLAT = 0.02  # 1: of the step: drift from the first to the second half of a level, and spread around it
OVERSHOOT = 0.05  # 1: of the step, beyond its level while it settles
LEAST_SCALE = 0.005  # 1: of the step: the finest residual that is told from none
NOT_FIRST_ORDER = 0.05  # 1: of the step: a systematic residual above it means another model
LONGEST_DELAY_S = 0.2
STALE_SIGMAS = 4.0


@dataclass(frozen=True, slots=True)
class PowerStep:
    """One usable edge: its time in s, the levels in W, and until when after it the power stays level."""

    time_s: float
    before_w: float
    after_w: float
    level_until_s: float

    @property
    def height_w(self) -> float:
        return self.after_w - self.before_w


@dataclass(frozen=True, slots=True)
class Response:
    """How the sensor follows steps of power.

    stamp_jitter_s: rms age of samples in transients beyond the model's
    misfit: largest systematic residual, as a share of the step
    misfit_s: all systematic residuals as a time, which is in the response's uncertainty
    settle_s: how long a step was given
    """

    delay: UncertainValue
    response: UncertainValue
    stamp_jitter_s: float
    misfit: float
    misfit_s: float
    settle_s: float
    steps: tuple[PowerStep, ...]


def measure_response(time_s: Numbers, power_w: Numbers, loads_s: Numbers) -> Response:
    """The response of samples (float64 [n] s in order, [n] W) to loads (float64 [m, 2] s: begin and end, in order).

    Raises InputError when fewer than FEWEST_STEPS steps can be used.
    """
    found = None
    for settle_s in SETTLES_S:
        steps = find_steps(time_s, power_w, loads_s, settle_s)
        if len(steps) < FEWEST_STEPS:
            continue
        found = _fit(time_s, power_w, steps, settle_s)
        if settle_s >= found.best[0] + SETTLED * found.best[1]:
            break
    if found is None:
        raise InputError(
            f"too few usable steps of power among {2 * len(loads_s)} edges of loads: {FEWEST_STEPS} are needed",
            hint="a usable step has flat levels before and after; switch a steady load on and off for 0.3 s or more",
        )
    return _with_uncertainties(time_s, power_w, found)


def find_steps(time_s: Numbers, power_w: Numbers, loads_s: Numbers, settle_s: float) -> tuple[PowerStep, ...]:
    """The edges with a flat level on both sides, when a level begins `settle_s` after an edge."""
    edges_s = np.sort(loads_s.ravel())
    bounds_s = np.concatenate(([time_s[0] - settle_s], edges_s, [time_s[-1]])) if len(time_s) else edges_s
    steps = []
    for index, edge_s in enumerate(edges_s, start=1) if len(time_s) else ():
        previous_s, next_s = bounds_s[index - 1], bounds_s[index + 1]
        before = power_w[_between(time_s, max(previous_s + settle_s, edge_s - LEVEL_S), edge_s)]
        after = power_w[_between(time_s, edge_s + settle_s, min(next_s, edge_s + settle_s + LEVEL_S))]
        settling = power_w[_between(time_s, edge_s, edge_s + settle_s)]
        if min(len(before), len(after)) < FEWEST_AT_LEVEL:
            continue
        step = PowerStep(float(edge_s), float(before.mean()), float(after.mean()), float(next_s))
        if _is_flat(before, step.height_w) and _is_flat(after, step.height_w) and not _overshoots(settling, step):
            steps.append(step)
    return tuple(steps)


def first_order(time_s: Numbers, delay_s: float, response_s: float) -> Numbers:
    """The unit step's response at float64 [n] s after the step."""
    after_s = np.maximum(time_s - delay_s, 0.0)
    return -np.expm1(-after_s / max(response_s, 1e-6))


def _between(time_s: Numbers, begin_s: float, end_s: float) -> slice:
    return slice(int(np.searchsorted(time_s, begin_s)), int(np.searchsorted(time_s, end_s)))


def _is_flat(level_w: Numbers, height_w: float) -> bool:
    half = len(level_w) // 2
    drift_w = abs(float(level_w[:half].mean() - level_w[half:].mean()))
    return max(drift_w, float(level_w.std())) <= UNFLAT * abs(height_w)


def _overshoots(settling_w: Numbers, step: PowerStep) -> bool:
    beyond = (settling_w - step.after_w) / step.height_w
    return bool(np.any(beyond > OVERSHOOT))


@dataclass(frozen=True, slots=True)
class _ResponseFit:
    """Normalised samples around the steps, and the parameters (delay, response) in s that describe them best."""

    after_s: Numbers
    level: Numbers
    step: NDArray[np.intp]
    scale: float
    best: Numbers
    settle_s: float
    steps: Sequence[PowerStep]

    def residual(self) -> Numbers:
        """How far each sample lies above the model, as a part of the step."""
        above: Numbers = self.level - first_order(self.after_s, *self.best)
        return above


def _fit(time_s: Numbers, power_w: Numbers, steps: Sequence[PowerStep], settle_s: float) -> _ResponseFit:
    """Fits all steps together; the scale of the loss is that of the bulk's residuals, found with the fit itself."""
    after, level, step = [], [], []
    for index, each in enumerate(steps):
        near = _between(time_s, each.time_s - LEVEL_S / 10, min(each.time_s + settle_s, each.level_until_s))
        after.append(time_s[near] - each.time_s)
        level.append((power_w[near] - each.before_w) / each.height_w)
        step.append(np.full(near.stop - near.start, index))
    after_s, levels, owner = np.concatenate(after), np.concatenate(level), np.concatenate(step)
    scale = 4 * LEAST_SCALE
    best = _search(after_s, levels, scale, settle_s)
    for _ in range(3):
        best = _refine(after_s, levels, scale, best)
        moving = (after_s > best[0]) & (after_s < best[0] + 4 * best[1])
        scale = max(LEAST_SCALE, robust_spread((levels - first_order(after_s, *best))[moving]))
    return _ResponseFit(after_s, levels, owner, scale, best, settle_s, steps)


def _loss(parameters: Numbers, after_s: Numbers, level: Numbers, scale: float) -> float:
    delay_s, response_s = float(parameters[0]), float(parameters[1])
    if abs(delay_s) > LONGEST_DELAY_S or response_s <= 0:
        return float("inf")
    return float(np.sum(np.log1p(((level - first_order(after_s, delay_s, response_s)) / scale) ** 2)))


def _search(after_s: Numbers, level: Numbers, scale: float, settle_s: float) -> Numbers:
    """The best of a grid: the loss has a kink at the delay, so a simplex needs to begin near the minimum."""
    delays_s = np.linspace(0.0, min(LONGEST_DELAY_S, 0.6 * settle_s), 31)
    responses_s = np.geomspace(1e-3, settle_s / 2, 25)
    grid = [np.array((delay, response)) for delay in delays_s for response in responses_s]
    return min(grid, key=lambda each: _loss(each, after_s, level, scale))


def _refine(after_s: Numbers, level: Numbers, scale: float, start: Numbers) -> Numbers:
    step = np.array((max(0.1 * abs(start[0]), 1e-3), max(0.1 * start[1], 5e-4)))
    return minimise(lambda each: _loss(each, after_s, level, scale), start, step)


def _with_uncertainties(time_s: Numbers, power_w: Numbers, fit: _ResponseFit) -> Response:
    def without(kept: NDArray[np.bool_]) -> Numbers:
        use = kept[fit.step]
        return _refine(fit.after_s[use], fit.level[use], fit.scale, fit.best)

    u_s = leave_one_out(without, len(fit.steps))
    directions = np.array([step.height_w > 0 for step in fit.steps])
    judged = [_misfit(fit, directions == rising) for rising in (True, False)]
    misfit, misfit_s = max(each[0] for each in judged), max(each[1] for each in judged)
    return Response(
        UncertainValue(
            max(float(fit.best[0]), 0.0), float(u_s[0])
        ),  # noise may put the best fit of a prompt sensor below 0
        UncertainValue(float(fit.best[1]), float(np.hypot(u_s[1], misfit_s))),
        _stamp_jitter_s(fit),
        misfit,
        misfit_s,
        fit.settle_s,
        tuple(fit.steps),
    )


def _misfit(fit: _ResponseFit, of_steps: NDArray[np.bool_]) -> tuple[float, float]:
    """The largest systematic residual and its integral over time in s (how far it shifts a step).

    Each is in excess of what the scatter explains, over bins of half a time constant."""
    delay_s, response_s = fit.best
    residual, used = fit.residual(), of_steps[fit.step]
    number = np.floor((fit.after_s - delay_s) / (0.5 * response_s)).astype(int)
    excesses = []
    for bin_number in range(-2, 12):
        inside = residual[used & (number == bin_number)]
        if len(inside) < 5:
            continue
        median = float(np.median(inside))
        noise = 1.25 * max(robust_spread(inside), LEAST_SCALE) / np.sqrt(len(inside))
        excesses.append(max(0.0, abs(median) - 2 * noise))
    return max(excesses, default=0.0), sum(excesses) * 0.5 * float(response_s)


def _stamp_jitter_s(fit: _ResponseFit) -> float:
    """Rms age of samples in transients: of those that lag behind the model beyond its scatter, the time by which."""
    delay_s, response_s = fit.best
    moving = (fit.after_s > delay_s) & (fit.after_s < delay_s + 3 * response_s)
    if not np.any(moving):
        return 0.0
    after_s, level = fit.after_s[moving], fit.level[moving]
    late = first_order(after_s, *fit.best) - level > STALE_SIGMAS * fit.scale
    reached_s = delay_s - response_s * np.log1p(-np.clip(level, 0.0, 0.99))
    age_s = np.where(late, after_s - reached_s, 0.0)
    return float(np.sqrt(np.mean(age_s**2)))
