# SPDX-License-Identifier: Apache-2.0
"""Tables that describe cases: one a workload, one of every metric, and what was left out of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pybench.analysis import Analysis
from pybench.analysis.findings.cases import CaseFinding, MetricFinding
from pybench.analysis.statistics.estimate import WILSON
from pybench.analysis.units import unit_of
from pybench.case import Case, catalogue_of
from pybench.case.data import data_set_of
from pybench.case.factors import fixed_value, is_idle
from pybench.catalogue.metrics import GPU
from pybench.dataset import Dataset
from pybench.report.labels import (
    case_text,
    constant_factors,
    factor_title,
    left_out_notes,
    metric_title,
    shared_notes,
    value_text,
    varying_factors,
)
from pybench.report.numbers import DASH, DisplayUnit, display_unit, format_plain
from pybench.report.tables import (
    Cell,
    Column,
    Table,
    absolute_cell,
    absolute_fields,
    bounds_cell,
    estimate_cell,
    estimate_fields,
    number_cell,
)

# What the table of a workload's GPU energy shows, as far as its cases have it.
ABSOLUTE_NOTE = (
    "±: half the absolute 95 % interval. It includes the spread of repetitions, the uncertainty of the sensor and the "
    "unknown gain of the board. Ratios of two cases on one board do not contain the gain (tables of effects)."
)

OUTCOME_TONES = {"ok": "good", "unsupported": "neutral", "oom": "neutral"}


def workload_tables(analysis: Analysis, run_link: str, dataset: Dataset) -> list[Table]:
    """One table a workload, in the order in which the plan names them, and one of its boards' energy where there is
    any. `run_link`: the folder of all runs, from the page."""
    metrics = catalogue_of(case.case for case in analysis.cases).metrics
    of_board = tuple(name for name, metric in metrics.items() if metric.group == GPU)
    tables = []
    for row in dict.fromkeys(case.case.workload_row for case in analysis.cases):
        cases = [case for case in analysis.cases if case.case.workload == row.name]
        table = _cases_table(f"cases-{row.name}", row.label, row.shown, cases, run_link)
        tables.append(replace(table, notes=(*table.notes, *_baseline_notes(dataset))) if row.by_task else table)
        if any(_has_number(case, metric) for case in cases for metric in of_board):
            title = f"{row.label}: energy of the GPU board"
            tables.append(_cases_table(f"energy-{row.name}", title, of_board, cases, run_link))
    return tables


def _cases_table(name: str, title: str, metrics: Sequence[str], cases: Sequence[CaseFinding], run_link: str) -> Table:
    """One row a case, with those of `metrics` that any of them has. Where some ran, the others are only counted."""
    ran = [case for case in cases if case.outcomes] or cases
    waiting, cases = len(cases) - len(ran), ran
    plain = [case.case for case in cases]
    rows_by_name = catalogue_of(plain).metrics
    factors = varying_factors(plain) or ("model",)
    shown = [name for name in metrics if any(_has_number(case, name) for case in cases)]
    absolute = {name for name in shown if any(_is_absolute(case, name) for case in cases)}
    units = {name: _unit_of(name, cases) for name in shown}
    columns = [Column(factor_title(name), (name,), numeric=_is_numeric(name, plain)) for name in factors]
    for metric in shown:
        fields = absolute_fields(metric) if metric in absolute else estimate_fields(metric)
        columns.append(Column(metric_title(rows_by_name[metric], units[metric]), fields, numeric=True))
    columns += [Column("n", ("n",), numeric=True), Column("Runs", ("runs", "case_id"))]
    rows = []
    for case in cases:
        cells = [_factor_cell(name, case.case) for name in factors]
        cells += [_metric_cell(case, name, units[name], name in absolute) for name in shown]
        rows.append((*cells, _count_cell(case, shown), _runs_cell(case, run_link)))
    notes = [*_notes(cases, shown), *left_out_notes(waiting)]
    return Table(name, title, tuple(columns), tuple(rows), (*notes, ABSOLUTE_NOTE) if absolute else tuple(notes))


def metrics_table(analysis: Analysis) -> Table:
    """Every metric of every case, in stored units: the long form for other programs and for what the others leave
    out."""
    of_workload: dict[str, list[Case]] = {}
    for case in analysis.cases:
        of_workload.setdefault(case.case.workload, []).append(case.case)
    factors = {workload: varying_factors(cases) for workload, cases in of_workload.items()}
    rows = [row for case in analysis.cases for row in _metric_rows(case, factors[case.case.workload])]
    return Table("metrics", "Every metric of every case", _METRIC_COLUMNS, tuple(rows), _METRIC_NOTES)


_METRIC_COLUMNS = (
    Column("Workload", ("workload",)),
    Column("Case", ("case",)),
    Column("Id", ("case_id",)),
    Column("Metric", ("metric",)),
    Column("Unit", ("unit",)),
    Column("Mean", ("mean", "lower", "upper", "n", "method"), numeric=True),
    Column("± absolute", ("absolute_95",), numeric=True),
    Column("Median", ("median",), numeric=True),
)
_METRIC_NOTES = (
    "Units as stored. Means of times, rates, sizes and energies are geometric, unless a value is not above 0.",
    "± absolute: half the 95 % interval of the number itself, which includes the gain of the board.",
)


def _metric_rows(case: CaseFinding, factors: Sequence[str]) -> Iterator[tuple[Cell, ...]]:
    """A row for each metric of a case. `factors`: those that tell the cases of its workload apart."""
    head = (
        Cell(case.case.workload, csv=(case.case.workload,)),
        Cell(case_text(case.case, factors), csv=(case.case.title(),)),
        Cell(case.case.id[:12], csv=(case.case.id,)),
    )
    for name, finding in case.metrics.items():
        median = None if finding.median is None else format_plain(finding.median)
        yield (
            *head,
            Cell(finding.metric.label, csv=(name,)),
            Cell(finding.metric.unit, csv=(finding.metric.unit,)),
            _finding_cell(finding, DisplayUnit(1.0, "")),
            _absolute_cell(finding.absolute_95),
            number_cell(finding.median, text=median),
        )


# --- cells -----------------------------------------------------------------------------------------------------------


def _metric_cell(case: CaseFinding, name: str, unit: DisplayUnit, absolute: bool) -> Cell:
    finding = case.metrics.get(name)
    if absolute:
        estimate, half = (None, None) if finding is None else (finding.estimate, finding.absolute_95)
        why = why_nothing(case) if finding is None else finding.why_none
        return _doubted(absolute_cell(estimate, half, unit=unit, why_none=why), case.cautions_about(name))
    if finding is None:
        return estimate_cell(None, why_none=why_nothing(case))
    return _doubted(_finding_cell(finding, unit), case.cautions_about(name))


def _doubted(cell: Cell, codes: Sequence[str]) -> Cell:
    """The cell with its cautions beside the number."""
    if not codes:
        return cell
    doubt = "caution: " + ", ".join(code.replace("_", " ") for code in codes)
    return replace(cell, note=f"{cell.note}; {doubt}" if cell.note else doubt)


def _finding_cell(finding: MetricFinding, unit: DisplayUnit) -> Cell:
    if finding.estimate is None and finding.bounds is not None:
        return bounds_cell(finding.bounds, unit)
    return estimate_cell(finding.estimate, unit=unit, why_none=finding.why_none)


def _absolute_cell(half: float | None) -> Cell:
    """Blank, not a dash, where a metric has no such uncertainty: nothing is missing."""
    return Cell("", csv=("",)) if half is None else number_cell(half)


def why_nothing(case: CaseFinding) -> str:
    """Why a case has no number at all."""
    if not case.outcomes:
        return "did not run"
    if "ok" in case.outcomes:
        return "not measured"
    return max(case.reasons, key=lambda reason: case.reasons[reason])


def _factor_cell(name: str, case: Case) -> Cell:
    """Where the factor means nothing for the case: what its runtime has in the place, or a dash."""
    if is_idle(name, case):
        fixed = fixed_value(name, case) if name in case.own_factors() else None
        return Cell(fixed or DASH, csv=(fixed or "",))
    value = case.value(name)
    number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    return Cell(value_text(value), number=number, csv=("" if value is None else str(value),))


def _count_cell(case: CaseFinding, shown: Sequence[str]) -> Cell:
    """Repetitions behind the row's numbers; a range when metrics differ."""
    counts = sorted(
        {len(case.metrics[name].points) for name in shown if name in case.metrics and case.metrics[name].points}
    )
    if not counts:
        return number_cell(0)
    text = str(counts[0]) if len(counts) == 1 else f"{counts[0]}–{counts[-1]}"
    return number_cell(
        counts[-1],
        text=text,
        note=None
        if len(counts) == 1
        else "some values are missing or invalid: the table of missing values lists the reasons",
    )


