# SPDX-License-Identifier: Apache-2.0
"""Latency of one iteration: mean and percentiles by trtexec's rule (samples/common/sampleReporting.cpp).

The rule: sort the times as float32. The median is the middle one, or the mean of the two middles. A percentile p of n
times is the one at index max(n - 1 - int((1 - p / 100) * n), 0), the product in float32, without interpolation.

Worked by hand for the ten times 1, 2, ..., 10: mean 5.5; p50 = (5 + 6) / 2 = 5.5. p95: (1 - 0.95) * 10 = 0.5, so index
9 - 0 = 9 and the value is 10; p99 likewise 10. For a thousand times 1, ..., 1000: p99 in float32 is (1 - 0.99) * 1000 =
9.99999. So the index is 999 - 9 = 990 and the value is 991 (in float64 it would be 990). It drops nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pybench.catalogue.cautions import Caution, CautionCode
from pybench.errors import UsageError

FEWEST_FOR_P99 = 100  # below, the 99th percentile by this rule is the maximum
OUTLIER_RATIO = 3.0  # times of the median; far beyond what jitter of a healthy machine gives
OUTLIER_SHARE = 0.01  # up to one in a hundred is what any desktop does to a process; it is in the percentiles
_NANOSECONDS = 1e-9


@dataclass(frozen=True, slots=True)
class LatencySummary:
    """Seconds of one iteration."""

    mean_s: float
    p50_s: float
    p95_s: float
    p99_s: float
    minimum_s: float
    maximum_s: float
    iterations: int
    outliers: int  # iterations that took more than three medians; they are counted, never dropped


def durations_s(times_ns: NDArray[np.int64]) -> NDArray[np.float64]:
    """float64 [n], seconds: end minus begin of int64 [n, 2] nanoseconds."""
    return (times_ns[:, 1] - times_ns[:, 0]).astype(np.float64) * _NANOSECONDS


def percentile_index(percentile: float, count: int) -> int:
    """The index of the percentile among `count` sorted times, as trtexec computes it: in float32, truncating."""
    excluded = int((np.float32(1) - np.float32(percentile) / np.float32(100)) * np.float32(count))
    return max(count - 1 - excluded, 0)


def summarise_latency(times_ns: NDArray[np.int64]) -> LatencySummary:
    """Summary of int64 [n, 2] begin and end nanoseconds, n >= 1. Raises UsageError when there are none."""
    if len(times_ns) == 0:
        raise UsageError("no iteration was timed, so there is no latency", hint="ask for at least one iteration")
    durations = durations_s(times_ns)
    ordered = np.sort(durations.astype(np.float32))
    count = len(ordered)
    middle = ordered[[(count - 1) // 2, count // 2]]
    median = float(middle.sum(dtype=np.float32) / np.float32(2))
    return LatencySummary(
        mean_s=float(durations.mean()),
        p50_s=median,
        p95_s=float(ordered[percentile_index(95, count)]),
        p99_s=float(ordered[percentile_index(99, count)]),
        minimum_s=float(ordered[0]),
        maximum_s=float(ordered[-1]),
        iterations=count,
        outliers=int(np.count_nonzero(ordered > OUTLIER_RATIO * median)),
    )


def latency_cautions(summary: LatencySummary) -> list[Caution]:
    """Doubts that the summary itself raises: too few iterations for p99, outliers."""
    cautions = []
    if summary.iterations < FEWEST_FOR_P99:
        cautions.append(Caution(CautionCode.FEW_ITERATIONS, f"{summary.iterations} iterations", "latency_p99_ms"))
    if summary.outliers > OUTLIER_SHARE * summary.iterations:
        detail = f"{summary.outliers} of {summary.iterations} iterations, the longest {summary.maximum_s * 1e3:.3g} ms"
        cautions.append(Caution(CautionCode.OUTLIERS, detail, "latency_mean_ms"))
    return cautions
