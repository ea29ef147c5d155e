# SPDX-License-Identifier: Apache-2.0
"""Architectures and compilers: whether compiling reverses the order of architectures, and batch friction.

architecture-order  one row a pair of architectures, setting and compiling runtime: both ratios, and what became of them
batch-friction      one row a case with a batch above 1: its time per sample over that at batch 1
"""

from __future__ import annotations

from collections.abc import Sequence

from pybench.analysis.findings.architectures import ArchitectureFinding, ArchitectureOrder, architecture_of
from pybench.case import Case
from pybench.report.labels import case_names, case_text, varying_factors
from pybench.report.sections.elements import Element, Material, Paragraph, Section, Sentences, Tables
from pybench.report.sentences import Sentence, estimate_text
from pybench.report.tables import Cell, Column, Table, estimate_cell, estimate_fields, number_cell, text_cell

_LEAD = "Which architecture is faster when its operators are called one by one, and which when they are compiled."
_TONES = {"kept": None, "reversed": "good", "open": None}
_WORDS = {"kept": "kept", "reversed": "reversed", "open": "undecided"}
_ROWS_ON_PAGE = 40
_MOST_NAMED = 8  # reversals that are sentences; the table has all of them


def build(material: Material) -> list[Element]:
    found = material.analysis.architectures
    if found is None:
        return []
    elements: list[Element] = [Paragraph(_LEAD, "lead")]
    if found.orders:
        elements.append(Sentences([*_verdicts(found.orders), *_reversals(found.orders)]))
    return [*elements, Tables(lambda: _tables(found), is_printed=True, rows_on_page=_ROWS_ON_PAGE)]


def _tables(found: ArchitectureFinding) -> list[Table]:
    tables = [order_table(found)] if found.orders else []
    return [*tables, friction_table(found)] if found.frictions else tables


# --- sentences -------------------------------------------------------------------------------------------------------


def _verdicts(orders: Sequence[ArchitectureOrder]) -> list[Sentence]:
    """One for each compiling runtime."""
    found = []
    for runtime in dict.fromkeys(one.first.runtime for one in orders):
        of_runtime = [one for one in orders if one.first.runtime == runtime]
        counts = {word: sum(one.change == word for one in of_runtime) for word in _WORDS}
        eager = of_runtime[0].eager_first.runtime
        reversal = "reverses the order" if counts["reversed"] else "is not shown to reverse the order"
        text = (
            f"{reversal} of architectures against {eager}: of {len(of_runtime)} pairs, {counts['reversed']} reversed, "
            f"{counts['kept']} kept, {counts['open']} undecided."
        )
        found.append(Sentence(str(runtime), text, "neutral"))
    return found


def _reversals(orders: Sequence[ArchitectureOrder]) -> list[Sentence]:
    reversed_ones = [one for one in orders if one.change == "reversed"]
    settings = _settings([one.first for one in reversed_ones])
    return [
        Sentence(
            f"{_pair_text(one)}{f' ({setting})' if setting else ''}",
            f"{estimate_text(one.eager, signed=False, ratio=True)} in {one.eager_first.runtime}, "
            f"{estimate_text(one.compiled, signed=False, ratio=True)} in {one.first.runtime}.",
            "neutral",
        )
        for one, setting in list(zip(reversed_ones, settings, strict=True))[:_MOST_NAMED]
    ]


def _pair_text(order: ArchitectureOrder) -> str:
    return " / ".join(str(case.value(str(architecture_of(case)))) for case in (order.first, order.second))


def _settings(cases: Sequence[Case]) -> list[str]:
    """What tells the settings of pairs apart: neither the runtime nor the architecture."""
    names = [name for name in varying_factors(cases) if name != "runtime" and name not in map(architecture_of, cases)]
    return [case_text(case, names) for case in cases]


# --- tables ----------------------------------------------------------------------------------------------------------


def order_table(found: ArchitectureFinding) -> Table:
    """Reversed pairs first."""
    columns = (
        Column("Architectures", ("first", "second", "first_case_id", "second_case_id")),
        Column("Setting", ("setting",)),
        Column("Compiled by", ("runtime",)),
        Column("Time ratio, eager", estimate_fields("eager"), numeric=True),
        Column("Time ratio, compiled", estimate_fields("compiled"), numeric=True),
        Column("Order", ("change",)),
    )
    settings = _settings([one.first for one in found.orders])
    listed = sorted(zip(found.orders, settings, strict=True), key=lambda pair: pair[0].change != "reversed")
    rows = [
        (
            _architectures_cell(one),
            text_cell(setting),
            text_cell(one.first.runtime),
            estimate_cell(one.eager),
            estimate_cell(one.compiled),
            text_cell(_WORDS[one.change], tone=_TONES[one.change]),
        )
        for one, setting in listed
    ]
    notes = (
        "Ratio: time of the first architecture over that of the second, paired within blocks.",
        f"Each interval has a confidence of {100 * found.confidence:.4g} %, so that all of them together have 95 %.",
        "Reversed: both whole intervals are on other sides of 1. Undecided: one of them contains 1.",
    )
    return Table("architecture-order", "Order of architectures, eager and compiled", columns, tuple(rows), notes)


def _architectures_cell(order: ArchitectureOrder) -> Cell:
    first, second = (str(case.value(str(architecture_of(case)))) for case in (order.first, order.second))
    return Cell(f"{first} / {second}", csv=(first, second, order.first.id, order.second.id))


def friction_table(found: ArchitectureFinding) -> Table:
    """One row a case with a batch above 1."""
    columns = (
        Column("Case", ("case", "case_id")),
        Column("Batch", ("batch",), numeric=True),
        Column("Batch friction", estimate_fields("batch_friction"), numeric=True),
    )
    names = case_names([one.case for one in found.frictions])
    rows = [
        (
            Cell(name, csv=(name, one.case.id)),
            number_cell(float(one.case.batch), text=str(one.case.batch)),
            estimate_cell(one.ratio),
        )
        for one, name in zip(found.frictions, names, strict=True)
    ]
    notes = (
        "Batch friction: time per sample at this batch over that at batch 1, paired within blocks.",
        "At 1/batch a batch takes as long as one sample; at 1 batching gains nothing; above 1 it costs.",
    )
    return Table("batch-friction", "What a sample costs in a batch", columns, tuple(rows), notes)


SECTION = Section("architectures", "Architectures and compilers", build)
