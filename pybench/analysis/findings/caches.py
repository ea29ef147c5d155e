# SPDX-License-Identifier: Apache-2.0
"""How much of an effect is the L2 cache's: a comparison with a warm cache against the same one with a cold cache.

A loop of iterations finds weights in the cache, and those of a small type more of them, so a benchmark flatters it. Of
each declared pair whose two sides ran with both caches, with ratios of case to baseline:

    by_cache = ratio with warm caches / ratio with cold caches

Its interval is of the logarithms of the four runs of a block. Intervals have 95 % each; nothing corrects for their
number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pybench.analysis.comparability import SoftwareComparisons
from pybench.analysis.findings.contrasts import ContrastFinding
from pybench.analysis.measurements import Measurements
from pybench.analysis.statistics.estimate import Estimate
from pybench.analysis.statistics.paired import compare_paired
from pybench.case import Case
from pybench.case.contrasts import Contrast
from pybench.case.factors.running import COLD, WARM
from pybench.case.pairing import Pair

METRICS = ("latency_mean_ms", "gpu_energy_per_sample_j")


@dataclass(frozen=True, slots=True)
class CacheEffect:
    """One pair of a declared comparison in one metric, over the blocks in which all four runs count.

    pair: its two sides, with warm caches
    warm, cold: ratio of the case to its baseline
    by_cache: the first over the second; below 1, a warm cache helps the case more than its baseline
    """

    contrast: Contrast
    pair: Pair
    metric: str
    warm: Estimate
    cold: Estimate
    by_cache: Estimate

    @property
    def is_shown(self) -> bool:
        """Whether the interval excludes 1."""
        lower, upper = self.by_cache.lower, self.by_cache.upper
        return lower is not None and upper is not None and not lower <= 1 <= upper

    def as_json(self) -> dict[str, Any]:
        return {
            "case_id": self.pair.case.id,
            "baseline_id": self.pair.baseline.id,
            "metric": self.metric,
            "warm": self.warm.as_json(),
            "cold": self.cold.as_json(),
            "by_cache": self.by_cache.as_json(),
        }


def find_cache_effects(
    cases: Sequence[Case],
    contrasts: Sequence[ContrastFinding],
    measurements: Measurements,
    software: SoftwareComparisons,
) -> tuple[CacheEffect, ...]:
    """One finding for each metric of each pair, in the order of the comparisons."""
    planned = {case.id: case for case in cases}
    found = []
    for contrast in contrasts:
        for warm in (one.pair for one in contrast.pairs if _are_warm(one.pair)):
            sides = [planned.get(case.with_factors(cache=COLD).id) for case in (warm.case, warm.baseline)]
            if sides[0] is None or sides[1] is None:
                continue
            four, tests = (warm.case, warm.baseline, sides[0], sides[1]), measurements.tests
            for metric in METRICS:
                values = _values(four, metric, measurements, software)
                found += _effect(contrast.contrast, warm, metric, values, tests)
    return tuple(found)


def _are_warm(pair: Pair) -> bool:
    """Whether a cold cache would be another case of each side."""
    sides = (pair.case, pair.baseline)
    return all(case.cache == WARM and "cache" not in case.idle for case in sides)


def _values(
    four: Sequence[Case], metric: str, measurements: Measurements, software: SoftwareComparisons
) -> list[dict[int, float]]:
    """Block -> value of each of four cases, in the blocks that all have and in which all may be compared."""
    values = [measurements.cell(case.id, metric).values for case in four]
    blocks = set.intersection(*map(set, values)) - software.differing_blocks(four)
    return [{block: each[block] for block in sorted(blocks)} for each in values]


def _effect(
    contrast: Contrast, pair: Pair, metric: str, values: Sequence[Mapping[int, float]], tests: int
) -> list[CacheEffect]:
    """`values`: of case and baseline, warm, and of case and baseline, cold."""
    if not values[0] or any(number <= 0 for each in values for number in each.values()):
        return []
    warm, cold = values[:2], values[2:]
    ratios = [{block: case[block] / baseline[block] for block in case} for case, baseline in (warm, cold)]
    effects = [compare_paired(first, second, "ratio", tests=tests) for first, second in (warm, cold, ratios)]
    return [CacheEffect(contrast, pair, metric, *(effect.estimate for effect in effects if effect is not None))]
