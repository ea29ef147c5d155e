# SPDX-License-Identifier: Apache-2.0
"""Options: what a plan can set of a row that an installed package adds, next to pybench's own factors.

The list of factors is closed. An option has a dot in its name, and its first word is the package's entry point.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

OptionKind = Literal["choice", "text", "integer", "number", "boolean"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option of a row.

    name: as plans name it, such as `acme.depth`
    kind: which values it takes
    default: its value where a plan says nothing
    meaning: what it sets, for plans' authors
    choices: the values of a `choice`
    minimum, maximum: of a number
    """

    name: str
    kind: OptionKind
    default: str | int | float | bool
    meaning: str
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
