# SPDX-License-Identifier: Apache-2.0
"""How often a campaign runs each of its cases.

A plan has one number, and an entry of its matrix can have another. The number is no part of a case: a case that is run
more often later stays the same case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from pybench.case.case import Case

MOST_REPETITIONS = 100_000


@dataclass(frozen=True, slots=True)
class Repetitions:
    """`usual`: runs of a case whose entry says nothing; `by_case`: case id -> runs, where its entry says something."""

    usual: int
    by_case: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Out of a resolved plan. Raises KeyError or ValueError where it is malformed."""
        by_case = {case_id: int(number) for case_id, number in stored.get("case_repetitions", {}).items()}
        return cls(int(stored["repetitions"]), by_case)

    def as_json(self) -> dict[str, Any]:
        """`{repetitions}`, with `{case_repetitions: {case id: number}}` where some case has a number of its own."""
        own = {"case_repetitions": dict(self.by_case)} if self.by_case else {}
        return {"repetitions": self.usual, **own}

    def asked(self, case: Case) -> int:
        """How often the plan asks for a case, whatever its workload makes of that."""
        return self.by_case.get(case.id, self.usual) if self.by_case else self.usual

    def of(self, case: Case) -> int:
        """How often a case runs. Blocks are counted from 1, so these are its blocks, too."""
        most = case.workload_row.most_runs
        return self.asked(case) if most is None else min(self.asked(case), most)

    def runs(self, cases: Iterable[Case]) -> int:
        """Of all these cases together."""
        return sum(self.of(case) for case in cases)

    def blocks(self, cases: Iterable[Case]) -> int:
        """In how many blocks at least one of these cases runs."""
        return max((self.of(case) for case in cases), default=0)

    def stated(self, cases: Iterable[Case]) -> str:
        """The numbers that the plan asks for: `5`, or `5 or 7`."""
        *others, last = map(str, sorted({self.asked(case) for case in cases}))
        return f"{', '.join(others)} or {last}" if others else last

    def text(self, cases: Iterable[Case]) -> str:
        """`1 repetition`, `5 repetitions`, `5 or 7 repetitions`."""
        stated = self.stated(cases)
        return f"{stated} repetition" if stated == "1" else f"{stated} repetitions"
