# SPDX-License-Identifier: Apache-2.0
"""The kernels of two runtimes side by side: cases that differ in the runtime and its own factors alone.

In each group of such cases the first of the plan is compared with every other. Profiles are of one run a case.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from pybench.analysis.comparability import SoftwareDifference, differences_of_cases
from pybench.analysis.findings.kernel_times import KernelTimes
from pybench.case import Case
from pybench.catalogue.runtimes import RUNTIME_FACTORS
from pybench.dataset import Dataset
from pybench.kernels.profile import WORKS, Profile, Work, total_ms, work_of

_OF_RUNTIMES = frozenset({"runtime", *RUNTIME_FACTORS})


@dataclass(frozen=True, slots=True)
class WorkPair:
    """What the kernels of one kind of work are on both sides. `times_ms`: None where a profile has no times."""

    work: Work
    counts: tuple[int, int]
    times_ms: tuple[float | None, float | None]


@dataclass(frozen=True, slots=True)
class KernelPair:
    """Two cases of one group, and their kernels by kind of work; kinds that neither has are left out."""

    cases: tuple[Case, Case]
    profiles: tuple[Profile, Profile]
    works: tuple[WorkPair, ...]
    software: tuple[SoftwareDifference, ...]
    """What the runs of the two have different values of; the first case is the baseline."""


def find_kernel_pairs(dataset: Dataset, found: Sequence[KernelTimes]) -> tuple[KernelPair, ...]:
    """Every pair of a group's first case with another of the group."""
    groups: dict[tuple[tuple[str, str], ...], list[KernelTimes]] = defaultdict(list)
    for times in found:
        groups[shared_factors(times.case)].append(times)
    return tuple(_pair(dataset, group[0], other) for group in groups.values() for other in group[1:])


def shared_factors(case: Case) -> tuple[tuple[str, str], ...]:
    """The chosen factors of a case that are of no runtime, as texts, and the digests of its files."""
    chosen = ((name, str(value)) for name, value in case.chosen().items() if name not in _OF_RUNTIMES)
    return tuple(sorted(chosen))


def _pair(dataset: Dataset, first: KernelTimes, other: KernelTimes) -> KernelPair:
    profiles = (first.profile, other.profile)
    works = []
    for work in WORKS:
        counts = (len(work_of(profiles[0], work)), len(work_of(profiles[1], work)))
        if work != "nothing" and any(counts):
            works.append(WorkPair(work, counts, (_time_ms(profiles[0], work), _time_ms(profiles[1], work))))
    software = differences_of_cases(dataset, other.case, first.case)
    return KernelPair((first.case, other.case), profiles, tuple(works), software)


def _time_ms(profile: Profile, work: Work) -> float | None:
    return total_ms(work_of(profile, work)) if profile.has_times else None