def _runs_cell(case: CaseFinding, run_link: str) -> Cell:
    if not case.outcomes:
        return Cell("did not run", tone="bad", csv=("did not run", case.case.id))
    text = ", ".join(f"{count} {outcome}" for outcome, count in case.outcomes.items())
    tones = {OUTCOME_TONES.get(outcome, "bad") for outcome in case.outcomes}
    tone = next(tone for tone in ("bad", "neutral", "good") if tone in tones)
    reasons = "; ".join(case.reasons) or None
    cell = Cell(text, tone=tone, note=reasons, href=f"{run_link}/{case.case.id}/", csv=(text, case.case.id))
    return _doubted(cell, case.cautions_about(None))


# --- titles ----------------------------------------------------------------------------------------------------------


def _has_number(case: CaseFinding, name: str) -> bool:
    finding = case.metrics.get(name)
    return finding is not None and (finding.estimate is not None or finding.bounds is not None)


def _is_absolute(case: CaseFinding, name: str) -> bool:
    finding = case.metrics.get(name)
    return finding is not None and finding.absolute_95 is not None


def _unit_of(name: str, cases: Sequence[CaseFinding]) -> DisplayUnit:
    found = [case.metrics[name] for case in cases if name in case.metrics]
    values = [finding.estimate.value for finding in found if finding.estimate is not None]
    values += [finding.bounds[1] for finding in found if finding.bounds is not None]
    return display_unit(found[0].metric.unit, values)


