# SPDX-License-Identifier: Apache-2.0
"""A board's sensor profile from a recording: every channel, and when loads were known to be switched on and off.

The parts: `step_response` (delay and lag of the driver's samples), `counter_timing` (ticks, delay and gain of the
energy counter), `field_timing` (the polled fields). It follows what Yang et al. (SC'24, arXiv 2312.02741) measured of
polled fields, and adds the sample buffer and the counter, which they did not use. It runs no load, opens no device.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pybench.catalogue.reasons import Reason, ReasonCode
from pybench.errors import InputError
from pybench.measure.energy.profile import (
    ASSUMED,
    NEVER_NULL,
    SensorProfile,
)
from pybench.measure.energy.trace import SampleChannel, Trace
from pybench.measure.sensor import counter_timing, field_timing
from pybench.measure.sensor.estimation import Numbers, UncertainValue, robust_spread, to_seconds
from pybench.measure.sensor.lag_inversion import BoardPower, invert_lag
from pybench.measure.sensor.step_response import NOT_FIRST_ORDER, Response, measure_response

FEWEST_SAMPLES = 50
GAP = 3.0  # 1: of the usual distance of samples; a longer one is a hole in the recording, not a period
LEVEL_AFTER_S = 0.4  # s after a load began: clocks and currents have settled
LEVEL_CHUNK_S = 0.5  # s: over which noise is told from drift
LONG_LOAD_S = 1.0


@dataclass(frozen=True, slots=True)
class RecordedBoard:
    """Whose recording it is. `measured_at`: UTC, ISO 8601."""

    uuid: str | None = None
    driver: str | None = None
    name: str | None = None
    measured_at: str | None = None


def characterise(
    trace: Trace, loads_ns: NDArray[np.int64], board: RecordedBoard = RecordedBoard(), *, live: bool = False
) -> SensorProfile:
    """The profile that `trace` shows. `loads_ns`: int64 [n, 2] begin and end of each load, on the trace's clock.

    A channel that is missing leaves its numbers null (see SensorProfile), with a reason. `live`: whether it was
    recorded just now, for `origin`. Raises InputError when the samples are there but show too few usable steps of
    power, when the loads are no intervals in order, or when no channel has rows.
    """
    loads_ns = np.asarray(loads_ns, np.int64).reshape(-1, 2)
    if np.any(np.diff(loads_ns.ravel()) <= 0):
        raise InputError("the loads are not intervals in order of time", hint="each must end before the next begins")
    samples, counter = trace.samples.ordered(), trace.counter.readable()
    first = [int(times[0]) for times in (samples.time_ns, counter.call_ns, trace.polled.time_ns) if len(times)]
    if not first:
        raise InputError("the recording is empty: no samples, no counter, no polled fields")
    found = _ProfileDraft(min(first), to_seconds(loads_ns, min(first)))
    response = _measure_samples(found, samples)
    power = None if response is None else _board_power(found, samples, response)
    _measure_counter(found, trace, response, power)
    _measure_fields(found, trace, samples, power)
    missing = tuple(name for name in NEVER_NULL if name not in found.values)
    stand_ins = {name: getattr(ASSUMED, name) for name in missing}
    return SensorProfile(
        uuid=board.uuid,
        driver=board.driver,
        name=board.name,
        measured_at=board.measured_at,
        origin="measured" if live else "trace",
        missing=missing,
        reasons=tuple(found.reasons),
        **stand_ins,
        **found.values,
    )


class _ProfileDraft:
    """What is known so far: entries of a profile, reasons, and the loads in s after the recording's origin."""

    def __init__(self, origin_ns: int, loads_s: Numbers) -> None:
        self.origin_ns = origin_ns
        self.loads_s = loads_s
        self.values: dict[str, Any] = {}
        self.reasons: list[Reason] = []

    def seconds(self, times_ns: NDArray[np.int64]) -> Numbers:
        return to_seconds(times_ns, self.origin_ns)

    def put(self, name: str, estimate: UncertainValue | None) -> None:
        """A value and its uncertainty, where there is one."""
        if estimate is not None:
            self.values |= {name: estimate.value, f"u_{name}": estimate.u}

    def levels_s(self, shortest_s: float) -> list[tuple[float, float]]:
        """The settled part of each load that lasts at least so long."""
        settled = [(begin + LEVEL_AFTER_S, end) for begin, end in self.loads_s]
        return [(begin, end) for begin, end in settled if end - begin >= shortest_s]


