# SPDX-License-Identifier: Apache-2.0
"""How much of its report a publication contains.

Whoever has the runs makes the page and the figures again. The numbers are evidence of their own: they were published,
so that a report of a later pybench can be compared with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from pybench.errors import CorruptError

KEY = "report"  # of publication.json; a publication without it is older than this choice, and has all


class ReportParts(StrEnum):
    """`ALL`: page, tables and figures. `NUMBERS`: the tables as CSV."""

    ALL = "all"
    NUMBERS = "numbers"

    @property
    def meaning(self) -> str:
        return _MEANINGS[self]


_MEANINGS = {
    ReportParts.ALL: "what was found: a page, tables and figures",
    ReportParts.NUMBERS: "what was found: tables of numbers (CSV), without the page",
}


def parts_of(description: Mapping[str, Any], where: object) -> ReportParts:
    """What the publication with this publication.json contains. `where`: its path, for the `CorruptError`."""
    named = description.get(KEY, ReportParts.ALL)
    try:
        return ReportParts(named)
    except ValueError as error:
        raise CorruptError(
            f"{where}: {KEY} is {str(named)[:80]!r}, not {' or '.join(ReportParts)}",
            hint="a newer pybench may have published it: update pybench",
        ) from error
