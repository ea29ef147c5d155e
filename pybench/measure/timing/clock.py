# SPDX-License-Identifier: Apache-2.0
"""The clock of every time in pybench (CLOCK_MONOTONIC_RAW, from C++), a sleep that blocks, and the timer of calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pybench import _native
from pybench.errors import UsageError

NANOSECONDS_PER_SECOND = 1_000_000_000

monotonic_ns = _native.monotonic_raw_ns
sleep_until_ns = _native.sleep_until_ns


def seconds_since(begin_ns: int) -> float:
    """From a time of `monotonic_ns` until now."""
    return (monotonic_ns() - begin_ns) / NANOSECONDS_PER_SECOND


def gaps_ns(begin_ns: NDArray[np.int64], end_ns: NDArray[np.int64], origin_ns: int) -> NDArray[np.int64]:
    """int64 [n]: from the end before it until each begin, of the first from the origin; negative where two overlap.

    Tables of a run have gaps and lengths: sums give every time again, and absolute times repeat most of their digits.
    """
    return begin_ns - np.concatenate((np.array([origin_ns], np.int64), end_ns[:-1]))


@dataclass(frozen=True, slots=True)
class ClockAnchor:
    """Realtime and raw clock at one instant; the two readings belong together within +- `uncertainty_ns`."""

    monotonic_ns: int
    realtime_ns: int
    uncertainty_ns: int


def anchor_clock() -> ClockAnchor:
    """Places the realtime clock (of logs and of NVML's timestamps) on the raw one, now."""
    anchor = _native.anchor_realtime()
    return ClockAnchor(anchor.monotonic_raw_ns, anchor.realtime_ns, anchor.uncertainty_ns)


def time_calls(work: Callable[[], object], iterations: int, minimum_s: float = 0.0) -> NDArray[np.int64]:
    """Calls `work()` at least `iterations` times and for at least `minimum_s`, timing each call.

    Returns int64 [n, 2]: begin and end of each call in ns of the raw clock, in order, end >= begin. Between two
    calls lie some tens of nanoseconds of C++. An exception of `work` passes through.
    The stopping rule is trtexec's (samples/common/sampleInference.cpp).
    """
    if iterations < 0 or not 0 <= minimum_s < float("inf"):
        raise UsageError(f"cannot time {iterations} iterations for {minimum_s} s", hint="both must be at least 0")
    no_schedule = np.empty(0, np.int64)
    times, _ = _native.time_calls(work, iterations, round(minimum_s * NANOSECONDS_PER_SECOND), no_schedule)
    return times[:, 1:]
