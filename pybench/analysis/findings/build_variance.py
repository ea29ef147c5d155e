# SPDX-License-Identifier: Apache-2.0
"""How much of the variance of a metric lies between builds of one engine, and how much is left in runs of one build.

Cases that differ in nothing but `build` ran in the same blocks, so the model is that of the design: build + block, both
random, one run a cell (Searle, Casella and McCulloch 1992, Variance Components, ch. 4). Drift that a whole block shares
is then no part of the residual. The share of the builds is the intraclass correlation ICC(C,1), and its interval from
the F distribution is exact (McGraw and Wong 1996, Psychol. Methods 1:30). A block that lacks a build, or in which two
builds ran on another board or with other software, is left out, and counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # loads its parts on first use: commands that compute nothing stay quick

from pybench.analysis.comparability import SoftwareComparisons
from pybench.analysis.measurements import Measurements
from pybench.analysis.statistics.elementary import log
from pybench.analysis.statistics.estimate import Estimate
from pybench.analysis.statistics.sequential import confidence_among, p_among
from pybench.case import Case
from pybench.catalogue.metrics import METRICS, Metric

F_RATIO = "F ratio"
_ROUNDING = 1e-12  # of the values (of 1 for logarithms): residuals below it are no spread
SPLIT = ("latency_mean_ms", "latency_p99_ms", "throughput_samples_per_s", "gpu_energy_per_sample_j")


@dataclass(frozen=True, slots=True)
class BuildVariance:
    """One metric of the builds of one engine.

    blocks: how many have a comparable run of every build
    blocks_left_out: how many have other runs
    between, residual: standard deviations in the unit of the metric, or of logarithms where `is_relative`
    share: of the variance of a run within a block that lies between builds, 0 to 1, with its interval
    p_value: of no difference between builds
    is_relative: whether `between` and `residual` are of logarithms
    """

    cases: tuple[Case, ...]
    metric: Metric
    blocks: int
    blocks_left_out: int
    between: float
    residual: float
    share: Estimate
    p_value: float
    is_relative: bool

    def as_json(self) -> dict[str, Any]:
        return {
            "case_ids": [case.id for case in self.cases],
            "metric": self.metric.name,
            "blocks": self.blocks,
            "blocks_left_out": self.blocks_left_out,
            "sd_between_builds": self.between,
            "sd_residual": self.residual,
            "sd_of_logarithms": self.is_relative,
            "share_between_builds": self.share.as_json(),
            "p_value": self.p_value,
        }


def split_variances(
    cases: Sequence[Case], measurements: Measurements, software: SoftwareComparisons
) -> tuple[BuildVariance, ...]:
    """Every engine of which two builds or more share at least two blocks, metric by metric. A build with fewer than two
    runs is no part of it."""
    engines: dict[Case, list[Case]] = {}
    for case in cases:
        engines.setdefault(case.with_factors(build=1), []).append(case)
    found = []
    for builds in engines.values():
        for metric in [METRICS[name] for name in SPLIT] if len(builds) > 1 else ():
            values = {case: measurements.cell(case.id, metric.name).values for case in builds}
            known = {case: runs for case, runs in values.items() if len(runs) > 1}
            if len(known) > 1:
                found.append(_split(known, metric, software.differing_blocks(list(known)), measurements.tests))
    return tuple(one for one in found if one is not None)


def _split(
    runs: Mapping[Case, Mapping[int, float]], metric: Metric, differing: frozenset[int], tests: int
) -> BuildVariance | None:
    """None with fewer than two complete blocks that do not differ, or where nothing but build and block makes runs
    differ: there is nothing to set the builds against."""
    complete = sorted(set.intersection(*(set(values) for values in runs.values())) - differing)
    if len(complete) < 2:
        return None
    table = np.array([[values[block] for block in complete] for values in runs.values()])
    relative = metric.scale == "ratio" and bool((table > 0).all())
    scale = 1.0 if relative else float(np.abs(table).max())
    table = log(table) if relative else table
    builds, blocks = table.shape
    freedom = builds - 1, (builds - 1) * (blocks - 1)
    residuals = table - table.mean(axis=1, keepdims=True) - table.mean(axis=0) + table.mean()
    if float(np.abs(residuals).max()) <= _ROUNDING * scale:
        return None
    between = blocks * float(table.mean(axis=1).var(ddof=1))
    residual = float((residuals**2).sum()) / freedom[1]
    component = max(0.0, (between - residual) / blocks)
    ratio = between / residual
    confidence = confidence_among(tests)
    tail = (1 - confidence) / 2
    bounds = [_share(ratio / float(scipy.special.fdtri(*freedom, quantile)), blocks) for quantile in (1 - tail, tail)]
    return BuildVariance(
        cases=tuple(runs),
        metric=metric,
        blocks=blocks,
        blocks_left_out=len(set.union(*(set(values) for values in runs.values()))) - blocks,
        between=component**0.5,
        residual=residual**0.5,
        share=Estimate(component / (component + residual), bounds[0], bounds[1], builds, F_RATIO, confidence),
        p_value=p_among(tests, float(scipy.special.fdtrc(*freedom, ratio))),
        is_relative=relative,
    )


def _share(ratio: float, blocks: int) -> float:
    """The share that makes the F ratio what it is, within 0 to 1."""
    return min(1.0, max(0.0, (ratio - 1) / (ratio - 1 + blocks)))
