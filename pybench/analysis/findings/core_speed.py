# SPDX-License-Identifier: Apache-2.0
"""Whether repeated runs of a case differ because the core that calls its iterations does.

An eager framework launches kernels from one core, which is not equally fast in every run (docs/method/timing.md). The
logarithm of a run's mean latency and that of its mean probe are each centred within the case's runs on one board and
kind of CPU. A line through zero is fitted by least squares to the runs of all cases of one workload, model and runtime.
Its slope is 1 where an iteration only waits for the core, and 0 where it never does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # loads its parts on first use: commands that compute nothing stay quick
from numpy.typing import NDArray

from pybench.analysis.measurements import Measurements
from pybench.analysis.statistics.elementary import log
from pybench.analysis.statistics.estimate import Estimate
from pybench.analysis.statistics.sequential import confidence_among
from pybench.case import Case
from pybench.dataset.software import BOARD, PROCESSOR, Software

LATENCY = "latency_mean_ms"
PROBE = "core_probe_mean_ms"
LEAST_SQUARES = "least squares"
FEWEST_FREE = 4  # degrees of freedom: with fewer, the interval of a slope says nothing
_ROUNDING = 1e-9  # of logarithms: smaller ones are no spread


@dataclass(frozen=True, slots=True)
class CoreSpeed:
    """The cases of one workload, model and runtime that have two runs or more on one board.

    runs: how many the line is fitted to
    slope: change of log latency by that of the log probe
    explained: share of the variance that the line accounts for, 0 to 1
    spread: standard deviation of log latency between runs of a case
    left: the same, of what the line leaves
    """

    cases: tuple[Case, ...]
    runs: int
    slope: Estimate
    explained: float
    spread: float
    left: float

    @property
    def waits(self) -> bool:
        """Whether runs differ mainly because of the core: half of a spread of 2 % or more, and surely more than 0."""
        return self.explained >= 0.5 and self.spread >= 0.02 and (self.slope.lower or 0) > 0

    def as_json(self) -> dict[str, Any]:
        return {
            "case_ids": [case.id for case in self.cases],
            "runs": self.runs,
            "slope": self.slope.as_json(),
            "explained_share": self.explained,
            "sd_of_runs": self.spread,
            "sd_left": self.left,
        }


def follow_cores(
    cases: Sequence[Case], measurements: Measurements, software: Mapping[str, Mapping[int, Software]]
) -> tuple[CoreSpeed, ...]:
    """Every workload, model and runtime with enough runs that have probes, in the order of `cases`."""
    alike: dict[tuple[str, object, object], list[Case]] = {}
    for case in cases:
        alike.setdefault((case.workload, case.model, case.runtime), []).append(case)
    found = (_fit(group, measurements, software) for group in alike.values())
    return tuple(one for one in found if one is not None)


def _fit(
    cases: Sequence[Case], measurements: Measurements, software: Mapping[str, Mapping[int, Software]]
) -> CoreSpeed | None:
    by_case = {case: _centred(case, measurements, software.get(case.id, {})) for case in cases}
    known = {case: groups for case, groups in by_case.items() if groups}
    groups = [group for found in known.values() for group in found]
    free = sum(map(len, groups)) - len(groups) - 1
    if free < FEWEST_FREE:
        return None
    latency, probe = np.concatenate(groups).T
    if min(np.abs(latency).max(), np.abs(probe).max()) <= _ROUNDING:
        return None
    slope = float(latency @ probe / (probe @ probe))
    rest = latency - slope * probe
    left = float(np.sqrt(rest @ rest / free))
    confidence = confidence_among(measurements.tests)
    half = float(scipy.special.stdtrit(free, (1 + confidence) / 2)) * left / float(np.sqrt(probe @ probe))
    return CoreSpeed(
        cases=tuple(known),
        runs=len(latency),
        slope=Estimate(slope, slope - half, slope + half, len(latency), LEAST_SQUARES, confidence),
        explained=float(1 - rest @ rest / (latency @ latency)),
        spread=float(np.sqrt(latency @ latency / (free + 1))),
        left=left,
    )


def _centred(case: Case, measurements: Measurements, software: Mapping[int, Software]) -> list[NDArray[np.float64]]:
    """Of each board and kind of CPU with two runs or more: log latency and log probe of its runs, both with mean 0."""
    latencies, probes = (measurements.cell(case.id, name).values for name in (LATENCY, PROBE))
    machines: dict[tuple[str | None, ...], list[tuple[float, float]]] = {}
    for block in sorted(set(latencies) & set(probes)):
        facts = software[block].facts if block in software else {}
        machine = facts.get(BOARD), facts.get(PROCESSOR)
        machines.setdefault(machine, []).append((latencies[block], probes[block]))
    logs = [log(np.array(runs)) for runs in machines.values() if len(runs) > 1]
    return [group - group.mean(axis=0) for group in logs]
