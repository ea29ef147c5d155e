# SPDX-License-Identifier: Apache-2.0
"""One table, five forms: HTML cells, CSV for machines, Markdown, LaTeX (booktabs) and plain text for a terminal.

A cell knows its number as well as its text, so that a page sorts by value and CSV has full precision, or six digits of
a p value. A missing number is an em dash with its reason, never 0. Everything that comes from a plan or a log is
escaped in each form.
"""

from __future__ import annotations

import csv
import functools
import io
import itertools
import textwrap
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pybench.analysis.statistics.estimate import EQUAL, ONE_REPETITION, SCATTERED, SINGLE, WIDE, Estimate
from pybench.report.numbers import (
    DASH,
    DisplayUnit,
    decimals_for,
    format_bounds,
    format_estimate,
    format_fixed,
    format_p,
    format_plain,
    format_plus_minus,
)
from pybench.report.reasons import codes_of, group_text

UNITY = DisplayUnit(1.0, "")
_NO_ESTIMATE = ("",) * 5
# Tails of distributions differ between processors from the 14th digit on.
_CERTAIN_DIGITS_OF_P = 6
_GAP = 2  # spaces before a column of a terminal
_LEAST_TEXT = 16  # characters: a text that is folded to fewer is read worse than a long line


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table.

    text, interval: what is shown
    number: what the column is sorted by
    note: the reason or footnote
    href: address of a link
    tone: a verdict or an outcome, which colours it
    csv: the values that the columns of a CSV get, with full precision
    cases: ids of cases that the row is of, where these are not the ids in `csv`
    """

    text: str
    interval: str | None = None
    number: float | None = None
    note: str | None = None
    href: str | None = None
    tone: str | None = None
    csv: tuple[str, ...] = ()
    cases: tuple[str, ...] | None = None

    @property
    def full_text(self) -> str:
        return self.text if self.interval is None else f"{self.text} {self.interval}"


@dataclass(frozen=True, slots=True)
class Column:
    """`fields`: names of the columns that it becomes in a CSV; numbers are set right."""

    title: str
    fields: tuple[str, ...]
    numeric: bool = False


@dataclass(frozen=True, slots=True)
class Footnote:
    """`text`: what stands below the table; `notes`: of the cells that it is about."""

    text: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """`name`: of its files; `notes`: what holds for all rows (constant factors, units, how intervals were found).
    `prints_notes`: LaTeX sets notes below the table, for papers; else they are comments there."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    prints_notes: bool = False

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"table {self.name}: a row does not fit its {len(self.columns)} columns")

    @cached_property
    def footnotes(self) -> tuple[Footnote, ...]:
        """The notes of cells in order, those of one reason together."""
        groups: dict[str, list[str]] = {}
        for row in self.rows:
            for cell in row:
                if cell.note:
                    groups.setdefault(codes_of(cell.note), []).append(cell.note)
        return tuple(
            Footnote(group_text(notes, f"{len(notes)} cells"), tuple(dict.fromkeys(notes))) for notes in groups.values()
        )


# --- cells -----------------------------------------------------------------------------------------------------------


def text_cell(
    text: object,
    *,
    tone: str | None = None,
    note: str | None = None,
    href: str | None = None,
    cases: tuple[str, ...] | None = None,
) -> Cell:
    shown = DASH if text is None or text == "" else str(text)
    return Cell(shown, tone=tone, note=note, href=href, csv=("" if text is None else str(text),), cases=cases)


def number_cell(
    value: float | None, *, note: str | None = None, text: str | None = None, tone: str | None = None
) -> Cell:
    """A number without a width, such as a count; None is a dash with its reason."""
    if value is None:
        return Cell(DASH, note=note, tone=tone, csv=("",))
    return Cell(text or format_plain(value), number=value, note=note, tone=tone, csv=(repr(value),))


def p_cell(p_value: float | None, note: str | None = None) -> Cell:
    """A p value, rounded to the digits that every processor agrees on; None is a dash with its reason."""
    if p_value is None:
        return number_cell(None, note=note)
    return number_cell(float(f"{p_value:.{_CERTAIN_DIGITS_OF_P}g}"), text=format_p(p_value))


