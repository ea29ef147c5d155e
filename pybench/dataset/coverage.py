# SPDX-License-Identifier: Apache-2.0
"""Coverage: which cells of the plan (case, block) have a run that counts, and why the others do not.

`ok`, `oom` and `unsupported` cover a cell: the answer is known. Every other outcome, and a run that never finished,
leaves it open. What a cell should hold comes from the campaign's own plan.resolved.json, so a plan edited since does
not change the verdict on what ran. Whether the numbers inside a covered cell are valid is `pybench.analysis`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pybench.campaign.layout import COVERING, OUTCOMES
from pybench.case import Case, distinct_titles
from pybench.dataset import Dataset
from pybench.words import counted

MISSING = "missing"
UNFINISHED = "unfinished"  # has a folder, but no attempt of it is complete: a killed runner, or one still at work
STATES = (*OUTCOMES, UNFINISHED, MISSING)


@dataclass(frozen=True, slots=True)
class CaseCoverage:
    """One planned case.

    planned: number of its blocks
    states: state -> number of blocks
    reasons: reason -> number of runs that gave it
    """

    case: Case
    planned: int
    states: Mapping[str, int]
    reasons: Mapping[str, int]

    @property
    def covered(self) -> int:
        return sum(self.states.get(outcome, 0) for outcome in COVERING)


@dataclass(frozen=True, slots=True)
class Coverage:
    """The whole plan. `orphans`: case id -> number of runs of cases that the plan does not hold (any more); `beyond`:
    number of runs in blocks beyond its repetitions. Neither count anywhere."""

    cases: tuple[CaseCoverage, ...]
    orphans: Mapping[str, int]
    beyond: int
    finished: int
    """Finished runs of the plan and makings of artefacts."""
    artefacts: int
    """How many of them are makings of artefacts."""
    unguarded: int
    """How many of them have no digests: an older pybench made them."""

    @property
    def planned(self) -> int:
        return sum(case.planned for case in self.cases)

    @property
    def covered(self) -> int:
        return sum(case.covered for case in self.cases)

    @property
    def covered_text(self) -> str:
        """`3 of 4 planned runs are covered`."""
        return f"{self.covered} of {self.planned} planned runs {'is' if self.covered == 1 else 'are'} covered"

    @property
    def finished_text(self) -> str:
        """`16 runs and 3 artefacts`."""
        runs = self.finished - self.artefacts
        texts = [counted(runs, "run"), *([counted(self.artefacts, "artefact")] if self.artefacts else [])]
        return " and ".join(texts)

    @property
    def uncovered_text(self) -> str:
        """`1 of 4 planned runs is not covered`."""
        missing = self.planned - self.covered
        return f"{missing} of {self.planned} planned runs {'is' if missing == 1 else 'are'} not covered"

    @property
    def is_full(self) -> bool:
        return self.covered == self.planned

    @property
    def states(self) -> dict[str, int]:
        """State -> number of planned cells, in the order of `STATES`, without those that do not occur."""
        total: Counter[str] = Counter()
        for case in self.cases:
            total.update(case.states)
        return {state: total[state] for state in STATES if total[state]}

    def as_json(self) -> dict[str, Any]:
        titles = distinct_titles([entry.case for entry in self.cases])
        return {
            "planned": self.planned,
            "covered": self.covered,
            "full": self.is_full,
            "states": self.states,
            "cases": [
                {
                    "case_id": entry.case.id,
                    "title": titles[entry.case.id],
                    "planned": entry.planned,
                    "covered": entry.covered,
                    "states": dict(entry.states),
                    "reasons": dict(entry.reasons),
                }
                for entry in self.cases
            ],
            "orphans": dict(self.orphans),
            "beyond_repetitions": self.beyond,
            "finished": self.finished,
            "artefacts": self.artefacts,
            "unguarded": self.unguarded,
        }


def measure(dataset: Dataset) -> Coverage:
    """Compares what the plan asks with what ran."""
    runs: dict[str, dict[int, tuple[str, str | None]]] = {}
    for case_id, block, outcome, reason in dataset.runs.select("case_id", "block", "outcome", "reason").iter_rows():
        runs.setdefault(case_id, {})[block] = (outcome, reason)
    return Coverage(
        cases=tuple(_measure_case(case, runs.get(case.id, {}), dataset) for case in dataset.plan.cases),
        orphans=dataset.orphans,
        beyond=dataset.beyond,
        finished=dataset.finished,
        artefacts=len(dataset.artefacts),
        unguarded=dataset.unguarded,
    )


def _measure_case(case: Case, runs: Mapping[int, tuple[str, str | None]], dataset: Dataset) -> CaseCoverage:
    states: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    planned = dataset.plan.repetitions.of(case)
    for block in range(1, planned + 1):
        if block in runs:
            outcome, reason = runs[block]
            states[outcome] += 1
            reasons.update([reason] if reason is not None else [])
        else:
            states[UNFINISHED if (case.id, block) in dataset.unfinished else MISSING] += 1
    return CaseCoverage(case, planned, {state: states[state] for state in STATES if states[state]}, dict(reasons))
