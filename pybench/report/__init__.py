# SPDX-License-Identifier: Apache-2.0
"""The report of a campaign: one offline HTML page, tables (CSV, Markdown, LaTeX) and figures (SVG, PDF).

    report/index.html        what was found, how sure it is, everything behind it
    report/tables/NAME.csv|md|tex
    report/figures/NAME.svg|pdf

It is made from the run directories alone and remade at will; nothing reads it back. Whatever ran badly, there is a
report: only failures, one repetition, no criteria. Corrupt runs are the exception (`CorruptError`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pybench.analysis import Analysis, analyse
from pybench.analysis.kernel_times import find_kernel_times
from pybench.campaign.layout import RUNS
from pybench.campaign.storage import storage_error, write_bytes, write_text
from pybench.dataset import Dataset
from pybench.dataset.coverage import Coverage, measure
from pybench.report.labels import case_names
from pybench.report.sections.energy.budgets import budget_table, overview_table
from pybench.report.sections.findings import describe
from pybench.report.sections.findings.contrast_tables import contrast_tables
from pybench.report.sections.kernels import kernel_tables
from pybench.report.sections.protocols import protocol_sections
from pybench.report.sections.reliability import (
    builds_table,
    cautions_table,
    coverage_table,
    environment_table,
    software_table,
    token_table,
    validity_table,
)
from pybench.report.sections.results.artefacts import artefacts_table
from pybench.report.sections.results.cases import exclusions_table, failures_table, metrics_table, workload_tables
from pybench.report.tables import Table, to_csv, to_latex, to_markdown

if TYPE_CHECKING:
    from pybench.report.page import Contents

__all__ = ["write_report"]

INDEX = "index.html"
TABLES, FIGURES = "tables", "figures"
_FORMS = {"csv": to_csv, "md": to_markdown, "tex": to_latex}
_LINK = re.compile(rf'href="({TABLES}|{FIGURES})/([\w.-]+)\.\w+"')


def write_report(dataset: Dataset, folder: Path | None = None, *, run_link: str | None = None) -> Path:
    """Writes everything under `folder` (by default the campaign's own `report/`) and returns the page; the page comes
    last. `run_link`: what leads from there to the runs, where it is not to be the way from `folder`.

    Tables and figures that the page of before links, and that this report does not have, are deleted."""
    from pybench.report.page import Contents, render_page
    from pybench.report.sections.energy.power import draw_powers
    from pybench.report.sections.results.figures import draw_figures

    target = folder or dataset.campaign.report
    analysis, coverage = analyse(dataset), measure(dataset)
    contrasts = contrast_tables(analysis)
    run_link = run_link or _relative(dataset.campaign.path / RUNS, target)
    contents = Contents(
        findings=describe(dataset, analysis, coverage),
        found_tables=[table for table in contrasts if not table.name.startswith("effects")],
        sure_tables=_sure_tables(dataset, analysis, coverage, run_link),
        behind_tables=[
            *workload_tables(analysis, run_link),
            *(table for table in contrasts if table.name.startswith("effects")),
            metrics_table(analysis),
            artefacts_table(dataset),
            environment_table(dataset),
        ],
        pictures=draw_figures(dataset, analysis),
        kernel_tables=kernel_tables(find_kernel_times(dataset)),
        joule_tables=_joule_tables(analysis, run_link),
        power_pictures=draw_powers(analysis.joules),
        protocols=protocol_sections(analysis),
    )
    page = render_page(dataset, analysis, contents, run_link)
    before = _linked_files(target / INDEX)
    _make_folders(target)
    tables, pictures = list(_all_tables(contents)), (*contents.pictures, *contents.power_pictures)
    for table in tables:
        for suffix, form in _FORMS.items():
            write_text(target / TABLES / f"{table.name}.{suffix}", form(table))
    for shown in pictures:
        write_text(target / FIGURES / f"{shown.name}.svg", shown.svg)
        write_bytes(target / FIGURES / f"{shown.name}.pdf", shown.pdf)
    write_text(target / INDEX, page)
    kept = {(TABLES, table.name) for table in tables} | {(FIGURES, shown.name) for shown in pictures}
    for path in before:
        if (path.parent.name, path.stem) not in kept:
            path.unlink(missing_ok=True)
    return target / INDEX


def _linked_files(index: Path) -> list[Path]:
    """The files of the tables and figures that a page links, in all forms; none where there is no page."""
    if not index.is_file():
        return []
    stems = {(found[1], found[2]) for found in _LINK.finditer(index.read_text(errors="replace"))}
    forms = {TABLES: tuple(_FORMS), FIGURES: ("svg", "pdf")}
    return [index.parent / kind / f"{stem}.{form}" for kind, stem in sorted(stems) for form in forms[kind]]


def _all_tables(contents: Contents) -> Iterator[Table]:
    yield from (*contents.found_tables, *contents.sure_tables, *contents.kernel_tables, *contents.joule_tables)
    yield from contents.behind_tables
    for section in contents.protocols:
        yield from section.tables


def _sure_tables(dataset: Dataset, analysis: Analysis, coverage: Coverage, run_link: str) -> list[Table]:
    return [
        token_table(analysis),
        software_table(analysis.comparability),
        coverage_table(coverage),
        validity_table(dataset),
        failures_table(analysis, run_link),
        exclusions_table(analysis),
        builds_table(analysis),
        cautions_table(dataset),
    ]


def _joule_tables(analysis: Analysis, run_link: str) -> list[Table]:
    """The table of all cases, then one a case, in the order of `draw_powers`."""
    findings = analysis.joules
    if not findings:
        return []
    names = case_names([finding.case for finding in findings])
    budgets = [
        budget_table(number, name, finding)
        for number, (name, finding) in enumerate(zip(names, findings, strict=True), start=1)
    ]
    return [overview_table(findings, run_link), *budgets]


def _relative(path: Path, start: Path) -> str:
    return Path(os.path.relpath(path.resolve(), start.resolve())).as_posix()


def _make_folders(target: Path) -> None:
    for folder in (target / TABLES, target / FIGURES):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise storage_error(error, folder) from error