def estimate_cell(
    estimate: Estimate | None,
    *,
    unit: DisplayUnit = UNITY,
    why_none: str | None = None,
    signed: bool = False,
    tone: str | None = None,
) -> Cell:
    """value [lower, upper]; one repetition and degenerate intervals say so in the note."""
    if estimate is None:
        return Cell(DASH, note=why_none, csv=_NO_ESTIMATE)
    text, interval = format_estimate(estimate.scaled(1 / unit.scale), signed=signed)
    note = {
        SINGLE: ONE_REPETITION,
        WIDE: SCATTERED,
        EQUAL: f"{estimate.n} equal repetitions give no interval",
    }.get(estimate.method)
    return Cell(text, interval, estimate.value, note, tone=tone, csv=_estimate_csv(estimate))


def absolute_cell(
    estimate: Estimate | None, half: float | None, *, unit: DisplayUnit = UNITY, why_none: str | None = None
) -> Cell:
    """value ± half of its absolute 95 % interval; its columns are `absolute_fields`. Without a half as
    `estimate_cell`."""
    if estimate is None or half is None:
        cell = estimate_cell(estimate, unit=unit, why_none=why_none)
        return replace(cell, csv=(*cell.csv, ""))
    text, interval = format_plus_minus(estimate.value / unit.scale, half / unit.scale)
    return Cell(text, interval, estimate.value, csv=(*_estimate_csv(estimate), repr(half)))


def plus_minus_cell(value: float | None, half: float | None, *, note: str | None = None) -> Cell:
    """A number of one run with half an interval; None is a dash with its reason. Two CSV columns."""
    if value is None:
        return Cell(DASH, note=note, csv=("", ""))
    if half is None:
        return Cell(format_plain(value), number=value, note=note, csv=(repr(value), ""))
    text, interval = format_plus_minus(value, half)
    return Cell(text, interval, value, note, csv=(repr(value), repr(half)))


def bounds_cell(bounds: tuple[float, float], unit: DisplayUnit) -> Cell:
    """An estimate that is only ever an interval."""
    low, high = bounds
    text = format_bounds((low / unit.scale, high / unit.scale))
    return Cell(
        text, number=(low + high) / 2, note="bounds, not a measurement", csv=("", repr(low), repr(high), "", "bounds")
    )


def several_cell(values: Sequence[float], what: str, *, unit: DisplayUnit = UNITY, note: str) -> Cell:
    """Where one number is asked for and there are several: how many, and from where to where."""
    low, high = min(values), max(values)
    width = (high - low) / unit.scale
    ends = (
        [format_fixed(end / unit.scale, decimals_for(width)) for end in (low, high)] if width else [format_plain(low)]
    )
    text = f"{len(values)} {what}: {' to '.join(ends)}"
    return Cell(text, number=low, note=note, csv=("", repr(low), repr(high), str(len(values)), "several"))


def estimate_fields(name: str) -> tuple[str, ...]:
    """The CSV columns of an `estimate_cell`."""
    return name, f"{name}_lower", f"{name}_upper", f"{name}_n", f"{name}_method"


def absolute_fields(name: str) -> tuple[str, ...]:
    """The CSV columns of an `absolute_cell`."""
    return (*estimate_fields(name), f"{name}_absolute_95")


def _estimate_csv(estimate: Estimate) -> tuple[str, ...]:
    bounds = (estimate.value, estimate.lower, estimate.upper)
    return (*("" if bound is None else repr(bound) for bound in bounds), str(estimate.n), estimate.method)


# --- forms -----------------------------------------------------------------------------------------------------------


