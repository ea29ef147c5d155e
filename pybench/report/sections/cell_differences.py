# SPDX-License-Identifier: Apache-2.0
"""Accuracy over models and trainings: the mean difference of each comparison, and what another factor does to it."""

from __future__ import annotations

from collections.abc import Sequence

from pybench.analysis.findings.cell_differences import TRAINING, CellsDifference
from pybench.case.contrasts import Contrast
from pybench.case.factors import is_idle
from pybench.report.labels import case_text, value_text, varying_factors
from pybench.report.numbers import format_plain
from pybench.report.sections.elements import Element, Material, Paragraph, Section, Sentences, Tables
from pybench.report.sentences import Sentence, estimate_text
from pybench.report.tables import Cell, Column, Table, estimate_cell, estimate_fields, text_cell

_LEAD = (
    "Repetitions of an accuracy are equal, so they do not tell how far a finding carries. Here each model, or each "
    "training of one model, gives one difference, and the interval is over these."
)
_NOTES = (
    "Skew-adjusted t interval of the differences. A model with several trainings counts once, with their mean.",
    "The interval is that of models or trainings drawn at random; whether these stand for others is for you to judge.",
    "Rows with `minus` subtract one group of cells from another, model by model or training by training.",
)


def build(material: Material) -> list[Element]:
    found = material.analysis.cell_differences
    if not found:
        return []
    return [
        Paragraph(_LEAD, "lead"),
        Sentences([_sentence(one, _text(one, found)) for one in found]),
        Tables(lambda: [differences_table(found)], is_printed=True),
    ]


def differences_table(found: Sequence[CellsDifference]) -> Table:
    """One row for each group of cells, then one for each difference between groups."""
    columns = (
        Column("Comparison", ("comparison",)),
        Column("Metric", ("metric",)),
        Column("Over", ("unit", "units"), numeric=True),
        Column("Mean difference", estimate_fields("difference"), numeric=True),
        Column("Lowest", ("lowest", "lowest_unit"), numeric=True),
        Column("Highest", ("highest", "highest_unit"), numeric=True),
    )
    return Table(
        "cell-differences",
        "Accuracy over models and trainings",
        columns,
        tuple(_row(one, _text(one, found)) for one in found),
        _NOTES,
    )


def _row(found: CellsDifference, text: str) -> tuple[Cell, ...]:
    count = len(found.differences)
    return (
        text_cell(text, cases=tuple(one for pair in found.pairs for one in pair.ids)),
        Cell(found.metric.label, csv=(found.metric.name,)),
        Cell(_units_text(found), number=float(count), csv=(found.unit, str(count))),
        estimate_cell(found.estimate),
        *(_end_cell(found, name) for name in _ends(found)),
    )


def _ends(found: CellsDifference) -> tuple[str, str]:
    """The units with the lowest and the highest difference."""
    ordered = sorted(found.differences, key=lambda name: found.differences[name])
    return ordered[0], ordered[-1]


def _end_cell(found: CellsDifference, unit: str) -> Cell:
    value = found.differences[unit]
    return Cell(f"{format_plain(value)} ({_unit_name(found, unit)})", number=value, csv=(repr(value), unit))


def _unit_name(found: CellsDifference, unit: str) -> str:
    return f"training {unit}" if found.unit == TRAINING else unit


def _units_text(found: CellsDifference) -> str:
    return f"{len(found.differences)} {'trainings' if found.unit == TRAINING else 'models'}"


def _sentence(found: CellsDifference, text: str) -> Sentence:
    points = " pp" if found.metric.unit == "%" else ""
    change = estimate_text(found.estimate, signed=True, ratio=False)
    return Sentence(text, f"{found.metric.label} {change}{points}, over {_units_text(found)}.", "neutral")


def _text(found: CellsDifference, others: Sequence[CellsDifference]) -> str:
    """`int8 instead of fp32 (trained in fp32)`, or `int8 instead of fp32: trained in amp-bf16 minus fp32`."""
    pair, fixed = found.pairs[0], tuple(found.contrast.baseline)
    told = f"{case_text(pair.case, fixed)} instead of {case_text(pair.baseline, fixed)}"
    rest = [name for name in _telling(found.contrast, others) if name != found.factor]
    where = ", ".join(
        f"{_words(name)} {value_text(pair.case.value(name))}" for name in rest if not is_idle(name, pair.case)
    )
    told = f"{told} ({where})" if where else told
    if found.factor is None or found.base is None:
        return told
    first, second = (value_text(one.case.value(found.factor)) for one in (pair, found.base))
    return f"{told}: {_words(found.factor)} {first} minus {second}"


def _words(factor: str) -> str:
    return factor.replace("_", " ")


def _telling(contrast: Contrast, found: Sequence[CellsDifference]) -> list[str]:
    """The factors that tell the groups of a comparison apart: those that all cells of each group share."""
    groups = [[pair.case for pair in one.pairs] for one in found if one.contrast == contrast]
    varying = varying_factors([case for group in groups for case in group])
    mixed = {name for group in groups for name in varying_factors(group)}
    return [name for name in varying if name not in mixed and name not in contrast.baseline]


SECTION = Section("cell-differences", "Accuracy over models and trainings", build)
