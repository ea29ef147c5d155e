# SPDX-License-Identifier: Apache-2.0
"""Is the timed series steady after its warm-up? A changepoint test that labels it and drops nothing.

After Barrett et al., "Virtual Machine Warmup Blows Hot and Cold" (OOPSLA 2017). The series is cut into segments of
constant level, and segments are called equal whose levels differ by less than a tolerance. The shape is named by
comparing the last segment with the others. Differences from there: the cut is exact optimal partitioning over the
medians of at most 64 equal batches, with a BIC-like penalty. The medians are robust to outliers, and cheap for any
length. The tolerance is 2 % of the level.

    flat              all segments are equal
    warmup            the last segment is among the fastest, an earlier one is slower
    slowdown          the last segment is slower than an earlier one
    no_steady_state   the last segment covers less than a quarter of the series

It sees level shifts and trends that are long against a batch; it does not see periodic patterns within one.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pybench.catalogue.cautions import Caution, CautionCode
from pybench.measure.timing.latency import durations_s

Label = Literal["flat", "warmup", "slowdown", "no_steady_state"]

BATCHES = 64
BATCH_LEAST = 3  # iterations: the median of three is not moved by one outlier
SEGMENT_LEAST = 3  # batches, for the same reason
FEWEST_ITERATIONS = 30  # below, a few stray times decide, and no label is honest
TOLERANCE_RATIO = 0.02  # a shift below this is smaller than the differences that campaigns look for
LAST_SHARE = 0.25  # Barrett et al. ask for the last 500 of 2000 iterations
_PENALTY = 4.0  # in log(n) units of noise variance; BIC's 1.5 is for independent noise, and latencies are correlated


@dataclass(frozen=True, slots=True)
class Segment:
    """Consecutive iterations [begin, end) of one level: the median of their batches."""

    begin: int
    end: int
    level_s: float


@dataclass(frozen=True, slots=True)
class Steadiness:
    """The label (None: too few iterations to tell) and the segments behind it, equal neighbours merged."""

    label: Label | None
    segments: tuple[Segment, ...]

    def cautions(self, metric: str = "latency_mean_ms") -> list[Caution]:
        """A caution about `metric` unless the series is flat or too short to tell."""
        if self.label in (None, "flat"):
            return []
        levels = ", ".join(f"{part.level_s * 1e3:.4g} ms from iteration {part.begin}" for part in self.segments)
        return [Caution(CautionCode.NOT_STEADY, f"{self.label}: {levels}", metric)]


def judge_steadiness(times_ns: NDArray[np.int64]) -> Steadiness:
    """The label of int64 [n, 2] begin and end nanoseconds, in order of time."""
    durations = durations_s(times_ns)
    if len(durations) < FEWEST_ITERATIONS:
        return Steadiness(None, ())
    edges = np.linspace(0, len(durations), min(BATCHES, len(durations) // BATCH_LEAST) + 1).round().astype(int)
    levels = np.array([np.median(durations[begin:end]) for begin, end in pairwise(edges)])
    segments = _merge_equal(_cut(levels), levels, edges)
    return Steadiness(_name(segments, len(durations)), tuple(segments))


def _noise_variance(levels: NDArray[np.float64]) -> float:
    """Variance around a locally constant level, from first differences, so that shifts do not count as noise.

    The median absolute difference of independent normal values is 0.9539 sigma. A perfectly quiet series gets the
    tolerance's own size as its noise, so that no rounding step becomes a changepoint.
    """
    sigma = float(np.median(np.abs(np.diff(levels)))) / 0.9539
    return max(sigma, TOLERANCE_RATIO / 4 * float(np.median(levels))) ** 2


def _cut(levels: NDArray[np.float64]) -> list[int]:
    """Boundaries 0 = b0 < b1 < ... = n of the segmentation of least squared error plus penalty (exact, O(n^2))."""
    count = len(levels)
    penalty = _PENALTY * np.log(count) * _noise_variance(levels)
    sums = np.concatenate(([0.0], np.cumsum(levels)))
    squares = np.concatenate(([0.0], np.cumsum(levels**2)))
    best = np.full(count + 1, np.inf)
    best[0] = -penalty
    previous = np.zeros(count + 1, dtype=int)
    for end in range(SEGMENT_LEAST, count + 1):
        begins = np.arange(end - SEGMENT_LEAST + 1)
        error = squares[end] - squares[begins] - (sums[end] - sums[begins]) ** 2 / (end - begins)
        total = best[begins] + error + penalty
        previous[end] = int(np.argmin(total))
        best[end] = total[previous[end]]
    boundaries = [count]
    while boundaries[-1] > 0:
        boundaries.append(int(previous[boundaries[-1]]))
    return boundaries[::-1]


def _merge_equal(boundaries: list[int], levels: NDArray[np.float64], edges: NDArray[np.int_]) -> list[Segment]:
    """Segments in iterations; a segment whose level equals its left neighbour's within the tolerance joins it."""
    merged = [boundaries[0]]
    for begin, end in pairwise(boundaries[1:]):
        left, right = np.median(levels[merged[-1] : begin]), np.median(levels[begin:end])
        if abs(right - left) > TOLERANCE_RATIO * min(left, right):
            merged.append(begin)
    merged.append(boundaries[-1])
    return [Segment(int(edges[a]), int(edges[b]), float(np.median(levels[a:b]))) for a, b in pairwise(merged)]


def _name(segments: list[Segment], iterations: int) -> Label:
    if len(segments) == 1:
        return "flat"
    last = segments[-1]
    if last.end - last.begin < LAST_SHARE * iterations:
        return "no_steady_state"
    fastest = min(segment.level_s for segment in segments)
    return "slowdown" if last.level_s > fastest * (1 + TOLERANCE_RATIO) else "warmup"
