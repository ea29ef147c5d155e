# SPDX-License-Identifier: Apache-2.0
"""Measuring a network with heads: the windows of any inference, and of each head its rate, latency and misses.

Where heads are dispatched, by the module that Python calls or by a session of the model's parts, each one's end is
noted (pybench.measure.timing.head_log). Elsewhere one graph hands over all outputs together, so each head ends with its
iteration.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pybench import measure
from pybench.case import Case
from pybench.catalogue.heads import heads_of, rates_of
from pybench.measure.quantity import Quantity
from pybench.measure.timing.head_log import NOT_RUN, HeadLog
from pybench.measurement.recorder import TIMING, Amounts, Recorder
from pybench.measurement.result import Result, RunRequest
from pybench.runtimes.session import Arrays


def record_heads(request: RunRequest, session: Any, arrays: Arrays, amounts: Amounts) -> Result:
    """As `record`, with the metrics of each head. `arrays`: the inputs."""
    case = request.case
    rates_hz = None if case.head_rates_hz is None else rates_of(case.head_rates_hz)
    log = _log_of(session, case)
    if log is not None:
        log.rates_hz = rates_hz
    work = session.bind_replay(arrays, transfers=case.transfers)
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


def _log_of(session: Any, case: Case) -> HeadLog | None:
    """Where the ends of heads are noted; None: they end together."""
    if case.parts is not None:
        log: HeadLog = session.log
    elif case.runtime_row is not None and case.runtime_row.calls_module:
        log = session.module.log
    else:
        return None
    return log


def metrics_of_heads(
    case: Case,
    begins_ns: NDArray[np.int64],
    ends_ns: NDArray[np.int64],
    timed_s: float,
    rates_hz: tuple[float, ...] | None,
) -> dict[str, Quantity]:
    """Rate, latency and missed deadlines of each head.

    begins_ns: int64 [n], arrival or begin of each iteration
    ends_ns: int64 [n, heads] on the same clock, `NOT_RUN` where a head did not run
    rates_hz: of each head, whose period is its deadline
    """
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
