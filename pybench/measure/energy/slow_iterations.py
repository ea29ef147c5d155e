# SPDX-License-Identifier: Apache-2.0
"""Energy of the GPU board in the slow iterations of a window: those beyond the 95th and the 99th percentile.

Power is recovered from samples that are some 20 ms apart, and most iterations are shorter. So only slow iterations
that follow one another without a faster one between them, and that together last longer than the recovered power
resolves, have an energy. Everything else is left out, and `method` says how much that is.

This is not `gpu_tail_energy_j`, which is spent after the window.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot, sqrt

import numpy as np
from numpy.typing import NDArray

from pybench.catalogue.reasons import Reason, ReasonCode
from pybench.catalogue.sensors import FUSED
from pybench.measure.energy.integration import BOARD_GAIN, FEWEST_SAMPLES, SCOPE, integrate
from pybench.measure.energy.profile import SensorProfile
from pybench.measure.energy.trace import Times as Nanoseconds
from pybench.measure.energy.trace import Trace
from pybench.measure.quantity import Quantity
from pybench.measure.timing.latency import durations_s, percentile_index
from pybench.measure.timing.replay import Times

PERCENTILES = (95, 99)
# A stretch shorter than two intervals between samples may contain no whole interval. Nothing then tells its power from
# the power around it (docs/method/energy.md, "Shape").
INTERVALS_NEEDED = 2


@dataclass(frozen=True, slots=True)
class SlowStretches:
    """Slow iterations without a faster one between them.

    begin_ns, end_ns: int64 [m] ns, raw clock, from the begin of the first to the end of the last
    iterations: int64 [m], how many each has
    """

    begin_ns: Nanoseconds
    end_ns: Nanoseconds
    iterations: NDArray[np.int64]


def slow_energies(trace: Trace, times: Times, window: str, profile: SensorProfile) -> dict[str, Quantity]:
    """`gpu_slow_p95_energy_j` and `gpu_slow_p99_energy_j` of the iterations of one window."""
    resolution_s = recovered_resolution_s(trace, profile)
    return {
        metric_of(percentile): _energy(trace, find_slow(times, percentile), window, profile, resolution_s, percentile)
        for percentile in PERCENTILES
    }


def metric_of(percentile: int) -> str:
    """The metric's name."""
    return f"gpu_slow_p{percentile}_energy_j"


def recovered_resolution_s(trace: Trace, profile: SensorProfile) -> float:
    """The shortest stretch, in s, whose power is told from the power around it: two intervals between samples, by the
    median; without samples two ticks of the energy counter."""
    time_ns = trace.samples.ordered().time_ns
    if len(time_ns) < FEWEST_SAMPLES:
        return INTERVALS_NEEDED * profile.counter_tick_s
    return INTERVALS_NEEDED * float(np.median(np.diff(time_ns))) * 1e-9


def find_slow(times: Times, percentile: int) -> SlowStretches:
    """The stretches of iterations whose latency is beyond the percentile, by trtexec's rule, in order of time.

    With arrivals latency is the response time. A stretch is from when the first of its iterations ran, by the GPU's
    events where there are any, to when the last one ended.
    """
    latency_s = durations_s(times.latency_ns)
    if len(latency_s) == 0:
        return SlowStretches(*(np.empty(0, np.int64) for _ in range(3)))
    slow = latency_s > np.sort(latency_s)[percentile_index(percentile, len(latency_s))]
    edges = np.flatnonzero(np.diff(np.concatenate(([False], slow, [False])).astype(np.int8)))
    first, after_last = edges[::2], edges[1::2]
    begin_ns, end_ns = times.begin_ns, times.end_ns
    if times.gpu is not None:
        begin_ns, end_ns = times.gpu.begin_ns + times.gpu.origin_ns, times.gpu.end_ns + times.gpu.origin_ns
    return SlowStretches(begin_ns[first], end_ns[after_last - 1], (after_last - first).astype(np.int64))


def _energy(
    trace: Trace, found: SlowStretches, window: str, profile: SensorProfile, resolution_s: float, percentile: int
) -> Quantity:
    long = (found.end_ns - found.begin_ns) * 1e-9 > resolution_s
    if not long.any():
        why = _too_short(found, resolution_s, percentile)
        return Quantity(window=window, method=FUSED, scope=SCOPE, reasons=(why,))
    energies = integrate(trace, found.begin_ns[long], found.end_ns[long], profile)
    sound = energies.valid & np.isfinite(energies.energy_j)
    if not sound.any():
        reasons = tuple(dict.fromkeys(reason for each in energies.reasons for reason in each))
        return Quantity(window=window, method=FUSED, scope=SCOPE, reasons=reasons)
    energy_j = float(energies.energy_j[sound].sum())
    # Errors of the sensor are common to all stretches, so nothing is taken to average out.
    u_j = float(energies.u_within_j[sound].sum())
    taken, of = int(found.iterations[long][sound].sum()), int(found.iterations.sum())
    return Quantity(
        value=energy_j,
        window=window,
        u_standard=u_j,
        u_absolute=hypot(u_j, BOARD_GAIN * energy_j / sqrt(3)),
        samples=taken,
        method=f"{FUSED}; {taken} of {of} iterations beyond p{percentile}",
        scope=SCOPE,
        valid=True,
    )


def _too_short(found: SlowStretches, resolution_s: float, percentile: int) -> Reason:
    if len(found.begin_ns) == 0:
        return Reason(ReasonCode.TAIL_BELOW_RESOLUTION, f"no iteration is beyond p{percentile}")
    longest_s = float((found.end_ns - found.begin_ns).max()) * 1e-9
    detail = f"the longest takes {longest_s * 1e3:.3g} ms, and {resolution_s * 1e3:.3g} ms are resolved"
    return Reason(ReasonCode.TAIL_BELOW_RESOLUTION, detail)
