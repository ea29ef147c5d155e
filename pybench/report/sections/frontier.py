# SPDX-License-Identifier: Apache-2.0
"""Largest batches: for each setting of the plan, the largest batch that ran, and the smallest that did not fit.

oom-frontier                   one row a setting: both batches
memory-over-batch-WORKLOAD-N   peak memory over the batch, a line for each setting of one model
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from pybench.analysis.findings.cases import CaseFinding
from pybench.analysis.findings.frontier import Frontier, find_frontiers
from pybench.analysis.statistics.estimate import Estimate
from pybench.case import Case
from pybench.catalogue.metrics import METRICS, Metric
from pybench.report.canvas import Drawing, Picture
from pybench.report.curves import Line, Panel, draw_curves
from pybench.report.labels import case_names, metric_title
from pybench.report.numbers import display_unit
from pybench.report.sections.elements import Element, Material, Paragraph, Pictures, Section, Tables
from pybench.report.tables import Cell, Column, Table, number_cell

_LEAD = "For each setting, the largest batch of the plan that ran, and the smallest that ran out of memory."
_NOTES = (
    "Only batches of the plan were tried: nothing is known between the two columns.",
    "A batch counts as out of memory if one of its runs was.",
)
# The first that a case has is drawn: of one step, else of a GPU, else of the host.
PEAKS = tuple(METRICS[name] for name in ("step_peak_bytes", "peak_device_bytes", "peak_host_bytes"))


def build(material: Material) -> list[Element]:
    found = find_frontiers(material.coverage.cases)
    if not found:
        return []
    names = case_names([_setting(one) for one in found])
    measured = {case.case.id: case for case in material.analysis.cases}
    return [
        Paragraph(_LEAD, "lead"),
        Tables(lambda: [frontier_table(found, names)], is_printed=True),
        Pictures(lambda: draw_memory(found, names, measured)),
    ]


def _setting(frontier: Frontier) -> Case:
    return frontier.cases[0].with_factors(batch=1, fixed_batch=None)


def frontier_table(found: Sequence[Frontier], names: Sequence[str]) -> Table:
    """One row a setting, in the plan's order."""
    columns = (
        Column("Setting", ("setting",)),
        Column("Batches of the plan", ("batches",)),
        Column("Largest that ran", ("ran_batch", "ran_case_id"), numeric=True),
        Column("Smallest out of memory", ("oom_batch", "oom_case_id"), numeric=True),
    )
    rows = tuple(_row(one, name) for one, name in zip(found, names, strict=True))
    return Table("oom-frontier", "Largest batches", columns, rows, _NOTES)


def _row(found: Frontier, name: str) -> tuple[Cell, ...]:
    batches = [str(case.batch) for case in found.cases]
    return (
        Cell(name, csv=(name,)),
        Cell(", ".join(batches), csv=(" ".join(batches),)),
        _batch_cell(found.ran, "no batch of the plan ran", _out_of_order(found)),
        _batch_cell(found.failed, "no batch of the plan ran out of memory"),
    )


def _out_of_order(found: Frontier) -> str | None:
    if found.ran is None or found.failed is None or found.failed.batch > found.ran.batch:
        return None
    return "a smaller batch ran out of memory in one of its runs"


def _batch_cell(case: Case | None, why_none: str, remark: str | None = None) -> Cell:
    shown = number_cell(None if case is None else float(case.batch), note=why_none if case is None else remark)
    return Cell(
        shown.text, number=shown.number, note=shown.note, csv=("", "") if case is None else (str(case.batch), case.id)
    )


def draw_memory(found: Sequence[Frontier], names: Sequence[str], measured: Mapping[str, CaseFinding]) -> list[Drawing]:
    """One figure for each workload and model, where two batches of a setting have a peak."""
    groups: dict[tuple[str, str], list[tuple[Frontier, str]]] = {}
    for one, name in zip(found, names, strict=True):
        groups.setdefault((one.cases[0].workload, str(one.cases[0].model)), []).append((one, name))
    drawings: list[Drawing] = []
    for number, ((workload, model), members) in enumerate(groups.items(), 1):
        metric = next((peak for peak in PEAKS if _peaks(members, measured, peak)), None)
        if metric is not None:
            drawings.append(partial(_draw, f"memory-over-batch-{workload}-{number}", model, members, measured, metric))
    return drawings


def _peaks(
    members: Sequence[tuple[Frontier, str]], measured: Mapping[str, CaseFinding], metric: Metric
) -> list[tuple[Frontier, str, list[tuple[float, Estimate]]]]:
    """The settings that have the peak at two batches at least: batch and peak, ascending."""
    found = []
    for frontier, name in members:
        points = [
            (float(case.batch), finding.estimate)
            for case in frontier.cases
            if case.id in measured
            and (finding := measured[case.id].metrics.get(metric.name)) is not None
            and finding.estimate is not None
        ]
        if len(points) > 1:
            found.append((frontier, name, points))
    return found


def _draw(
    name: str, model: str, members: Sequence[tuple[Frontier, str]], measured: Mapping[str, CaseFinding], metric: Metric
) -> Picture:
    found = _peaks(members, measured, metric)
    unit = display_unit(metric.unit, [estimate.value for _, _, points in found for _, estimate in points])
    lines = [
        Line(
            text,
            [(batch, estimate.scaled(1 / unit.scale)) for batch, estimate in points],
            _marked(frontier, [batch for batch, _ in points]),
        )
        for frontier, text, points in found
    ]
    caption = (
        f"{metric.label} over the batch, with 95 % intervals. A ring marks the largest batch that ran, where a larger "
        "one ran out of memory. Between the points nothing was measured."
    )
    return draw_curves(name, f"{model}: memory", caption, "Batch", [Panel(metric_title(metric, unit), lines)])


def _marked(frontier: Frontier, batches: Sequence[float]) -> list[int]:
    """The place of the largest batch that ran, where a larger one of the plan did not fit."""
    ran, failed = frontier.ran, frontier.failed
    if ran is None or failed is None or failed.batch < ran.batch or float(ran.batch) not in batches:
        return []
    return [batches.index(float(ran.batch))]


SECTION = Section("frontier", "Largest batches", build)
