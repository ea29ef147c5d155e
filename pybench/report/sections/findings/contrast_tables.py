# SPDX-License-Identifier: Apache-2.0
"""Tables that compare: verdicts, effects with their tests, accuracy over images."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from pybench.analysis import Analysis
from pybench.analysis.findings.contrasts import ContrastFinding, PairEffect
from pybench.analysis.findings.verdicts import CaseVerdict, Judgement, Verdict
from pybench.analysis.statistics.proportions import EXACT_BELOW
from pybench.analysis.units import UnitEffect, unit_of
from pybench.case.contrasts import Contrast, Criterion
from pybench.case.data import data_set_of
from pybench.case.pairing import Pair
from pybench.report.labels import (
    bound_text,
    case_text,
    criterion_label,
    is_protocol,
    left_out_notes,
    metric_title,
    pair_texts,
    varying_factors,
)
from pybench.report.numbers import DisplayUnit, factor_above_one
from pybench.report.tables import Cell, Column, Table, estimate_cell, estimate_fields, number_cell, p_cell, text_cell
from pybench.words import counted

TONES = {Verdict.ACCEPTED: "good", Verdict.REJECTED: "bad", Verdict.UNDECIDED: "neutral"}


def judged_tables(analysis: Analysis) -> list[Table]:
    """For each contrast its verdicts, where it judges, and its accuracies over images, where there are any."""
    tables: list[Table] = []
    ran = {case.case.id for case in analysis.cases if case.outcomes}
    for number, (contrast, verdicts) in enumerate(zip(analysis.contrasts, analysis.verdicts, strict=True), start=1):
        if contrast.contrast.accept:
            tables.append(verdict_table(number, contrast, verdicts, ran))
        tables += [_hit_table(number, contrast), _score_table(number, contrast)]
    return [table for table in tables if table.rows]


def effect_tables(analysis: Analysis) -> list[Table]:
    """For each contrast every effect with its test."""
    tables = [_effect_table(number, contrast) for number, contrast in enumerate(analysis.contrasts, start=1)]
    return [table for table in tables if table.rows]


def context_factors(contrast: ContrastFinding, pairs: Iterable[Pair]) -> tuple[str, ...]:
    """Factors that tell pairs of a contrast apart, besides those of its baseline; of a protocol only if they must."""
    cases = [pair.case for pair in pairs]
    varying = [name for name in varying_factors(cases) if name not in contrast.contrast.baseline]
    names = tuple(name for name in varying if not is_protocol(name))
    # How long something was measured tells no two rows apart, unless nothing else does.
    shown = (*contrast.contrast.baseline, *names)
    return names if len({case_text(case, shown) for case in cases}) == len(cases) else tuple(varying)


def subjects(verdicts: Iterable[CaseVerdict]) -> list[Pair]:
    """What the verdicts are about, without the accuracies joined to it."""
    return [verdict.subject for verdict in verdicts]


def verdict_table(
    number: int, contrast: ContrastFinding, verdicts: Sequence[CaseVerdict], ran: AbstractSet[str]
) -> Table:
    """One row a verdict. `ran`: ids of cases with runs; where a side of a comparison has none, it is only counted."""
    criteria = contrast.contrast.accept
    planned = len(verdicts)
    verdicts = [one for one in verdicts if one.is_measured or {one.subject.case.id, one.subject.baseline.id} <= ran]
    columns = [
        *head_columns(),
        *(
            Column(f"{criterion_label(one)}, required {bound_text(one)}", estimate_fields(one.name), numeric=True)
            for one in criteria
        ),
    ]
    context = context_factors(contrast, subjects(verdicts))
    rows = []
    for verdict in verdicts:
        cells = [
            *head_cells(verdict.subject, contrast.contrast, context),
            *(_judged_cell(one, verdict.judgements) for one in criteria),
        ]
        rows.append(
            (*cells, text_cell(_verdict_text(verdict), tone=TONES[verdict.verdict] if verdict.verdict else None))
        )
    notes = (
        "Accepted: all intervals satisfy their bounds. Rejected: a whole interval violates its bound.",
        "Undecided: an interval includes its bound. Not measured: there is no number to judge.",
        "Speeds are paired within blocks; accuracies are paired by image, or by another unit of the data.",
        "No verdict is corrected for the number of comparisons; the effects have a p value that is (Holm).",
    )
    return Table(
        f"verdicts-{number}",
        f"Verdicts: {contrast.contrast.title()}",
        (*columns, Column("Verdict", ("verdict",))),
        tuple(rows),
        (*notes, *left_out_notes(planned - len(verdicts))),
    )


def _verdict_text(verdict: CaseVerdict) -> str:
    """In the words of the report's first sentence, which counts what could not be measured apart."""
    if verdict.verdict is None:
        return "not judged"
    return verdict.verdict.value if verdict.is_measured else "not measured"


