# SPDX-License-Identifier: Apache-2.0
"""All results and runs: tables of all cases, effects, artefacts, environment, runs, method, metrics and plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pybench.analysis import Analysis
from pybench.case import catalogue_of
from pybench.report.sections.elements import Element, Heading, Material, Paragraph, Pictures, Section, Tables
from pybench.report.sections.findings.contrast_tables import effect_tables
from pybench.report.sections.results.artefacts import artefacts_table
from pybench.report.sections.results.cases import metrics_table, workload_tables
from pybench.report.sections.results.environment import environment_table, environments_tables
from pybench.report.sections.results.headlines import draw_headlines
from pybench.report.sections.results.method import paragraphs

_ROWS_ON_PAGE = 2000  # of the metrics of all cases: 0.7 MB


@dataclass(frozen=True, slots=True)
class RunsOfCase:
    """Links to the folder of a case and to those of its runs, by block."""

    id: str
    title: str
    href: str
    runs: Sequence[tuple[int, str]]


@dataclass(frozen=True, slots=True)
class Runs(Element):
    """Links to all runs."""

    count: int
    cases: Sequence[RunsOfCase]


@dataclass(frozen=True, slots=True)
class Meaning:
    """What one metric means."""

    name: str
    label: str
    meaning: str
    unit: str


@dataclass(frozen=True, slots=True)
class Meanings(Element):
    """What the metrics mean that occur."""

    metrics: Sequence[Meaning]


@dataclass(frozen=True, slots=True)
class SourceText(Element):
    """The text of a file, folded."""

    name: str
    text: str


def build(material: Material) -> list[Element]:
    dataset, analysis, run_link = material.dataset, material.analysis, material.run_link
    return [
        *([Pictures(lambda: draw_headlines(analysis))] if analysis.contrasts else []),
        Tables(lambda: [*workload_tables(analysis, run_link, dataset), *effect_tables(analysis)], is_printed=True),
        Tables(
            lambda: [
                metrics_table(analysis),
                artefacts_table(dataset),
                *environments_tables(dataset),
                environment_table(dataset),
            ],
            rows_on_page=_ROWS_ON_PAGE,
        ),
        Heading("Runs", "runs"),
        Runs(dataset.runs.height, _runs(analysis, run_link)),
        Heading("Method", "method"),
        *map(Paragraph, paragraphs(dataset)),
        Heading("What the metrics mean", "metrics-meaning"),
        Meanings(_meanings(analysis)),
        Heading("Plan", "plan"),
        SourceText("plan.yaml", dataset.plan_text),
    ]


def _runs(analysis: Analysis, run_link: str) -> list[RunsOfCase]:
    return [
        RunsOfCase(
            case.case.id,
            case.case.title(),
            f"{run_link}/{case.case.id}/",
            [(block, f"{run_link}/{folder.split('/', 1)[1]}/") for block, folder in sorted(case.folders.items())],
        )
        for case in analysis.cases
        if case.folders
    ]


def _meanings(analysis: Analysis) -> list[Meaning]:
    used = {name for case in analysis.cases for name in case.metrics}
    rows = catalogue_of(case.case for case in analysis.cases).metrics
    return [Meaning(name, row.label, row.meaning, row.unit) for name, row in rows.items() if name in used]


SECTION = Section("behind", "All results and runs", build)
