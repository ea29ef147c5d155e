# SPDX-License-Identifier: Apache-2.0
"""A published table of numbers (CSV) against the one that is made again.

A later pybench may add columns and rows; every published cell has to be there with the same text. Columns belong
together by their names, and rows by their order. A cell is a number where Python reads it as one.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pybench.words import counted

_Row = Sequence[str]
_SHOWN = 100  # characters of a cell


@dataclass(frozen=True, slots=True)
class TableComparison:
    """keeps_numbers, keeps_all: whether every published number, or every published cell, is in the table made again.
    how: what differs."""

    keeps_numbers: bool
    keeps_all: bool
    how: str


def compare_tables(published: bytes, made: bytes) -> TableComparison:
    """Two files of CSV, each with a header, that are not the same bytes."""
    try:
        (names, *rows), (new_names, *new_rows) = _read(published), _read(made)
    except (UnicodeDecodeError, csv.Error) as error:
        return TableComparison(False, False, f"cannot be compared: {error}")
    gone = [name for name in names if name not in new_names]
    if gone:
        return TableComparison(False, False, f"has no column {gone[0]!r} now")
    places = [new_names.index(name) for name in names]
    shown = [[row[place] for place in places] for row in new_rows]
    by_number, by_cell = (_first_missing(rows, shown, is_same) for is_same in (_has_numbers_of, _is_same))
    if by_number is not None:
        return TableComparison(False, False, by_number.text(names, rows, shown))
    if by_cell is not None:
        return TableComparison(True, False, by_cell.text(names, rows, shown))
    counts = (counted(len(new_names) - len(names), "more column"), counted(len(new_rows) - len(rows), "more row"))
    return TableComparison(True, True, f"has all published cells, {' and '.join(counts)}")


def _read(content: bytes) -> list[list[str]]:
    csv.field_size_limit(max(csv.field_size_limit(), len(content)))  # a cell can have the ids of thousands of cases
    return list(csv.reader(io.StringIO(content.decode(), newline=""))) or [[]]


@dataclass(frozen=True, slots=True)
class _Missing:
    """`row`: of the published table; `place`: where it would be in the one made again. Both from 0."""

    row: int
    place: int

    def text(self, names: _Row, rows: Sequence[_Row], made: Sequence[_Row]) -> str:
        if self.place == len(made):
            return f"has no row {self.row + 1} now"
        cells = zip(names, rows[self.row], made[self.place], strict=False)
        name, was, now = next((cell for cell in cells if cell[1] != cell[2]), ("", "", ""))
        return f"differs in row {self.row + 1}, {name}: {was[:_SHOWN]!r} published, {now[:_SHOWN]!r} made again"


def _first_missing(
    rows: Sequence[_Row], made: Sequence[_Row], is_same: Callable[[_Row, _Row], bool]
) -> _Missing | None:
    place = 0
    for number, row in enumerate(rows):
        found = next((at for at in range(place, len(made)) if is_same(row, made[at])), None)
        if found is None:
            return _Missing(number, place)
        place = found + 1
    return None


def _is_same(row: _Row, made: _Row) -> bool:
    return list(row) == list(made)


def _has_numbers_of(row: _Row, made: _Row) -> bool:
    return len(row) == len(made) and all(was == now or not _is_number(was) for was, now in zip(row, made, strict=True))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