def _judged_cell(criterion: Criterion, judgements: Sequence[Judgement]) -> Cell:
    """The judgement that decides: of several accuracies the worst verdict's."""
    concerned = [judgement for judgement in judgements if judgement.criterion == criterion]
    if not concerned:
        return estimate_cell(None, why_none="the plan measures no such number for this case")
    order = (Verdict.REJECTED, Verdict.UNDECIDED, Verdict.ACCEPTED)
    deciding = min(concerned, key=lambda judgement: order.index(judgement.verdict))
    signed = criterion.kind == "difference"
    return estimate_cell(deciding.estimate, why_none=deciding.why, signed=signed, tone=TONES[deciding.verdict])


def headline_table(number: int, contrast: ContrastFinding) -> Table:
    """The effects on what each workload is read by first."""
    pairs = [
        replace(pair, effects={name: effect for name, effect in pair.effects.items() if name == pair.pair.headline})
        for pair in contrast.pairs
    ]
    return _effect_table(number, replace(contrast, pairs=tuple(pairs)))


def _effect_table(number: int, contrast: ContrastFinding) -> Table:
    columns = (
        *head_columns(),
        Column("Metric", ("metric",)),
        Column("Case / baseline", estimate_fields("effect"), numeric=True),
        Column("Pairs", ("pairs",), numeric=True),
        Column("p", ("p_value",), numeric=True),
        Column("p (Holm)", ("p_holm",), numeric=True),
        Column("p (not equivalent)", ("p_not_equivalent",), numeric=True),
        Column("Detectable", ("smallest_detectable",), numeric=True),
    )
    context = context_factors(contrast, [pair.pair for pair in contrast.pairs])
    rows = [
        _effect_row(effect, head_cells(pair.pair, contrast.contrast, context), unit_of(pair.pair.case))
        for pair in contrast.pairs
        for effect in pair.effects.values()
        if effect.effect is not None or effect.declared
    ]
    notes = [
        "Effects are ratios. Differences are marked Δ; pp: percentage points. Only complete pairs are used.",
        "p tests for no effect. p (Holm) is corrected for all comparisons that the plan declares.",
        "p (not equivalent) is small if a ratio is within a factor of 1.05 or a Δ within 0.05 (two one-sided tests).",
        "Detectable: the smallest effect that these repetitions would show with a probability of 80 %.",
    ]
    if any(effect.metric.has_board_gain for pair in contrast.pairs for effect in pair.effects.values()):
        notes.append("Ratios of GPU energies compare runs on one board, so its unknown gain is not in their intervals.")
    return Table(f"effects-{number}", f"Effects: {contrast.contrast.title()}", columns, tuple(rows), tuple(notes))


def _effect_row(found: PairEffect, head: tuple[Cell, ...], unit_name: str) -> tuple[Cell, ...]:
    label = found.metric.label
    effect = found.effect
    if effect is None:
        return (
            *head,
            text_cell(label),
            estimate_cell(None, why_none=found.why_none),
            number_cell(0),
            *[number_cell(None)] * 4,
        )
    if effect.scale == "difference":
        unit = found.metric.unit
        label = f"Δ {metric_title(found.metric, DisplayUnit(1.0, 'pp' if unit == '%' else unit))}"
    units = found.units
    pairs_text = f"{len(effect.pairing.blocks)} blocks" if units is None else f"{units.n} {unit_name}s"
    lost = effect.pairing.only_candidate + effect.pairing.only_baseline
    note = f"{counted(lost, 'run')} without a partner in the block" if lost else None
    return (
        *head,
        text_cell(label),
        estimate_cell(effect.estimate, signed=effect.scale == "difference"),
        number_cell(units.n if units else len(effect.pairing.blocks), text=pairs_text, note=note),
        *(p_cell(value) for value in (effect.p_value, found.p_adjusted, effect.p_equivalence)),
        _detectable_cell(effect.detectable, effect.scale),
    )


@dataclass(frozen=True, slots=True)
class _UnitRow:
    """One effect over units, with the first cells of its row."""

    pair: Pair
    head: tuple[Cell, ...]
    found: PairEffect
    units: UnitEffect

    def counts(self, is_grouped: bool) -> tuple[Cell, ...]:
        left_out = self.units.unmatched + self.units.relabelled
        name = f"{unit_of(self.pair.case)}s"
        note = f"{left_out} {name} excluded: missing on one side, or labelled differently" if left_out else None
        units = number_cell(self.units.n, note=note)
        return (units, number_cell(self.units.groups)) if is_grouped else (units,)


