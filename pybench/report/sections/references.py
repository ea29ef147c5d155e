# SPDX-License-Identifier: Apache-2.0
"""Published values next to this campaign's, one row for each value and case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pybench.analysis.findings.references import ReferenceFinding, Relation
from pybench.report.labels import case_text, criterion_label, metric_title, varying_factors
from pybench.report.numbers import display_unit
from pybench.report.sections.elements import Element, Material, Paragraph, Section, Sentences, Tables
from pybench.report.sentences import Sentence, list_text
from pybench.report.tables import (
    UNITY,
    Cell,
    Column,
    Table,
    estimate_cell,
    estimate_fields,
    number_cell,
    text_cell,
)

_LEAD = (
    "The plan names published values. They come from other machines and other software. They are shown next to the "
    "values of this campaign, and no value is accepted or rejected because of them."
)
_NOTES = (
    "Interval contains it: the 95 % interval of this campaign contains the published value.",
    "Same side of 1 (of a difference: of 0): the interval and the published value are both above it, or both below it.",
    "Neither: the values were compared, and neither is the case.",
)


def build(material: Material) -> list[Element]:
    findings = material.analysis.references
    if not findings:
        return []
    return [
        Paragraph(_LEAD, "lead"),
        Sentences([_summary(findings)]),
        Tables(lambda: [references_table(findings)], is_printed=True),
    ]


def references_table(findings: Sequence[ReferenceFinding]) -> Table:
    """One row for each published value and case; a mean over cells has one row."""
    columns = (
        Column("Case", ("case_ids",)),
        Column("Baseline", ("baseline_id",)),
        Column("Quantity", ("name",)),
        Column("Published", ("published",), numeric=True),
        Column("This campaign", estimate_fields("ours"), numeric=True),
        Column("Relation", ("relation",)),
        Column("Published on", ("device",)),
        Column("Source", ("source",)),
    )
    factors = varying_factors(list(dict.fromkeys(case for found in findings for case in found.cases)))
    rows = tuple(_row(found, factors) for found in findings)
    return Table("published", "Published values", columns, rows, _NOTES)


def _row(found: ReferenceFinding, factors: Sequence[str]) -> tuple[Cell, ...]:
    reference = found.reference
    metric = reference.row
    absolute, signed = reference.kind == "absolute", reference.kind == "difference"
    unit = display_unit(metric.unit, [reference.value]) if absolute else UNITY
    published = f"{reference.value / unit.scale:{'+' if signed else ''}.6g}".replace("-", "−")
    return (
        Cell(_cases_text(found, factors), csv=(" ".join(case.id for case in found.cases),)),
        _baseline_cell(found),
        Cell(metric_title(metric, unit) if absolute else criterion_label(reference), csv=(reference.name,)),
        number_cell(reference.value, text=published),
        estimate_cell(found.ours, unit=unit, why_none=found.why, signed=signed),
        text_cell(found.words, note=found.why),
        text_cell(reference.device),
        text_cell(reference.source),
    )


def _cases_text(found: ReferenceFinding, factors: Sequence[str]) -> str:
    if not found.reference.over_cells or found.reference.kind == "absolute":
        return case_text(found.cases[0], factors) or found.cases[0].title()
    return f"mean over {len(found.cases)} cells"


def _baseline_cell(found: ReferenceFinding) -> Cell:
    if found.baseline is None:
        return Cell("", csv=("",))
    return Cell(case_text(found.baseline, tuple(found.contrast.baseline)), csv=(found.baseline.id,))


def _summary(findings: Sequence[ReferenceFinding]) -> Sentence:
    counts = Counter(found.relation for found in findings)
    words = {
        Relation.CONTAINED: "inside the interval of this campaign",
        Relation.SAME_SIDE: "on the same side",
        Relation.NEITHER: "neither",
        Relation.NOT_COMPARABLE: "not comparable",
    }
    parts = [f"{counts[relation]} {text}" for relation, text in words.items() if counts[relation]]
    return Sentence("Relation", f"{len(findings)} comparisons: {list_text(parts)}.", "neutral")


SECTION = Section("published", "Published values", build)
