# SPDX-License-Identifier: Apache-2.0
"""Slow twin of the energy integrator: the same model by dense Gaussian algebra, one window at a time.

The board's power follows from the samples by solving the lag from knot to knot, anew for each window, with both edges
as places where power may jump. Its integral G is compared with the counter at every step. The error of G is a Gaussian
with the covariance of a random walk that starts anywhere, C(s, t) = min(walked(s), walked(t)). What the counter says of
it is plain conditioning on all steps at once (universal kriging; Rasmussen and Williams 2006, eq. 2.41). No filter, no
smoother, no running sums, and no code of pybench.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

LEFT_INTERVALS = 2


@dataclass(frozen=True)
class Model:
    """The fields of `_native.SensorModel`."""

    delay_s: float
    response_s: float
    stamp_jitter_s: float
    sample_noise_w: float
    counter_noise_j: float
    transient_s: float
    longest_gap_s: float


@dataclass(frozen=True)
class Step:
    time_s: float
    u_time_s: float
    energy_j: float
    segment: int


def window_energy(
    times_s: Sequence[float],
    sensed_w: Sequence[float],
    steps: Sequence[Step],
    model: Model,
    begin_s: float,
    end_s: float,
) -> tuple[float, float]:
    """Energy in J and its variance in J² (of the integral, less what the counter told; the edges' not included).

    For windows whose edges lie between samples, with a whole interval inside.
    """
    knots = [time_s - model.delay_s for time_s in times_s]
    plain = _plain_power(knots, sensed_w, model)
    pieces = _pieces(knots, sensed_w, plain, model, begin_s, end_s)
    walked = _walked(knots, sensed_w, model)
    begin, end = _knot_before(knots, begin_s), _knot_before(knots, end_s)
    energy_j = _integral(pieces, begin_s, end_s)
    seen = [step for step in steps if knots[0] <= step.time_s <= knots[-1]]
    at_begin, at_end = walked[begin], walked[end]
    segment = _segment_at(seen, knots[begin])
    assert segment == _segment_at(seen, knots[end]), "the twin knows no window over a reset"
    seen = [step for step in seen if step.segment == segment]
    if not seen:
        return energy_j, at_end - at_begin

    where = np.array([np.interp(step.time_s, knots, walked) for step in seen])
    errors_j = np.array([step.energy_j - _integral(pieces, knots[0], step.time_s) for step in seen])
    noise_j2 = np.array([_step_noise(knots, plain, step, model) for step in seen])
    # Everything from the first step on, so that the algebra stays well conditioned an hour into a trace.
    origin = min(at_begin, where[0])
    where, at_begin, at_end = where - origin, at_begin - origin, at_end - origin
    inverse = np.linalg.inv(np.minimum.outer(where, where) + np.diag(noise_j2))
    ones = np.ones(len(seen))
    together = np.minimum(at_end, where) - np.minimum(at_begin, where)
    start_j = ones @ inverse @ errors_j / (ones @ inverse @ ones)
    correction_j = together @ inverse @ (errors_j - start_j)
    variance_j2 = (
        (at_end - at_begin) - together @ inverse @ together + (together @ inverse @ ones) ** 2 / (ones @ inverse @ ones)
    )
    return energy_j + float(correction_j), float(variance_j2)


def _plain_power(knots: Sequence[float], sensed_w: Sequence[float], model: Model) -> list[float]:
    return [
        _asked(sensed_w[index], sensed_w[index + 1], knots[index + 1] - knots[index], model)
        for index in range(len(knots) - 1)
    ]


def _asked(state_w: float, reached_w: float, passed_s: float, model: Model) -> float:
    """The constant power that takes the lag from one state to another in that time."""
    kept = math.exp(-passed_s / model.response_s)
    return (reached_w - state_w * kept) / (1 - kept)


def _pieces(
    knots: Sequence[float],
    sensed_w: Sequence[float],
    plain: Sequence[float],
    model: Model,
    begin_s: float,
    end_s: float,
) -> list[tuple[float, float, float]]:
    """(from, to, W): power over all of the trace, given that it may jump at the window's two edges."""
    begin = _knot_before(knots, begin_s)
    pieces: list[tuple[float, float, float]] = []
    for index, power_w in enumerate(plain):
        low_s, high_s = knots[index], knots[index + 1]
        edge_s = next((edge_s for edge_s in (begin_s, end_s) if low_s <= edge_s < high_s), None)
        first = index - LEFT_INTERVALS if edge_s == begin_s else max(index - LEFT_INTERVALS, begin + 1)
        if edge_s is None or index < 1:
            pieces.append((low_s, high_s, power_w))
            continue
        before_j = sum(plain[i] * (knots[i + 1] - knots[i]) for i in range(max(first, 0), index))
        left_w = before_j / (low_s - knots[max(first, 0)])
        state_w = left_w + (sensed_w[index] - left_w) * math.exp(-(edge_s - low_s) / model.response_s)
        pieces.append((low_s, edge_s, left_w))
        pieces.append((edge_s, high_s, _asked(state_w, sensed_w[index + 1], high_s - edge_s, model)))
    return pieces


def _integral(pieces: Sequence[tuple[float, float, float]], begin_s: float, end_s: float) -> float:
    return math.fsum(power_w * max(0.0, min(high_s, end_s) - max(low_s, begin_s)) for low_s, high_s, power_w in pieces)


def _walked(knots: Sequence[float], sensed_w: Sequence[float], model: Model) -> list[float]:
    walked = [0.0]
    for index in range(len(knots) - 1):
        length_s, change_w = knots[index + 1] - knots[index], sensed_w[index + 1] - sensed_w[index]
        variance_j2 = (model.sample_noise_w * length_s) ** 2 + (model.stamp_jitter_s * change_w) ** 2
        if length_s > model.longest_gap_s:
            variance_j2 += (0.29 * (max(sensed_w) - min(sensed_w)) * length_s) ** 2
        walked.append(walked[-1] + variance_j2)
    return walked


def _step_noise(knots: Sequence[float], plain: Sequence[float], step: Step, model: Model) -> float:
    knot = min(_knot_before(knots, step.time_s), len(plain) - 1)
    near = plain[max(knot - 2, 0) : knot + 3]
    return (
        model.counter_noise_j**2
        + (step.u_time_s * plain[knot]) ** 2
        + (model.transient_s * (max(near) - min(near))) ** 2
    )


def _knot_before(knots: Sequence[float], time_s: float) -> int:
    return max(sum(knot <= time_s for knot in knots) - 1, 0)


def _segment_at(steps: Sequence[Step], time_s: float) -> int | None:
    """Of the last step at or before a time, or of the first."""
    before = [step for step in steps if step.time_s <= time_s]
    return before[-1].segment if before else steps[0].segment if steps else None
