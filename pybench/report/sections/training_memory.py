# SPDX-License-Identifier: Apache-2.0
"""Memory of training: for each case, what the memory of one step is for.

training-memory  one row a case: the six parts, and the peak that they add up to
"""

from __future__ import annotations

from collections.abc import Sequence

from pybench.analysis.findings.cases import CaseFinding
from pybench.catalogue.metrics import METRICS
from pybench.catalogue.workloads import STEP_PARTS, STEP_PEAK
from pybench.report.labels import case_names
from pybench.report.numbers import display_unit
from pybench.report.sections.elements import Element, Material, Paragraph, Section, Tables
from pybench.report.tables import Cell, Column, Table, estimate_cell, estimate_fields

_LEAD = "What the memory of one training step is for. Each run counts the tensors of a step after its last window."
_NOTES = (
    "Activations: what the forward pass saves for the backward pass, and the batch as the first layer reads it.",
    "Copies: weights in a lower precision, which autocast saves next to the activations.",
    "Workspace: the rest of the peak of torch's allocator. A CPU tells no such peak.",
)
_NAMES = (*STEP_PARTS, STEP_PEAK)


def build(material: Material) -> list[Element]:
    cases = [case for case in material.analysis.cases if any(name in case.metrics for name in _NAMES)]
    return [Paragraph(_LEAD, "lead"), Tables(lambda: [memory_table(cases)])] if cases else []


def memory_table(cases: Sequence[CaseFinding]) -> Table:
    """One row a case, in the plan's order."""
    found = [case.metrics[name].estimate for case in cases for name in _NAMES if name in case.metrics]
    unit = display_unit("bytes", [max((one.value for one in found if one is not None), default=0.0) / 1000])
    columns = (
        Column("Case", ("case_id",)),
        *(Column(f"{METRICS[name].label} ({unit.name})", estimate_fields(name), numeric=True) for name in _NAMES),
    )

    def cell(case: CaseFinding, name: str) -> Cell:
        finding = case.metrics.get(name)
        if finding is None:
            return estimate_cell(None, why_none="not measured")
        return estimate_cell(finding.estimate, unit=unit, why_none=finding.why_none)

    names = case_names([case.case for case in cases])
    rows = tuple(
        (Cell(text, csv=(case.case.id,)), *(cell(case, name) for name in _NAMES))
        for case, text in zip(cases, names, strict=True)
    )
    return Table("training-memory", "Memory of a training step", columns, rows, _NOTES)


SECTION = Section("memory", "Memory of training", build, is_printed=False)
