# SPDX-License-Identifier: Apache-2.0
"""Reasons that differ in their facts alone are one: a footnote, or a row of the table of missing values."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybench.analysis import analyse
from pybench.case import Case
from pybench.catalogue.reasons import Reason, ReasonCode
from pybench.dataset import load
from pybench.measure.quantity import Quantity
from pybench.report import write_report
from pybench.report.reasons import because, codes_of, group_text
from pybench.report.sections.reliability.exclusions import exclusions_table
from pybench.report.tables import Column, Table, number_cell, to_latex, to_markdown, to_text
from tests.support.campaigns import CampaignBuilder

SHORT, SHORTER = (f"utilisation_unread: the window is {length} s long" for length in (0.9, 0.8))
MEANING = ReasonCode.UTILISATION_UNREAD.meaning


def test_what_differs_is_an_example_and_what_is_equal_is_told_in_full() -> None:
    assert group_text([SHORT, SHORT], "2 cells") == SHORT
    told = f"utilisation_unread: {MEANING} (2 cells; one of them: the window is 0.9 s long)"
    assert group_text([SHORT, SHORTER], "2 cells") == told
    assert group_text([f"the baseline: {SHORT}", f"the baseline: {SHORTER}"], "2 cells") == f"the baseline: {told}"


@pytest.mark.parametrize("side", ["", "the baseline: "])
def test_a_code_without_facts_has_its_meaning(side: str) -> None:
    meaning = ReasonCode.NOT_TOLD.meaning
    assert group_text([f"{side}not_told", f"{side}not_told"], "2 cells") == f"{side}not_told: {meaning}"
    assert group_text(["not measured"]) == "not measured"


def test_a_reason_that_is_said_twice_is_said_once() -> None:
    twice = f"{SHORT}; {SHORT}"
    assert codes_of(twice) == codes_of(SHORT)
    assert group_text([SHORT, twice], "2 cells") == group_text([twice]) == SHORT


def test_texts_are_of_one_group_where_all_their_codes_are_equal() -> None:
    assert codes_of(SHORT) == codes_of(SHORTER)
    assert codes_of(f"the baseline: {SHORT}") == codes_of(f"the baseline: {SHORTER}") != codes_of(SHORT)
    assert codes_of(f"{SHORT}; gap: 3 s") == codes_of(f"{SHORTER}; gap: 4 s; at the end") != codes_of(SHORT)
    assert codes_of("a note: of words") == "a note: of words"
    assert codes_of("crashed: signal 9") != codes_of("crashed: signal 11")


@pytest.mark.parametrize(
    ("why", "said"),
    [
        ("not measured", "because it was not measured"),
        ("the case: not measured", "because the case was not measured"),
        (f"the baseline: {SHORT}", f"because the baseline has no value ({SHORT})"),
        ("timing: below_clock_resolution", "because of timing (below_clock_resolution)"),
        ("no_int8_kernels", "because of no_int8_kernels"),
        ("not comparable: the software differs", "because the software differs"),
        ("the two runs differ in 3 of 8 blocks: torch", "because the two runs differ in 3 of 8 blocks (torch)"),
    ],
)
def test_a_reason_ends_a_sentence_without_a_colon(why: str, said: str) -> None:
    assert because(why) == said
    assert ": " not in because(why).partition("(")[0]


def test_footnotes_of_one_reason_are_one() -> None:
    notes = (SHORT, SHORTER, "not measured", SHORT)
    rows = tuple((number_cell(None, note=note),) for note in notes)
    table = Table("t", "Title", (Column("Value", ("value",)),), rows)
    for text in (to_text(table), to_markdown(table), to_latex(table)):
        assert text.count("(a)") == 4  # three cells, and below the table
        assert text.count("(b)") == 2
        assert text.count("3 cells; one of them: the window is 0.9 s long") == 1


def test_missing_values_of_one_reason_are_one_row(tmp_path: Path) -> None:
    cases = [Case(workload="noop", device="cpu", threads=threads) for threads in (1, 2)]
    builder = CampaignBuilder(tmp_path / "c", cases, repetitions=2)
    for case in cases:
        for block in (1, 2):
            reason = Reason(ReasonCode.UTILISATION_UNREAD, f"the window is 0.{case.threads}{block} s long")
            missing = Quantity(window="timing", method="nvml-utilisation", scope="board", reasons=(reason,))
            builder.run(case, block, {"latency_mean_ms": 1.0 + 0.1 * block, "gpu_utilisation_ratio": missing})
    ((metric, kind, why, values, titles),) = exclusions_table(analyse(load(builder.path))).rows
    assert (metric.text, kind.text, values.number) == ("GPU utilisation", "missing", 4)
    assert why.text == f"utilisation_unread: {MEANING} (one of them: the window is 0.11 s long)"
    assert titles.text == f"2 cases, such as {cases[0].title()}"
    page = write_report(load(builder.path)).read_text()
    assert page.count('title="utilisation_unread: the window is 0.') == 2  # a cell of each case has its own facts
    assert page.count("(2 cells; one of them: the window is 0.11 s long)") == 1
