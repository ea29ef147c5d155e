# SPDX-License-Identifier: Apache-2.0
"""How often a campaign runs each of its cases.

A plan has one number, and an entry of its matrix can have another. A plan may also say when blocks are enough: it then
has the largest number, and how many blocks were enough is known when the campaign has stopped. The number is no part of
a case: a case that is run more often later stays the same case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

from pybench.case.case import Case

MOST_REPETITIONS = 100_000
UNTIL = "decided"  # the one thing that a plan can wait for
LOOKS = (3, 5, 8, 12, 20, 32, 50, 80, 125, 200, 320, 500)
"""Blocks after which a comparison is looked at: about 1.6 times more each, as a look soon after another brings little.
docs/decisions/041-stopping-in-plans.md tells why there are none after 500."""

StopReason = Literal["decided", "blocks", "time"]


def looks_until(blocks: int) -> tuple[int, ...]:
    """The looks that a campaign of at most so many blocks takes: the last block is one of them."""
    return (*(look for look in LOOKS if look < blocks), blocks)


@dataclass(frozen=True, slots=True)
class Stop:
    """The end of a campaign. `after_block`: the last block that counts; `reason`: why no more of them are wanted."""

    after_block: int
    reason: StopReason


@dataclass(frozen=True, slots=True)
class StoppingRule:
    """Blocks are run until the plan's comparisons are decided.

    at_most: blocks
    within_s: how long all runs together may take, s; None: without a limit. The block that is going on then is the last
    """

    at_most: int
    within_s: float | None = None

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        if stored["until"] != UNTIL:
            raise ValueError(f"repetitions until {stored['until']}: this pybench has {UNTIL}")
        return cls(int(stored["at_most"]), stored.get("within_s"))

    def as_json(self) -> dict[str, Any]:
        """As a plan writes it."""
        within = {} if self.within_s is None else {"within_s": self.within_s}
        return {"until": UNTIL, "at_most": self.at_most, **within}

    @property
    def looks(self) -> tuple[int, ...]:
        return looks_until(self.at_most)

    def told(self, stop: Stop) -> str:
        """How a campaign stopped, as commands and reports say it."""
        stopped = f"stopped after block {stop.after_block} of at most {self.at_most}"
        if stop.reason == "decided":
            return f"{stopped}: decided"
        if stop.reason == "time":
            return f"not decided within {self.within_s:g} s: {stopped}"
        return f"not decided after {stop.after_block} blocks"


@dataclass(frozen=True, slots=True)
class Repetitions:
    """How often each case runs.

    usual: runs of a case whose entry says nothing
    by_case: case id -> runs, where its entry says something
    rule: when there are enough blocks; None: the numbers are fixed
    stop: where the rule has ended the campaign; `usual` is then the number of its blocks, before it is the largest
    """

    usual: int
    by_case: Mapping[str, int] = field(default_factory=dict)
    rule: StoppingRule | None = None
    stop: Stop | None = None

    @classmethod
    def until(cls, rule: StoppingRule) -> Self:
        return cls(rule.at_most, rule=rule)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Out of a resolved plan. Raises KeyError or ValueError where it is malformed."""
        if "stopping" in stored:
            return cls.until(StoppingRule.from_json(stored["stopping"]))
        by_case = {case_id: int(number) for case_id, number in stored.get("case_repetitions", {}).items()}
        return cls(int(stored["repetitions"]), by_case)

    def as_json(self) -> dict[str, Any]:
        """`{repetitions}`, with `{case_repetitions: {case id: number}}` where some case has a number of its own, and
        `{stopping}` where there is a rule."""
        if self.rule is not None:
            return {"repetitions": self.rule.at_most, "stopping": self.rule.as_json()}
        own = {"case_repetitions": dict(self.by_case)} if self.by_case else {}
        return {"repetitions": self.usual, **own}

    def stopped(self, stop: Stop | None) -> Repetitions:
        """The same after a stop, or, with None, before any."""
        if self.rule is None:
            return self
        return replace(self, usual=self.rule.at_most if stop is None else stop.after_block, stop=stop)

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
        """`1 repetition`, `5 repetitions`, `5 or 7 repetitions`, `at most 60 repetitions`."""
        stated = f"{self.most}{self.stated(cases)}"
        return f"{stated} repetition" if stated == "1" else f"{stated} repetitions"

    @property
    def most(self) -> str:
        """What stands before a number of runs: `at most `, or nothing where the number is known."""
        return "at most " if self.rule is not None and self.stop is None else ""
