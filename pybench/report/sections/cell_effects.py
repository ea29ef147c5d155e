# SPDX-License-Identifier: Apache-2.0
"""The effect of each comparison over all of its cells, named by its cells, with how much cells differ."""

from __future__ import annotations

from collections.abc import Sequence

from pybench.analysis.findings.cell_effects import CellsEffect, Heterogeneity
from pybench.analysis.statistics.paired import ALPHA
from pybench.case import Case
from pybench.case.factors import is_idle
from pybench.report.labels import case_text, factor_text, varying_factors
from pybench.report.numbers import factor_above_one, format_p, format_plain
from pybench.report.sections.elements import Element, Material, Paragraph, Section, Sentences, Tables
from pybench.report.sentences import Sentence, estimate_text
from pybench.report.tables import Cell, Column, Table, estimate_cell, estimate_fields, number_cell, p_cell, text_cell

_LEAD = (
    "A cell is a case with its baseline. For each comparison, the geometric mean of the paired ratios of all cells. "
    "The mean describes the cells of this plan and no others."
)
_NOTES = (
    "All cells weigh the same. Only blocks are used in which every cell has a ratio.",
    "Spread between cells: a factor of 1 means that all cells have one effect; the noise of runs is not in it.",
    "p (cells equal): an F test that all cells have one effect. If it is small, read the cells and not their mean.",
)


def build(material: Material) -> list[Element]:
    effects = material.analysis.cell_effects
    if not effects:
        return []
    return [
        Paragraph(_LEAD, "lead"),
        Sentences([_sentence(effect) for effect in effects if effect.mean is not None]),
        Tables(lambda: [cells_table(effects)], is_printed=True),
    ]


def cells_table(effects: Sequence[CellsEffect]) -> Table:
    """One row for each comparison, workload and metric."""
    columns = (
        Column("Comparison", ("comparison",)),
        Column("Cells", ("case_ids", "cells")),
        Column("Metric", ("metric",)),
        Column("Mean ratio", estimate_fields("mean_ratio"), numeric=True),
        Column("Blocks", ("blocks",), numeric=True),
        Column("Lowest cell", ("lowest",), numeric=True),
        Column("Highest cell", ("highest",), numeric=True),
        Column("Spread between cells", ("spread_between_cells",), numeric=True),
        Column("p (cells equal)", ("p_cells_equal",), numeric=True),
    )
    return Table("cells", "Effects over cells", columns, tuple(_row(effect) for effect in effects), _NOTES)


def _row(effect: CellsEffect) -> tuple[Cell, ...]:
    ids = " ".join(pair.case.id for pair in effect.pairs)
    return (
        text_cell(_changed(effect)),
        Cell(
            _cells_text(effect),
            note=_left_out_text([pair.case for pair in effect.left_out]),
            csv=(ids, str(len(effect.pairs))),
            cases=tuple(one for pair in effect.pairs for one in pair.ids),
        ),
        Cell(effect.metric.label, csv=(effect.metric.name,)),
        estimate_cell(effect.mean, why_none=effect.why_none),
        number_cell(len(effect.blocks)),
        *_spread_cells(effect.heterogeneity),
    )


def _left_out_text(cases: Sequence[Case]) -> str | None:
    """`31 cells, such as infer ..., have no ratio and are left out`; None where there is none."""
    if not cases:
        return None
    if len(cases) == 1:
        return f"{cases[0].title()} has no ratio and is left out"
    return f"{len(cases)} cells, such as {cases[0].title()}, have no ratio and are left out"


def _spread_cells(found: Heterogeneity | None) -> tuple[Cell, ...]:
    if found is None:
        return (number_cell(None),) * 4
    spread = None if found.spread is None else f"{factor_above_one(found.spread)}×"
    return (
        number_cell(found.lowest),
        number_cell(found.highest),
        number_cell(found.spread, text=spread),
        p_cell(found.p_value),
    )


def _sentence(effect: CellsEffect) -> Sentence:
    if effect.mean is None:
        raise ValueError("an effect over cells without a mean")
    number = estimate_text(effect.mean, signed=False, ratio=True)
    text = f"{effect.metric.label} is {number} that of the baseline over {_cells_text(effect)}"
    return Sentence(_changed(effect), f"{text}.{_heterogeneity_text(effect.heterogeneity)}", "neutral")


def _heterogeneity_text(found: Heterogeneity | None) -> str:
    if found is None or found.p_value is None or found.p_value >= ALPHA:
        return ""
    ends = f"from {format_plain(found.lowest)}× to {format_plain(found.highest)}×"
    mixed = ", on both sides of 1" if found.is_mixed else ""
    return f" The cells differ, {ends}{mixed} (p {format_p(found.p_value)})."


def _changed(effect: CellsEffect) -> str:
    """`infer: int8 instead of fp32`."""
    pair, fixed = effect.pairs[0], tuple(effect.contrast.baseline)
    return f"{pair.case.workload}: {case_text(pair.case, fixed)} instead of {case_text(pair.baseline, fixed)}"


def _cells_text(effect: CellsEffect) -> str:
    """`6 cells (batch 1, 8, 32; model a, b)`: every factor that tells cells apart, with its values."""
    cases = [pair.case for pair in effect.pairs]
    factors = [name for name in varying_factors(cases) if name not in effect.contrast.baseline]
    told = "; ".join(_values_text(name, cases) for name in factors)
    return f"{len(cases)} cells ({told})"


def _values_text(name: str, cases: Sequence[Case]) -> str:
    values = list(dict.fromkeys(case.value(name) for case in cases if not is_idle(name, case)))
    if all(isinstance(value, int | float) for value in values):
        values.sort()
    first, *others = (factor_text(name, value) for value in values)
    lead = f"{name.replace('_', ' ')} "
    return ", ".join([first, *(text.removeprefix(lead) for text in others)])


SECTION = Section("cells", "Effects over cells", build)