def _is_numeric(name: str, cases: Sequence[Case]) -> bool:
    values = [case.value(name) for case in cases if not is_idle(name, case)]
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _notes(cases: Sequence[CaseFinding], shown: Sequence[str]) -> list[str]:
    all_cases = [case.case for case in cases]
    notes = shared_notes(all_cases, constant_factors(all_cases))
    if not cases[0].case.workload_row.timed:
        return [*notes, *_unit_notes(cases), f"n is the number of runs, not of {_unit_word(cases)}s."]
    notes.append("Geometric means over repetitions with 95 % intervals; n is the number of repetitions.")
    notes += _arithmetic_notes([case.metrics[name] for case in cases for name in shown if name in case.metrics])
    if any(case.metrics[name].metric.is_interval for case in cases for name in shown if name in case.metrics):
        notes.append("Bounds contain the CPU energy if the assumed power bounds are right; they are not measured.")
    return notes


def _arithmetic_notes(findings: Sequence[MetricFinding]) -> list[str]:
    """Which means are not geometric: of a whole column, or where a value is not above 0."""
    arithmetic = [found for found in findings if not found.is_geometric and found.estimate is not None]
    whole = dict.fromkeys(found.metric.label for found in arithmetic if found.metric.mean != "geometric")
    some = dict.fromkeys(found.metric.label for found in arithmetic if found.metric.mean == "geometric")
    notes = [f"These means are arithmetic: {', '.join(whole)}."] if whole else []
    return notes + [f"The mean of {name} is arithmetic where a value is not above 0." for name in some]


def _unit_notes(cases: Sequence[CaseFinding]) -> list[str]:
    """What the intervals of an accuracy are over; without stored scores that is the runs."""
    findings = [finding for case in cases for finding in case.metrics.values()]
    found = [
        (one.estimate, one.over_units) for one in findings if one.estimate is not None and one.metric.is_over_units
    ]
    estimates = [estimate for estimate, over_units in found if over_units]
    if not estimates:
        word = _unit_word(cases)
        why = f"No predictions are stored, so the choice of {word}s is not included."
        return [f"Means over runs with 95 % intervals. {why}"] if found else []
    counts = " or ".join(map(str, sorted({one.n for one in estimates})))
    kind = "Shares with 95 % score intervals" if {one.method for one in estimates} == {WILSON} else "95 % intervals"
    data = (data_set_of(case.case) for case in cases if case.in_groups)
    words = dict.fromkeys((row.unit, row.group) for row in data if row is not None)
    alike = [
        f"{unit.capitalize()}s of one {group} are alike: intervals are of whole {group}s." for unit, group in words
    ]
    return [f"{kind} over the {counts} {_unit_word(cases)}s of one run.", *alike]


def _baseline_notes(dataset: Dataset) -> list[str]:
    """What is reached without a network on the data that models were trained on, where the training found it."""
    found = {
        str(made.parameters["trained_on"]): made.labels["without_a_network_percent"]
        for made in dataset.artefacts
        if made.labels.get("without_a_network_percent")
    }
    return [
        f"Without a network, Top-1 on {name} is {' and '.join(f'{v:.1f} % ({what})' for what, v in values.items())}."
        for name, values in found.items()
    ]


def _unit_word(cases: Sequence[CaseFinding]) -> str:
    """What has one score, in a word."""
    names = {unit_of(case.case) for case in cases}
    return names.pop() if len(names) == 1 else "unit"
