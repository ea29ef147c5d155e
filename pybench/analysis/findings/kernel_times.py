# SPDX-License-Identifier: Apache-2.0
"""Where the time of each case goes: its longest nodes, and what share of it its kernels multiply, move and quantise.

By the profile of one run a case, which a report says. The shares of all runs are metrics.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from pybench.analysis.findings.kernel_rows import rows_of
from pybench.case import Case
from pybench.dataset import Dataset
from pybench.dataset.profiles import first_profiles
from pybench.kernels.profile import Kernel, Profile, total_ms

LONGEST = 10  # nodes of a case


@dataclass(frozen=True, slots=True)
class LongNode:
    """One of the longest entries of a case: ONNX nodes that one kernel computes or several.

    Where kernels name no node, it is all kernels of one name.

    nodes: their names in the ONNX file; empty where kernels name none
    own: the kernels that compute them
    around: the kernels that move and quantise for them
    """

    nodes: tuple[str, ...]
    own: tuple[Kernel, ...]
    around: tuple[Kernel, ...]

    @property
    def time_ms(self) -> float:
        return total_ms(self.own) + total_ms(self.around)


@dataclass(frozen=True, slots=True)
class KernelTimes:
    """`longest`: at most `LONGEST`, the longest first; empty where the profile has no times."""

    case: Case
    profile: Profile
    longest: tuple[LongNode, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "case_id": self.case.id,
            "profiled_ms": self.profile.total_ms if self.profile.has_times else None,
            "longest": [
                {
                    "nodes": list(entry.nodes),
                    "kernels": [kernel.kernel for kernel in entry.own],
                    "time_ms": entry.time_ms,
                    "around_ms": total_ms(entry.around),
                }
                for entry in self.longest
            ],
        }


def find_kernel_times(dataset: Dataset) -> tuple[KernelTimes, ...]:
    """Of each case of the plan with a profile. Raises CorruptError for a profile that cannot be read."""
    found = first_profiles(dataset)
    planned = ((case, found.get(case.id)) for case in dataset.plan.cases)
    return tuple(KernelTimes(case, profile, longest_of(profile)) for case, profile in planned if profile is not None)


def longest_of(profile: Profile) -> tuple[LongNode, ...]:
    """The longest entries of a profile."""
    if not profile.has_times:
        return ()
    nothing = Profile(source=profile.source, method="", iterations=0, kernels=())
    rows = rows_of((profile, nothing))
    by_name: dict[str, list[Kernel]] = defaultdict(list)
    for kernel in rows.unassigned[0]:
        by_name[kernel.kernel].append(kernel)
    entries = [LongNode(row.nodes, row.sides[0].own, row.sides[0].around) for row in rows.rows]
    entries += [LongNode((), tuple(kernels), ()) for kernels in by_name.values()]
    return tuple(sorted(entries, key=lambda entry: -entry.time_ms)[:LONGEST])
