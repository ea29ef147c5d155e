# SPDX-License-Identifier: Apache-2.0
"""One table in its forms: full precision in CSV, reasons beside dashes, and nothing that a string could break out
of."""

from __future__ import annotations

import csv
import io
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest

from pybench.analysis.statistics.estimate import Estimate
from pybench.report.numbers import DisplayUnit
from pybench.report.tables import (
    Column,
    Table,
    estimate_cell,
    estimate_fields,
    letters_of,
    number_cell,
    p_cell,
    text_cell,
    to_csv,
    to_latex,
    to_markdown,
    to_text,
)
from tests.report.pages import compile_latex

NASTY = '<script>alert(1)</script> & 100% $x_1^2$ #{~} \\input{/etc/passwd} "q" `b` | a*b [c] \x00\n漢字 ñ'


def _table() -> Table:
    columns = (
        Column("Case", ("case",)),
        Column("Latency (ms)", estimate_fields("latency"), numeric=True),
        Column("Runs", ("runs",), numeric=True),
    )
    rows = (
        (
            text_cell("int8"),
            estimate_cell(Estimate(0.0012345678, 0.0012, 0.00127, 6, "Student t"), unit=DisplayUnit(1e-3, "ms")),
            number_cell(6),
        ),
        (text_cell(NASTY), estimate_cell(None, why_none="oom: cgroup"), number_cell(0)),
        (text_cell("[x]"), estimate_cell(Estimate(2.0, None, None, 1, "one value")), number_cell(1)),
        (text_cell("*y"), estimate_cell(None, why_none="oom: cgroup"), number_cell(None)),
    )
    return Table("cases", "Cases & so on", columns, rows, ("In all rows: model_a.",))


def test_csv_has_full_precision_and_empty_for_missing() -> None:
    rows = list(csv.reader(io.StringIO(to_csv(_table()))))
    assert rows[0] == ["case", "latency", "latency_lower", "latency_upper", "latency_n", "latency_method", "runs"]
    assert rows[1] == ["int8", "0.0012345678", "0.0012", "0.00127", "6", "Student t", "6"]
    assert rows[2][0] == NASTY
    assert rows[2][1:] == ["", "", "", "", "", "0"]
    assert rows[3][1:] == ["2.0", "", "", "1", "one value", "1"]


def test_dashes_name_their_reason_once() -> None:
    for form in (to_markdown, to_text):
        text = form(_table())
        assert text.count("oom: cgroup") == 1
        assert "— (a)" in text
        assert "one repetition gives no interval" in text


def test_after_z_a_footnote_has_two_letters() -> None:
    rows = tuple((estimate_cell(None, why_none=f"reason {number}"),) for number in range(54))
    table = Table("many", "Many", (Column("Value", estimate_fields("value")),), rows)
    letters = [*letters_of(table).values()]
    assert letters[:2] + letters[25:28] + letters[51:] == ["a", "b", "z", "aa", "ab", "az", "ba", "bb"]
    assert len(set(letters)) == 54
    assert "— (ab)" in to_text(table)


LONG = Table(
    "cautions",
    "Cautions",
    (
        Column("Caution", ("caution",)),
        Column("Number of runs", ("runs",), numeric=True),
        Column("Meaning", ("meaning",)),
        Column("What to do", ("advice",)),
    ),
    (
        (
            text_cell("not_steady"),
            number_cell(11),
            text_cell("the timed iterations do not look steady, because there is a trend or a shift of the level"),
            text_cell("raise `warmup_iterations`, or look for the shift in iterations.csv"),
        ),
        (text_cell("outliers"), number_cell(123456), text_cell("漢字" * 30), text_cell(None)),
    ),
    ("A note that is longer than a terminal of sixty columns is folded at its words, too.",),
)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_long_texts_are_folded_to_the_terminal_and_numbers_stay_whole(width: int) -> None:
    lines = to_text(LONG, width).splitlines()
    assert max(len(line) + line.count("漢") + line.count("字") for line in lines) <= width
    assert any("123,456" in line for line in lines)
    assert lines[1].startswith("  Caution")
    if width > 60:  # else the columns are narrower than these words
        assert all(any(word in line for line in lines) for word in ("`warmup_iterations`,", "iterations.csv"))


