# SPDX-License-Identifier: Apache-2.0
"""Measuring a network with heads: the windows of any inference, and of each head its rate, latency and misses.

Where Python calls the module, it notes when each head ends (pybench.models.head_log). Elsewhere one graph hands over
all outputs together, so each head ends with its iteration.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pybench import measure
from pybench.case import Case
from pybench.catalogue.heads import heads_of, rates_of
from pybench.measure.quantity import Quantity
from pybench.measurement.recorder import TIMING, Amounts, Recorder
from pybench.measurement.result import Result, RunRequest
from pybench.models.head_log import NOT_RUN


def record_heads(request: RunRequest, session: Any, work: measure.Replayer, amounts: Amounts) -> Result:
    """As `record`, with the metrics of each head."""
    case = request.case
    rates_hz = None if case.head_rates_hz is None else rates_of(case.head_rates_hz)
    log = session.module.log if case.runtime_row is not None and case.runtime_row.calls_module else None
    if log is not None:
        log.rates_hz = rates_hz
    with Recorder(case, session.device_uuid, sensors=request.sensors, seed=request.seed) as recorder:
        recorder.warm_up(work)
        if log is not None:
            log.take()
        recorder.time(work)
        ends_ns = None if log is None else log.take()
        recorder.replay_for_energy(work)
    result = recorder.result(amounts)
    if ends_ns is None:
        ends_ns = np.repeat(recorder.times.latency_ns[:, 1:], case.heads, axis=1)
    result.metrics |= metrics_of_heads(case, recorder.times.latency_ns[:, 0], ends_ns, recorder.timed_s, rates_hz)
    result.labels["heads"] = ", ".join(kind.name for kind in heads_of(case.heads))
    return result


def metrics_of_heads(
    case: Case,
    begins_ns: NDArray[np.int64],
    ends_ns: NDArray[np.int64],
    timed_s: float,
    rates_hz: tuple[float, ...] | None,
) -> dict[str, Quantity]:
    """`begins_ns`: int64 [n], arrival or begin of each iteration; `ends_ns`: int64 [n, heads] on the same clock,
    `NOT_RUN` where a head did not run; `rates_hz`: of each head, whose period is its deadline."""
    metrics: dict[str, Quantity] = {}
    for head in range(case.heads):
        name, ran = f"head{head + 1}", ends_ns[:, head] != NOT_RUN
        times_ns = np.stack((begins_ns[ran], ends_ns[ran, head]), axis=1)
        count = len(times_ns)
        metrics[f"{name}_rate_per_s"] = Quantity(value=count / timed_s, window=TIMING, samples=count)
        latency = measure.summarise_latency(times_ns)
        for percentile, seconds in (("p50", latency.p50_s), ("p99", latency.p99_s)):
            metrics[f"{name}_latency_{percentile}_ms"] = Quantity(value=seconds * 1e3, window=TIMING, samples=count)
        if rates_hz is not None:
            late = (times_ns[:, 1] - times_ns[:, 0]) * 1e-9 > 1 / rates_hz[head]
            share = float(late.mean())
            metrics[f"{name}_deadline_miss_ratio"] = Quantity(value=share, window=TIMING, samples=count)
    return metrics
