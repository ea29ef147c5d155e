# SPDX-License-Identifier: Apache-2.0
"""How much of the variance of a metric lies between builds of one engine, and how much between runs of one build.

A one-way random-effects analysis of cases that differ in nothing but `build` (Searle, Casella and McCulloch 1992,
Variance Components, ch. 3): components by the method of moments, the interval of the share from the F distribution,
which is exact when all builds have as many runs. Drift between blocks counts as variance between runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # loads its parts on first use: commands that compute nothing stay quick

from pybench.analysis.estimate import CONFIDENCE, Estimate, Sample
from pybench.analysis.measurements import Measurements
from pybench.case import Case
from pybench.units import METRICS

F_RATIO = "F ratio"
SPLIT = ("latency_mean_ms", "latency_p99_ms", "throughput_samples_per_s", "gpu_energy_per_sample_j")


@dataclass(frozen=True, slots=True)
class BuildVariance:
    """One metric of the builds of one engine. `share`: of the variance that lies between builds, 0 to 1, with its
    interval; `between` and `within`: standard deviations (of logarithms where `is_relative`)."""

    cases: tuple[Case, ...]
    metric: str
    runs: int
    between: float
    within: float
    share: Estimate
    p_value: float
    is_relative: bool

    def as_json(self) -> dict[str, Any]:
        return {
            "case_ids": [case.id for case in self.cases],
            "metric": self.metric,
            "runs": self.runs,
            "sd_between_builds": self.between,
            "sd_between_runs": self.within,
            "sd_of_logarithms": self.is_relative,
            "share_between_builds": self.share.as_json(),
            "p_value": self.p_value,
        }


def split_variances(cases: Sequence[Case], measurements: Measurements) -> tuple[BuildVariance, ...]:
    """Every engine of which two builds or more have at least two runs each, metric by metric."""
    engines: dict[Case, list[Case]] = {}
    for case in cases:
        engines.setdefault(case.with_factors(build=1), []).append(case)
    found = []
    for builds in engines.values():
        for metric in SPLIT if len(builds) > 1 else ():
            values = {case: list(measurements.cell(case.id, metric).values.values()) for case in builds}
            known = {case: Sample.of(sample) for case, sample in values.items() if len(sample) > 1}
            if len(known) > 1:
                found.append(_split(known, metric))
    return tuple(one for one in found if one is not None)


def _split(samples: dict[Case, Sample], metric: str) -> BuildVariance | None:
    """None where runs of a build do not vary at all: there is nothing to set the builds against."""
    positive = all((sample.values > 0).all() for sample in samples.values())
    relative = METRICS[metric].scale == "ratio" and positive
    values = [(sample.log() if relative else sample).values for sample in samples.values()]
    sizes = np.array([one.size for one in values])
    freedom = len(values) - 1, int(sizes.sum()) - len(values)
    grand = float(np.concatenate(values).mean())
    between = sum(one.size * (float(one.mean()) - grand) ** 2 for one in values) / freedom[0]
    within = sum(float(((one - one.mean()) ** 2).sum()) for one in values) / freedom[1]
    if all(sample.is_constant for sample in samples.values()):
        return None
    size = float((sizes.sum() - (sizes**2).sum() / sizes.sum()) / freedom[0])
    component = max(0.0, (between - within) / size)
    ratio = between / within
    tail = (1 - CONFIDENCE) / 2
    bounds = [_share(ratio / float(scipy.stats.f.ppf(quantile, *freedom)), size) for quantile in (1 - tail, tail)]
    share = Estimate(component / (component + within), bounds[0], bounds[1], len(values), F_RATIO)
    return BuildVariance(
        cases=tuple(samples),
        metric=metric,
        runs=int(sizes.sum()),
        between=component**0.5,
        within=within**0.5,
        share=share,
        p_value=float(scipy.stats.f.sf(ratio, *freedom)),
        is_relative=relative,
    )


def _share(ratio: float, size: float) -> float:
    """The share that makes the F ratio what it is, within 0 to 1."""
    return min(1.0, max(0.0, (ratio - 1) / (ratio - 1 + size)))
