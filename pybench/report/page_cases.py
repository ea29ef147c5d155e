# SPDX-License-Identifier: Apache-2.0
"""Cases as the script of the page knows them: by number, each with its values of the factors that tell cases apart.

A row of a table is of the cases whose ids are in its CSV, unless its cells name others (`Cell.cases`). The page has
their numbers in `data-cases`; marks of figures have them, too (`pybench.report.canvas.mark_cases`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from pybench.case import Case
from pybench.report.canvas import ID_CHARACTERS, MARKED
from pybench.report.labels import factor_title, naming_factors, value_text
from pybench.report.tables import Cell

_MARK = re.compile(rf'{MARKED}="([^"]*)"')


class PageCases:
    """All cases of a campaign, numbered from 0 in the order of its plan."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self._cases = cases
        self._numbers = {case.id: number for number, case in enumerate(cases)}
        self._by_mark = {case.id[:ID_CHARACTERS]: number for number, case in enumerate(cases)}

    @cached_property
    def as_json(self) -> dict[str, Any] | None:
        """`factors`: name, title and texts of the values. `cases`: for each factor the place of its value, or null
        where it means nothing for the case. None: no factor varies, so there is nothing to filter.

        How cases are measured is left out where other factors tell them apart.
        """
        factors, places = [], []
        for name in naming_factors(self._cases):
            values = {case.id: case.meant[name] for case in self._cases if name in case.meant}
            texts = {case_id: value_text(value) for case_id, value in values.items()}
            numbers = {texts[case_id]: value for case_id, value in values.items()}
            shown = sorted(numbers, key=lambda text: _order(numbers[text]))
            place = {text: at for at, text in enumerate(shown)}
            factors.append({"name": name, "title": factor_title(name), "values": shown})
            places.append([place[texts[case.id]] if case.id in texts else None for case in self._cases])
        return {"factors": factors, "cases": list(zip(*places, strict=True))} if factors else None

    def of_ids(self, ids: Iterable[str]) -> str:
        """`3 17`: the value of `data-cases`; empty where no id is one of a case."""
        found = {self._numbers[one] for one in ids if one in self._numbers}
        return " ".join(map(str, sorted(found)))

    def of_row(self, row: Iterable[Cell]) -> str:
        """As `of_ids`, for a row of a table."""
        named = (text for cell in row for text in (cell.csv if cell.cases is None else cell.cases))
        return self.of_ids(one for text in named for one in text.split(" "))

    def numbered(self, svg: str) -> str:
        """An SVG whose marks name their cases by number."""

        def number(match: re.Match[str]) -> str:
            return (
                f'data-cases="{" ".join(str(self._by_mark[one]) for one in match[1].split() if one in self._by_mark)}"'
            )

        return _MARK.sub(number, svg)


def _order(value: object) -> tuple[bool, float]:
    """Numbers ascend; other values keep the order of the plan."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return True, float(value)
    return False, 0.0