def _hit_table(number: int, contrast: ContrastFinding) -> Table:
    """Shares of right answers, unit by unit; without rows where there are none."""
    over = [row for row in _unit_rows(contrast) if row.units.pairs is not None]
    unit, is_grouped = _unit_name(over), any(row.units.groups is not None for row in over)
    columns = (
        *head_columns(),
        Column("Metric", ("metric",)),
        Column("Difference (pp)", estimate_fields("difference_pp"), numeric=True),
        *_count_columns(unit, is_grouped),
        Column("Right only in the case", ("only_case_right",), numeric=True),
        Column("Right only in the baseline", ("only_baseline_right",), numeric=True),
        Column("Equal Top-1 answers (%)", estimate_fields("agreement_percent"), numeric=True),
        Column("p (McNemar)", ("p_mcnemar",), numeric=True),
    )
    rows = [
        (
            *row.head,
            text_cell(row.found.metric.label),
            estimate_cell(row.units.estimate, signed=True),
            *row.counts(is_grouped),
            number_cell(row.units.pairs.only_candidate),
            number_cell(row.units.pairs.only_baseline),
            estimate_cell(row.units.agreement),
            p_cell(row.units.p_value),
        )
        for row in over
        if row.units.pairs is not None
    ]
    notes = (
        f"{unit.capitalize()}s are paired by id. The difference has Tango's score interval.",
        "The share of equal Top-1 answers has Wilson's score interval.",
        f"p: McNemar's exact test where fewer than {EXACT_BELOW} {unit}s are right on one side only.",
        "Otherwise p is McNemar's test by the score, without continuity correction; groups always have this one.",
        *_group_notes(over),
    )
    title = f"Accuracy, {unit} by {unit}: {contrast.contrast.title()}"
    return Table(f"images-{number}", title, columns, tuple(rows), notes)


def _score_table(number: int, contrast: ContrastFinding) -> Table:
    """Scores that are numbers, unit by unit; without rows where there are none."""
    over = [row for row in _unit_rows(contrast) if row.units.pairs is None]
    unit, is_grouped = _unit_name(over), any(row.units.groups is not None for row in over)
    columns = (
        *head_columns(),
        Column("Metric", ("metric",)),
        Column("Effect", estimate_fields("effect"), numeric=True),
        *_count_columns(unit, is_grouped),
        Column("p", ("p",), numeric=True),
    )
    rows = []
    for row in over:
        metric = row.found.metric
        is_difference = metric.scale == "difference"
        title = metric_title(metric, DisplayUnit(1.0, "pp" if metric.unit == "%" else metric.unit))
        label = f"Δ {title}" if is_difference else metric.label
        effect = estimate_cell(row.units.estimate, signed=is_difference)
        rows.append((*row.head, text_cell(label), effect, *row.counts(is_grouped), p_cell(row.units.p_value)))
    notes = (
        f"{unit.capitalize()}s are paired by id. An effect is a ratio to the baseline; Δ: a difference.",
        *_group_notes(over),
    )
    return Table(
        f"scores-{number}", f"Scores, {unit} by {unit}: {contrast.contrast.title()}", columns, tuple(rows), notes
    )


def _unit_rows(contrast: ContrastFinding) -> list[_UnitRow]:
    context = context_factors(contrast, [pair.pair for pair in contrast.pairs])
    return [
        _UnitRow(pair.pair, head_cells(pair.pair, contrast.contrast, context), found, found.units)
        for pair in contrast.pairs
        for found in pair.effects.values()
        if found.units is not None
    ]


def _unit_name(rows: Sequence[_UnitRow]) -> str:
    """What was paired, in a word."""
    names = {unit_of(row.pair.case) for row in rows}
    return names.pop() if len(names) == 1 else "unit"


def _count_columns(unit: str, is_grouped: bool) -> tuple[Column, ...]:
    units = Column(f"{unit.capitalize()}s", ("images",), numeric=True)
    return (units, Column("Groups", ("groups",), numeric=True)) if is_grouped else (units,)


def _group_notes(rows: Sequence[_UnitRow]) -> list[str]:
    """How intervals take into account that units are alike within groups, where some are."""
    data = (data_set_of(row.pair.case) for row in rows if row.units.groups is not None)
    words = dict.fromkeys((one.unit, one.group) for one in data if one is not None)
    return [
        f"{unit.capitalize()}s of one {group} are alike: intervals and p values are of whole {group}s."
        for unit, group in words
    ]


def head_columns() -> tuple[Column, ...]:
    """Of a table with a row a pair: what its two sides have, and where."""
    return Column("Case", ("case",)), Column("Baseline", ("against",)), Column("Setting", ("at",))


def head_cells(pair: Pair, contrast: Contrast, context: Sequence[str]) -> tuple[Cell, ...]:
    """`context`: the factors that tell the rows of the table apart."""
    candidate, baseline, where = pair_texts(pair, tuple(contrast.baseline), context)
    return (
        Cell(candidate, csv=(pair.case.id,)),
        Cell(baseline, csv=(pair.baseline.id,)),
        text_cell(where, note=None),
    )


def _detectable_cell(value: float | None, scale: str) -> Cell:
    if value is None:
        return number_cell(None)
    return number_cell(value, text=f"{factor_above_one(value)}×" if scale == "ratio" else f"±{value:.2g}")
