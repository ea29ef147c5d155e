# SPDX-License-Identifier: Apache-2.0
"""How much of the spread between repeated runs of a case the speed of the calling core explains.

An eager framework launches kernels from one core, which is not equally fast in every run (docs/method/timing.md). The
logarithm of a run's mean latency and that of its mean probe are each centred within the case's runs on one board and
kind of CPU. A line through zero is fitted by least squares to the runs of all cases of one workload, model, runtime and
device. Its slope is 1 where an iteration only waits for the core, and 0 where it never does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # loads its parts on first use: commands that compute nothing stay quick
from numpy.typing import NDArray

from pybench.analysis.findings.explanation import CORE_PROBE, LATENCY
from pybench.analysis.measurements import Measurements
from pybench.analysis.statistics.elementary import log
from pybench.analysis.statistics.estimate import Estimate
from pybench.analysis.statistics.sequential import confidence_among
from pybench.case import Case
from pybench.dataset.software import BOARD, PROCESSOR, Software

LEAST_SQUARES = "least squares"
ALIKE = ("workload", "model", "runtime", "device")
"""Factors that are the same in all runs of one line."""
FEWEST_FREE = 4  # degrees of freedom: an interval has 2.8 standard errors to each side, and 3.2 or more with fewer
LEAST_EXPLAINED = 0.5  # of the variance: below it, something else matters more
LEAST_SPREAD = 0.02  # of log latency: most engines differ by less from run to run
_ROUNDING = 1e-9  # of logarithms: smaller ones are no spread


@dataclass(frozen=True, slots=True)
class RunSpread:
    """The cases of one workload, model, runtime and device.

    cases: those with two runs or more with probes on one board
    alike: how many the plan has
    runs: how many the line is fitted to
    slope: change of log latency by that of the log probe
    explained: share of the variance that the line accounts for, 0 to 1, from both variances by degrees of freedom
    spread: standard deviation of log latency between runs of a case
    left: the same, of what the line leaves
    """

    cases: tuple[Case, ...]
    alike: int
    runs: int
    slope: Estimate
    explained: float
    spread: float
    left: float

    @property
    def waits_for_core(self) -> bool:
        """Whether runs differ noticeably, and mainly because the core does."""
        is_positive = self.slope.lower is not None and self.slope.lower > 0
        return is_positive and self.explained >= LEAST_EXPLAINED and self.spread >= LEAST_SPREAD

    def as_json(self) -> dict[str, Any]:
        return {
            "case_ids": [case.id for case in self.cases],
            "cases_alike": self.alike,
            "runs": self.runs,
            "slope": self.slope.as_json(),
            "explained_share": self.explained,
            "sd_of_runs": self.spread,
            "sd_left": self.left,
        }


def explain_spreads(
    cases: Sequence[Case], measurements: Measurements, software: Mapping[str, Mapping[int, Software]]
) -> tuple[RunSpread, ...]:
    """Every workload, model, runtime and device with enough runs that have probes, in the order of `cases`."""
    alike: dict[tuple[object, ...], list[Case]] = {}
    for case in cases:
        alike.setdefault(tuple(map(case.value, ALIKE)), []).append(case)
    found = (_fit(group, measurements, software) for group in alike.values())
    return tuple(one for one in found if one is not None)


def _fit(
    cases: Sequence[Case], measurements: Measurements, software: Mapping[str, Mapping[int, Software]]
) -> RunSpread | None:
    by_case = {case: _centred(case, measurements, software.get(case.id, {})) for case in cases}
    groups = [group for found in by_case.values() for group in found]
    free = sum(map(len, groups)) - len(groups) - 1
    if free < FEWEST_FREE:
        return None
    latency, probe = np.concatenate(groups).T
    if min(np.abs(latency).max(), np.abs(probe).max()) <= _ROUNDING:
        return None
    probed = float((probe * probe).sum())
    slope = float((latency * probe).sum()) / probed
    rest = latency - slope * probe
    before, after = float((latency * latency).sum()) / (free + 1), float((rest * rest).sum()) / free
    confidence = confidence_among(measurements.tests)
    half = float(scipy.special.stdtrit(free, (1 + confidence) / 2)) * math.sqrt(after / probed)
    return RunSpread(
        cases=tuple(case for case, found in by_case.items() if found),
        alike=len(cases),
        runs=len(latency),
        slope=Estimate(slope, slope - half, slope + half, len(latency), LEAST_SQUARES, confidence),
        explained=max(0.0, 1 - after / before),
        spread=math.sqrt(before),
        left=math.sqrt(after),
    )


def _centred(case: Case, measurements: Measurements, software: Mapping[int, Software]) -> list[NDArray[np.float64]]:
    """Of each board and kind of CPU with two runs or more: log latency and log probe of its runs, both with mean 0.

    Left out are runs that do not state what they ran on, and values without a logarithm.
    """
    latencies, probes = (measurements.cell(case.id, name).values for name in (LATENCY, CORE_PROBE))
    machines: dict[tuple[str | None, ...], list[tuple[float, float]]] = {}
    for block in sorted(set(latencies) & set(probes) & set(software)):
        machine = tuple(software[block].facts.get(name) for name in (BOARD, PROCESSOR))
        both = latencies[block], probes[block]
        if any(machine) and all(0 < value < math.inf for value in both):
            machines.setdefault(machine, []).append(both)
    logs = [log(np.array(runs)) for runs in machines.values() if len(runs) > 1]
    return [group - group.mean(axis=0) for group in logs]