def test_a_row_of_folded_texts_has_its_first_line_in_the_row_of_its_number() -> None:
    lines = to_text(LONG, 80).splitlines()
    (first,) = [line for line in lines if "not_steady" in line]
    assert "11" in first
    assert "the timed" in first
    assert "raise" in first


def test_numbers_that_do_not_fit_are_not_folded() -> None:
    rows = ((estimate_cell(Estimate(0.0012345678, 0.0012, 0.00127, 6, "Student t")), number_cell(123456)),)
    columns = (Column("Time", estimate_fields("time"), numeric=True), Column("Bytes read", ("bytes",), numeric=True))
    text = to_text(Table("n", "N", columns, rows), 10)
    assert "[0.001200, 0.001270]  123,456" in text


def test_without_a_terminal_nothing_is_folded() -> None:
    assert max(map(len, to_text(LONG).splitlines())) > 150
    assert to_text(LONG, 400) == to_text(LONG)


def test_markdown_lets_no_string_break_the_table() -> None:
    lines = [line for line in to_markdown(_table()).splitlines() if line.startswith("|")]
    assert len(lines) == 6
    for line in lines:
        assert line.replace("\\|", "").count("|") == 4
    assert "<script>" not in to_markdown(_table()).replace("\\<", "")


def test_latex_escapes_everything() -> None:
    body = to_latex(_table()).split(r"\midrule")[1]
    assert r"\input" not in body
    assert r"100\% \$x\_1\textasciicircum{}2\$ \#\{\textasciitilde{}\}" in body
    assert r"\texttt{U+6F22}" in body
    assert "\x00" not in body


def test_latex_sets_the_text_of_each_mark_in_a_cell_and_notes_where_asked() -> None:
    """A mark without its text cannot be printed in a paper."""

    def set_text(table: Table) -> str:
        return "\n".join(line for line in to_latex(table).splitlines() if not line.startswith("%"))

    assert set_text(_table()).count("oom: cgroup") == 1
    assert "In all rows" not in set_text(_table())
    assert "In all rows" in set_text(replace(_table(), prints_notes=True))
    plain = replace(_table(), rows=_table().rows[:1])
    assert set_text(plain).endswith(r"\end{tabular}")


def test_latex_names_letters_with_an_accent_for_every_engine() -> None:
    """The second word is the first one as some file systems give it: letter and accent are two characters."""
    composed, split = "Größe-é", unicodedata.normalize("NFD", "Größe-é")
    table = Table("t", "title", (Column("A", ("a",)), Column("B", ("b",))), ((text_cell(composed), text_cell(split)),))
    told = r"Gr\"{o}\ss{}e{-}\'{e}"
    assert f"{told} & {told}" in to_latex(table).split(r"\midrule")[1]


def test_latex_comments_cannot_be_escaped_from() -> None:
    table = Table("t", "a\n\\input{evil}", (Column("A", ("a",)),), ((text_cell("x"),),))
    assert to_latex(table).splitlines()[0] == "% a \\input{evil}"


@pytest.mark.process
def test_latex_compiles(tmp_path: Path) -> None:
    compile_latex(to_latex(_table()), tmp_path)


def test_plain_text_is_aligned() -> None:
    lines = to_text(_table()).splitlines()[1:6]
    assert len({line.rstrip()[-1] for line in lines[1:3]}) == 2
    assert lines[1].index("int8") == lines[3].index("[x]")


def test_a_row_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        Table("t", "t", (Column("A", ("a",)),), ((text_cell("x"), text_cell("y")),))


def test_more_than_26_reasons_have_marks() -> None:
    rows = tuple((estimate_cell(None, why_none=f"reason {index}"),) for index in range(30))
    assert "(ad): reason 29" in to_text(Table("t", "t", (Column("A", estimate_fields("a")),), rows))


def test_a_p_value_has_the_digits_that_every_processor_agrees_on() -> None:
    """Both numbers were printed for the same samples, by processors with and without the same vectors."""
    one, other = 0.003589963657795449, 0.0035899636577954473
    assert p_cell(one) == p_cell(other)
    assert p_cell(one).csv == ("0.00358996",)
    assert p_cell(1.3203508096243248e-18) == p_cell(1.3203508096243279e-18)
    assert p_cell(None, note="one repetition").note == "one repetition"
