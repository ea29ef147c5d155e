# SPDX-License-Identifier: Apache-2.0
"""The report of a campaign: one offline HTML page, tables (CSV, Markdown, LaTeX) and figures (SVG; PDF on request).

    report/index.html        what was found, how sure it is, everything behind it
    report/tables/NAME.csv|md|tex
    report/figures/NAME.svg  and NAME.pdf where the report is asked for PDFs

It is made from the run directories alone and remade at will; nothing reads it back. Whatever ran badly, there is a
report: only failures, one repetition, no criteria. Corrupt runs are the exception (`CorruptError`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pybench.analysis import analyse
from pybench.analysis.findings.joules import find_joules
from pybench.campaign.layout import RUNS
from pybench.campaign.storage import storage_error, write_bytes
from pybench.collector import collection, no_collection
from pybench.dataset import Dataset
from pybench.dataset.coverage import measure
from pybench.processes import Processes, RunningTasks
from pybench.report.canvas import Drawing, Picture, draw
from pybench.report.page import Page
from pybench.report.sections import build_sections
from pybench.report.sections.elements import BuiltSection, Element, Material
from pybench.report.sections.energy import power_drawings
from pybench.report.tables import Table, to_csv, to_latex, to_markdown

if TYPE_CHECKING:
    from pybench.projection import Projection

__all__ = ["write_numbers", "write_report"]

INDEX = "index.html"
TABLES, FIGURES = "tables", "figures"
_LEFT_FIGURES = 3  # of a process, drawn while another one imports matplotlib
_NUMBERS = {"csv": to_csv}
_FORMS = {**_NUMBERS, "md": to_markdown, "tex": to_latex}
_LINK = re.compile(rf'href="({TABLES}|{FIGURES})/([\w.-]+)\.\w+"')


def write_report(
    dataset: Dataset,
    folder: Path | None = None,
    *,
    run_link: str | None = None,
    projection: Projection | None = None,
    processes: Processes | None = None,
    pdf: bool = False,
) -> Path:
    """Writes everything under `folder` (by default the campaign's own `report/`) and returns the page; the page comes
    last. `run_link`: what leads from there to the runs, where it is not to be the way from `folder`. `projection`: gets
    a section of its own. `processes`: which carry out protocols and draw the figures, and end then; None: this one
    alone. `pdf`: also as PDF.

    Tables and figures that the page of before links, and that this report does not have, are deleted."""
    target = folder or dataset.campaign.report
    run_link = run_link or _relative(dataset.campaign.path / RUNS, target)
    processes = processes or Processes(1)
    joules = find_joules(dataset)
    powers = power_drawings(joules)
    early: list[RunningTasks[Drawing, Picture]] = []

    def begin_powers() -> None:
        early.append(processes.begin(partial(draw, pdf=pdf), powers))  # they rest on runs alone

    analysis = analyse(dataset, processes, joules=joules, and_then=begin_powers)
    material = Material(dataset, analysis, measure(dataset), run_link, projection, powers)
    begun = processes.open(partial(draw, pdf=pdf))
    with no_collection():
        sections = list(_begun_sections(material, begun))
    elements = [element for section in sections for element in section.elements]
    before = _linked_files(target / INDEX)
    _make_folders(target / TABLES, target / FIGURES)
    with no_collection():
        written = _write_tables([table for section in sections for table in section.tables], target / TABLES, _FORMS)
        page = Page(material, sections)
        page.begin()
    with collection():  # figures have cycles
        drawn = _drawn(powers, *early) | _drawn(_later_drawings(elements, powers), begun)
    for element in elements:
        element.take([drawn[drawing] for drawing in element.drawings])
    processes.close()
    for shown in (shown for element in elements for shown in element.pictures):
        written += _write_figure(shown, target / FIGURES)
    with no_collection():
        _write(target / INDEX, page.text().encode())
    for path in set(before) - set(written):
        path.unlink(missing_ok=True)
    return target / INDEX


def write_numbers(dataset: Dataset) -> Path:
    """Writes the tables of `write_report` as CSV alone, where there is no `report/` yet, and returns their folder."""
    folder = dataset.campaign.report / TABLES
    material = Material(dataset, analyse(dataset), measure(dataset), run_link="")
    with no_collection():
        tables = [table for section in build_sections(material) for table in section.tables]
        _make_folders(folder)
        _write_tables(tables, folder, _NUMBERS)
    return folder


def _begun_sections(material: Material, begun: RunningTasks[Drawing, Picture]) -> Iterator[BuiltSection]:
    """The sections, whose figures others draw while the next one is built."""
    for section in build_sections(material):
        begun.add(_later_drawings(section.elements, material.powers))
        yield section


def _later_drawings(elements: Iterable[Element], powers: Collection[Drawing]) -> list[Drawing]:
    """The figures of elements that are not begun before there are sections."""
    return [drawing for element in elements for drawing in element.drawings if drawing not in powers]


def _drawn(drawings: Sequence[Drawing], begun: RunningTasks[Drawing, Picture]) -> dict[Drawing, Picture]:
    return dict(zip(drawings, begun.finish(leaving=_LEFT_FIGURES), strict=True))


def _write_tables(tables: Sequence[Table], folder: Path, forms: Mapping[str, Callable[[Table], str]]) -> list[Path]:
    written = {folder / f"{table.name}.{suffix}": (form, table) for table in tables for suffix, form in forms.items()}
    for path, (form, table) in written.items():
        _write(path, form(table).encode())
    return list(written)


def _write_figure(shown: Picture, folder: Path) -> list[Path]:
    forms = {folder / f"{shown.name}.svg": shown.svg.encode()}
    if shown.pdf is not None:
        forms[folder / f"{shown.name}.pdf"] = shown.pdf
    for path, content in forms.items():
        _write(path, content)
    return list(forms)


def _write(path: Path, content: bytes) -> None:
    """A report is made again at will, and `ReportRecord` has the digests of its files."""
    write_bytes(path, content, is_lasting=False)


def _linked_files(index: Path) -> list[Path]:
    """The files of the tables and figures that a page links, in all forms; none where there is no page."""
    if not index.is_file():
        return []
    stems = {(found[1], found[2]) for found in _LINK.finditer(index.read_text(errors="replace"))}
    forms = {TABLES: tuple(_FORMS), FIGURES: ("svg", "pdf")}
    return [index.parent / kind / f"{stem}.{form}" for kind, stem in sorted(stems) for form in forms[kind]]


def _relative(path: Path, start: Path) -> str:
    return Path(os.path.relpath(path.resolve(), start.resolve())).as_posix()


def _make_folders(*folders: Path) -> None:
    for folder in folders:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise storage_error(error, folder) from error