def to_csv(table: Table) -> str:
    """RFC 4180 with full precision; missing is empty."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([field for column in table.columns for field in column.fields])
    for row in table.rows:
        fields: list[str] = []
        for column, cell in zip(table.columns, row, strict=True):
            fields += cell.csv if len(cell.csv) == len(column.fields) else [cell.text, *[""] * (len(column.fields) - 1)]
        writer.writerow(fields)
    return stream.getvalue()


def to_markdown(table: Table) -> str:
    """A GitHub table with its title above and its notes below."""
    marks, footnotes = _footnotes(table)
    head = [_markdown(column.title) for column in table.columns]
    rule = ["---:" if column.numeric else "---" for column in table.columns]
    escaped = functools.cache(_markdown)  # names of cases, metrics and units stand in many rows
    body = [[escaped(cell.full_text) + _mark(marks, cell) for cell in row] for row in table.rows]
    lines = [f"**{_markdown(table.title)}**", "", *(f"| {' | '.join(row)} |" for row in (head, rule, *body)), ""]
    lines += [f"{_markdown(note)}  " for note in table.notes]
    lines += [f"{mark}: {_markdown(text)}  " for mark, text in footnotes.items()]
    return "\n".join(lines) + "\n"


def to_latex(table: Table) -> str:
    """A `tabular` for \\input inside a table environment; needs the package booktabs and nothing else."""
    marks, footnotes = _footnotes(table)
    layout = "".join("r" if column.numeric else "l" for column in table.columns)
    escaped = functools.cache(_latex)
    rows = [[escaped(cell.full_text + _mark(marks, cell)) for cell in row] for row in table.rows]
    lines = [
        f"% {_one_line(table.title)}",
        *(f"% {_one_line(note)}" for note in table.notes),
        rf"\begin{{tabular}}{{{layout}}}",
        r"\toprule",
        " & ".join(_latex(column.title) for column in table.columns) + r" \\",
        r"\midrule",
        *(" & ".join(row) + r" \\" for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
        *_latex_notes(table, footnotes),
    ]
    return "\n".join(lines) + "\n"


def _latex_notes(table: Table, footnotes: dict[str, str]) -> list[str]:
    """The text of each mark that stands in a cell, and of the notes where the table prints them."""
    printed = [_latex(note) for note in table.notes if table.prints_notes]
    printed += [f"{_latex(mark)} {_latex(text)}" for mark, text in footnotes.items()]
    if not printed:
        return []
    return [r"\par\smallskip", r"\begin{minipage}{\linewidth}\footnotesize", "\\par\n".join(printed), r"\end{minipage}"]


def to_text(table: Table, width: int | None = None) -> str:
    """Aligned columns for a terminal, reasons below. `width`: of the terminal, to which long texts are folded as far as
    they can be; numbers stay whole. None: nothing is folded."""
    marks, footnotes = _footnotes(table)
    cells = [[column.title for column in table.columns]]
    cells += [[_one_line(cell.full_text) + _mark(marks, cell) for cell in row] for row in table.rows]
    widths = [max(_width(row[index]) for row in cells) for index in range(len(table.columns))]
    if width is not None:
        widths = _fitted(table.columns, cells, widths, width - _GAP * len(widths))
    lines = [table.title]
    for row in cells:
        folded = [_folded(text, own) for text, own in zip(row, widths, strict=True)]
        for texts in itertools.zip_longest(*folded, fillvalue=""):
            padded = [
                _pad(text, own, column.numeric) for text, own, column in zip(texts, widths, table.columns, strict=True)
            ]
            lines.append(("  " + "  ".join(padded)).rstrip())
    notes = [_one_line(note) for note in table.notes]
    notes += [f"{mark}: {_one_line(text)}" for mark, text in footnotes.items()]
    lines += [f"  {line}" for note in notes for line in ([note] if width is None else _folded(note, width - _GAP))]
    return "\n".join(lines) + "\n"


def _fitted(columns: Sequence[Column], cells: Sequence[Sequence[str]], widths: Sequence[int], total: int) -> list[int]:
    """Widths whose sum is `total`, or the least ones if that is larger: the widest column gives way first."""
    least = []
    for index, (column, own) in enumerate(zip(columns, widths, strict=True)):
        head = max(map(_width, column.title.split(" ")))
        numbers = max((_width(row[index]) for row in cells[1:]), default=0) if column.numeric else _LEAST_TEXT
        least.append(min(own, max(head, numbers)))
    fitted = list(widths)
    while sum(fitted) > total:
        room = [own - low for own, low in zip(fitted, least, strict=True)]
        if not any(room):
            break
        fitted[max(range(len(fitted)), key=lambda index: (room[index] > 0, fitted[index]))] -= 1
    return fitted


def _folded(text: str, width: int) -> list[str]:
    """The lines of a text; what fits is one line, with its own spaces."""
    if _width(text) <= width:
        return [text]
    characters = width if _width(text) == len(text) else width // 2  # textwrap counts a wide character as one
    return textwrap.wrap(text, max(characters, 1), break_on_hyphens=False) or [""]


def _footnotes(table: Table) -> tuple[dict[str, str], dict[str, str]]:
    """(note of a cell -> its mark, mark -> text)."""
    marks = {note: f"({letter})" for note, letter in letters_of(table).items()}
    return marks, {marks[footnote.notes[0]]: footnote.text for footnote in table.footnotes}


def letters_of(table: Table) -> dict[str, str]:
    """Note of a cell -> the letter of its footnote. A digit would be read as a part of the number that it marks."""
    return {note: _letters(index) for index, footnote in enumerate(table.footnotes) for note in footnote.notes}


def _letters(index: int) -> str:
    """a … z, aa, ab, …"""
    before, letter = divmod(index, 26)
    return (_letters(before - 1) if before else "") + chr(ord("a") + letter)


def _mark(marks: dict[str, str], cell: Cell) -> str:
    return f" {marks[cell.note]}" if cell.note else ""


def _one_line(text: str) -> str:
    if not text.isprintable():
        text = "".join(character if character.isprintable() else " " for character in text)
    return " ".join(text.split())


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def _pad(text: str, width: int, right: bool) -> str:
    space = " " * (width - _width(text))
    return space + text if right else text + space


_MARKDOWN_SIGNS = str.maketrans({sign: f"\\{sign}" for sign in r"\`*_{}[]<>|#~$"})


def _markdown(text: str) -> str:
    return _one_line(text).translate(_MARKDOWN_SIGNS)


_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "*": "{*}", "'": r"\textquotesingle{}", "`": r"\textasciigrave{}", "-": r"{-}",
    "[": "{[}", "]": "{]}", "−": r"$-$", "—": "---", "–": "--", "×": r"$\times$", "…": r"\ldots{}", "µ": r"$\mu$",
    "≥": r"$\ge$", "≤": r"$\le$", "±": r"$\pm$", "²": r"$^2$", "³": r"$^3$", "⁶": r"$^6$", "⁹": r"$^9$",
    "Δ": r"$\Delta$", "δ": r"$\delta$", "°": r"$^\circ$", "→": r"$\to$", "ß": r"\ss{}", "æ": r"\ae{}", "ø": r"\o{}",
    "Æ": r"\AE{}", "Ø": r"\O{}", "ł": r"\l{}", "Ł": r"\L{}",
}  # fmt: skip
_LATEX_SIGNS = str.maketrans(_LATEX)
# Unicode's combining accents as LaTeX's commands.
_LATEX_ACCENTS = {
    "\N{COMBINING GRAVE ACCENT}": "`", "\N{COMBINING ACUTE ACCENT}": "'", "\N{COMBINING CIRCUMFLEX ACCENT}": "^",
    "\N{COMBINING TILDE}": "~", "\N{COMBINING DIAERESIS}": '"', "\N{COMBINING RING ABOVE}": "r",
    "\N{COMBINING CEDILLA}": "c", "\N{COMBINING CARON}": "v",
}  # fmt: skip


def _latex(text: str) -> str:
    """ASCII, what `_LATEX` names and letters with an accent; any other character by its code point, so that every
    engine compiles it."""
    named = _one_line(text).translate(_LATEX_SIGNS)
    return named if named.isascii() else "".join(map(_latex_sign, unicodedata.normalize("NFC", named)))


def _latex_sign(sign: str) -> str:
    if sign.isascii():
        return sign
    parts = unicodedata.normalize("NFD", sign)
    letter, accent = parts[0], parts[1:]
    if letter.isascii() and accent in _LATEX_ACCENTS:
        return rf"\{_LATEX_ACCENTS[accent]}{{{letter}}}"
    return rf"\texttt{{U+{ord(sign):04X}}}"
