# SPDX-License-Identifier: Apache-2.0
"""Service levels: for each case and each bound of the plan, the share of iterations within it, and the goodput.

service-levels  one row a case and bound
"""

from __future__ import annotations

from collections.abc import Sequence

from pybench.analysis import Analysis
from pybench.analysis.findings.cases import CaseFinding, MetricFinding
from pybench.case.service_levels import bounds_of, rows_of
from pybench.catalogue.metrics import METRICS
from pybench.report.labels import case_names, metric_title
from pybench.report.numbers import DisplayUnit, display_unit, format_plain
from pybench.report.sections.elements import Element, Material, Paragraph, Section, Tables
from pybench.report.tables import Cell, Column, Table, estimate_cell, estimate_fields, number_cell, text_cell

_LEAD = "Each bound of the plan on the same runs: how many iterations are within it, and how much work they do."
_CLOSED = "In a closed loop no request waits for another: such rows say nothing of a service under load."
SHARE, GOODPUT = METRICS["slo_attainment_ratio"], METRICS["goodput_samples_per_s"]


def build(material: Material) -> list[Element]:
    if not any(bounds_of(case.case) for case in material.analysis.cases):
        return []
    return [Paragraph(_LEAD, "lead"), Tables(lambda: [levels_table(material.analysis)], is_printed=True)]


def levels_table(analysis: Analysis) -> Table:
    """One row a case and bound, in the plan's order."""
    cases = [case for case in analysis.cases if bounds_of(case.case)]
    names = case_names([case.case for case in cases])
    unit = _goodput_unit(cases)
    columns = (
        Column("Case", ("case_id",)),
        Column("Bound (ms)", ("slo_ms",), numeric=True),
        Column(SHARE.label, estimate_fields(SHARE.name), numeric=True),
        Column(metric_title(GOODPUT, unit), estimate_fields(GOODPUT.name), numeric=True),
        Column("Latency", ("latency",)),
        Column("n", ("n",), numeric=True),
    )
    rows = tuple(
        _row(case, name, bound_ms, unit)
        for case, name in zip(cases, names, strict=True)
        for bound_ms in bounds_of(case.case)
    )
    notes = ["An iteration is within a bound if its latency is at most the bound.", "Goodput: samples/s within it."]
    if any(case.case.arrivals == "closed" for case in cases):
        notes.append(_CLOSED)
    return Table("service-levels", "Service levels", columns, rows, tuple(notes))


def _row(case: CaseFinding, name: str, bound_ms: float, unit: DisplayUnit) -> tuple[Cell, ...]:
    share, goodput = (case.metrics.get(metric.at_bound(bound_ms).name) for metric in (SHARE, GOODPUT))
    methods = sorted(set(share.methods)) if share is not None else []
    count = 0 if share is None else len(share.points)
    return (
        Cell(name, csv=(case.case.id,)),
        number_cell(bound_ms, text=format_plain(bound_ms)),
        _estimate(share, DisplayUnit(1.0, "")),
        _estimate(goodput, unit),
        text_cell(", ".join(methods)),
        number_cell(float(count), text=str(count)),
    )


def _estimate(finding: MetricFinding | None, unit: DisplayUnit) -> Cell:
    if finding is None:
        return estimate_cell(None, why_none="not measured")
    return estimate_cell(finding.estimate, unit=unit, why_none=finding.why_none)


def _goodput_unit(cases: Sequence[CaseFinding]) -> DisplayUnit:
    names = {row.name for case in cases for row in rows_of(case.case) if row.unit == GOODPUT.unit}
    found = [case.metrics[name].estimate for case in cases for name in names if name in case.metrics]
    return display_unit(GOODPUT.unit, [estimate.value for estimate in found if estimate is not None])


SECTION = Section("service", "Service levels", build)