def _measure_samples(found: _ProfileDraft, samples: SampleChannel) -> Response | None:
    if len(samples.time_ns) < FEWEST_SAMPLES:
        found.reasons.append(
            Reason(ReasonCode.SAMPLES_UNREADABLE, f"the driver's buffer gave {len(samples.time_ns)} power samples")
        )
        return None
    time_s, power_w = found.seconds(samples.time_ns), samples.power_w
    found.put("sample_period_s", _period(time_s))
    noise_w = _noise(time_s, power_w, found.levels_s(LEVEL_CHUNK_S))
    if noise_w is not None:
        found.values["sample_noise_w"] = noise_w
    response = measure_response(time_s, power_w, found.loads_s)
    found.put("sample_delay_s", response.delay)
    found.put("response_s", response.response)
    found.values |= {"stamp_jitter_s": response.stamp_jitter_s, "steps": len(response.steps)}
    if response.misfit > NOT_FIRST_ORDER:
        found.reasons.append(
            Reason(
                ReasonCode.NOT_FIRST_ORDER,
                f"a delay and a first-order lag leave up to {response.misfit:.1%} of a step unexplained; "
                "the uncertainty of the response includes it",
            )
        )
    return response


def _board_power(found: _ProfileDraft, samples: SampleChannel, response: Response) -> BoardPower:
    time_s = found.seconds(samples.time_ns)
    return invert_lag(time_s, samples.power_w, response.delay.value, response.response.value, response.steps)


def _measure_counter(found: _ProfileDraft, trace: Trace, response: Response | None, board: BoardPower | None) -> None:
    counter = trace.counter.readable()
    if len(counter.call_ns) == 0:
        found.reasons.append(Reason(ReasonCode.COUNTER_UNREADABLE, "the energy counter was not read"))
        return
    call_s = counter_timing.measure_call_s(counter)
    found.values["counter_call_s"] = call_s
    grid = counter_timing.measure_grid(counter, found.origin_ns)
    if grid is None:
        found.reasons.append(
            Reason(ReasonCode.COUNTER_TICK_UNSEEN, "the readings of the energy counter do not show when it moves")
        )
        return
    found.put("counter_tick_s", grid.tick)
    found.values["counter_tick_jitter_s"] = grid.jitter_s
    if response is None or board is None or call_s is None:
        return
    gain = counter_timing.measure_gain(grid, board, found.levels_s(LONG_LOAD_S))
    found.put("sample_gain_ratio", gain)
    delay = counter_timing.measure_delay(
        grid, board, response.steps, 1.0 if gain is None else gain.value, response, call_s
    )
    if delay is None:
        found.reasons.append(
            Reason(ReasonCode.COUNTER_DELAY_UNSEEN, "too few steps of power are between two ticks of the counter")
        )
    found.put("counter_delay_s", delay)


def _measure_fields(found: _ProfileDraft, trace: Trace, samples: SampleChannel, board: BoardPower | None) -> None:
    time_s = found.seconds(trace.polled.time_ns)
    instant = field_timing.find_refreshes(time_s, trace.polled.instant_w)
    average = field_timing.find_refreshes(time_s, trace.polled.average_w)
    for name, refreshes in (("instant", instant), ("average", average)):
        period = refreshes.period()
        if period is None:
            code = ReasonCode.INSTANT_UNREADABLE if name == "instant" else ReasonCode.AVERAGE_UNREADABLE
            found.reasons.append(Reason(code, f"the polls do not show when the {name} power field is refreshed"))
        else:
            found.values[f"{name}_period_s"] = period.value
    if board is None:
        return
    if "instant_period_s" in found.values:
        found.put("instant_delay_s", field_timing.measure_instant_delay(instant, board))
    if "average_period_s" in found.values:
        found.put("average_window_s", field_timing.measure_window(average, samples, found.origin_ns))


def _period(time_s: Numbers) -> UncertainValue:
    """The mean distance of samples, holes left out."""
    between_s = np.diff(time_s)
    between_s = between_s[between_s < GAP * np.median(between_s)]
    return UncertainValue(float(between_s.mean()), float(between_s.std() / np.sqrt(len(between_s))))


def _noise(time_s: Numbers, power_w: Numbers, levels_s: Iterable[tuple[float, float]]) -> float | None:
    """The median over pieces of constant load of the spread around a straight line; None without such pieces."""
    spreads_w = []
    for begin_s, end_s in levels_s:
        edges_s = np.arange(begin_s, end_s + 1e-9, LEVEL_CHUNK_S)
        for chunk_begin_s, chunk_end_s in pairwise(edges_s):
            inside = slice(*np.searchsorted(time_s, (chunk_begin_s, chunk_end_s)))
            near_s, level_w = time_s[inside] - chunk_begin_s, power_w[inside]
            if len(level_w) >= 8:
                spreads_w.append(robust_spread(level_w - np.polyval(np.polyfit(near_s, level_w, 1), near_s)))
    return float(np.median(spreads_w)) if spreads_w else None
