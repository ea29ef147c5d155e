# SPDX-License-Identifier: Apache-2.0
"""The frontier of memory: of cases that differ in batch alone, the largest that ran and the smallest that did not fit.

Only batches of the plan count: nothing is searched between them. A batch that ran out of memory in one of its runs is
one that does not fit, whatever its other runs did. Batches that ended otherwise say nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pybench.case import Case
from pybench.dataset.coverage import CaseCoverage


@dataclass(frozen=True, slots=True)
class Frontier:
    """One setting.

    cases: all of its planned batches, ascending
    ran: the largest batch that ran; None: none did
    failed: the smallest batch that ran out of memory; None: none did
    """

    cases: tuple[Case, ...]
    ran: Case | None
    failed: Case | None


def find_frontiers(covered: Sequence[CaseCoverage]) -> tuple[Frontier, ...]:
    """Every setting with several batches, or one that did not fit, in the plan's order; none where all of them fit."""
    settings: dict[str, list[CaseCoverage]] = {}
    for one in covered:
        if one.case.model is not None:
            settings.setdefault(one.case.with_factors(batch=1, fixed_batch=None).id, []).append(one)
    found = [_frontier(sorted(members, key=lambda one: one.case.batch)) for members in settings.values()]
    if not any(one.failed for one in found):
        return ()
    return tuple(one for one in found if len(one.cases) > 1 or one.failed is not None)


def _frontier(members: Sequence[CaseCoverage]) -> Frontier:
    failed = [one.case for one in members if one.states.get("oom")]
    ran = [one.case for one in members if one.states.get("ok") and not one.states.get("oom")]
    return Frontier(tuple(one.case for one in members), ran[-1] if ran else None, failed[0] if failed else None)
