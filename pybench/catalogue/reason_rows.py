# SPDX-License-Identifier: Apache-2.0
"""A reason, and what the codes of reasons have in common: each is a member of a closed list, and its own row.

`causes` and `reasons` have the members; `reasons` reads what was stored.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

Kind = Literal["invalid", "remark", "missing", "sensor", "validity", "unsupported", "outcome"]
WORD = re.compile(r"<\w+>")  # in a code, for a name


class ReasonRow(StrEnum):
    """`CODE = (code, kind, meaning, advice)`.

    code: what is stored; each `<word>` in it stands for one name of its kind, as in `no_<precision>_in_<runtime>`
    kind: what the reason is said of, and what follows from it (below)
    meaning: what has happened
    advice: what to do, beginning with a verb

    The kinds of one value: `invalid` ends the validity of what the reason is said of, `remark` leaves it valid.
    `missing` says why nothing was measured, and `sensor` what the profile of a sensor lacks. The others: `validity` of
    a part of a run, `unsupported` of a case, `outcome` of a run that ended otherwise than planned.
    """

    kind: Kind
    meaning: str
    advice: str

    def __new__(cls, code: str, kind: Kind, meaning: str, advice: str) -> ReasonRow:
        member = str.__new__(cls, code)
        member._value_ = code
        member.kind = kind
        member.meaning = meaning
        member.advice = advice
        return member

    @property
    def code(self) -> str:
        return self.value

    @property
    def invalidates(self) -> bool:
        return self.kind == "invalid"

    def because(self, detail: str, names: tuple[str, ...] = ()) -> Reason:
        """A reason with this code, for `errors`, which imports nothing of the catalogue."""
        return Reason(self, detail, names)


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason: a code with the facts behind it.

    A package outside pybench gives a code of its own as `Reason(ReasonCode.OTHER, names=("its_code",))`.
    Raises ValueError where a code has more or fewer words than there are names.
    """

    code: ReasonRow
    detail: str = ""
    """The facts behind it; empty where the code says it all."""
    names: tuple[str, ...] = ()
    """What stands for each `<word>` of the code, in its order."""

    def __post_init__(self) -> None:
        if len(WORD.findall(self.code)) != len(self.names):
            raise ValueError(f"{self.code} with the names {self.names}")

    @property
    def stored_code(self) -> str:
        """The code with its names: what run.json stores and a table shows."""
        names = iter(self.names)
        return WORD.sub(lambda _: next(names), self.code)

    @property
    def words(self) -> str:
        """What happened, for people: the facts, or what the code means."""
        return self.detail or self.code.meaning

    def __str__(self) -> str:
        """The stored form of a reason of a value, `code: detail`."""
        return f"{self.stored_code}: {self.detail}" if self.detail else self.stored_code
