# SPDX-License-Identifier: Apache-2.0
"""What the codes of reasons have in common: each is a member of a closed list, and its own row.

`causes` and `reasons` have the members.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Literal

Kind = Literal["invalid", "remark", "missing", "sensor", "validity", "unsupported", "outcome"]
WORD = re.compile(r"<\w+>")  # in a code, for a name


class ReasonRow(StrEnum):
    """`CODE = (code, kind, meaning, advice)`.

    code: what is stored; each `<word>` in it stands for one name of its kind, as in `no_<precision>_in_<runtime>`
    kind: of one value, `invalid` ends the validity of what the reason is said of, `remark` leaves it valid, `missing`
        says why nothing was measured, and `sensor` what the profile of a sensor lacks;
        `validity` of a part of a run, `unsupported` of a case, `outcome` of a run that ended otherwise than planned
    meaning: what has happened
    advice: what to do, beginning with a verb
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
