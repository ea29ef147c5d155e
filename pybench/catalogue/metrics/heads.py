# SPDX-License-Identifier: Apache-2.0
"""Metrics of the heads of a shared backbone."""

from __future__ import annotations

from pybench.catalogue.heads import MOST_HEADS
from pybench.catalogue.metrics.metric import Metric


def _of_head(number: int) -> tuple[Metric, ...]:
    """The rows of one head of a shared backbone; their names are those of `pybench.catalogue.heads.head_metrics`."""
    name, label = f"head{number}", f"Head {number}"
    begin = "the arrival of a frame, or the begin of its iteration,"
    return (
        Metric(
            name=f"{name}_rate_per_s",
            group="heads",
            unit="1/s",
            better="higher",
            label=f"{label}: rate",
            meaning=f"runs of head {number} that ended in a second of the timing window",
            rests_on="timing",
        ),
        Metric(
            name=f"{name}_latency_p50_ms",
            group="heads",
            unit="ms",
            better="lower",
            label=f"{label}: p50 latency",
            meaning=f"median time from {begin} to the end of head {number}",
            rests_on="timing",
        ),
        Metric(
            name=f"{name}_latency_p99_ms",
            group="heads",
            unit="ms",
            better="lower",
            label=f"{label}: p99 latency",
            meaning=f"99th percentile of the time from {begin} to the end of head {number}",
            rests_on="timing",
        ),
        Metric(
            name=f"{name}_deadline_miss_ratio",
            group="heads",
            unit="1",
            better="lower",
            label=f"{label}: misses",
            meaning=f"share of runs of head {number} that ended more than one period of its rate after the arrival",
            rests_on="timing",
            scale="difference",
            is_share=True,
        ),
    )


ROWS = tuple(row for number in range(1, MOST_HEADS + 1) for row in _of_head(number))
