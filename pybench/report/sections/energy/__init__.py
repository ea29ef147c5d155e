# SPDX-License-Identifier: Apache-2.0
"""Energy in detail: for each case, the power and the uncertainty budget of the run with the median energy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pybench.analysis.findings.joules import JouleFinding
from pybench.report.canvas import Drawing, Picture
from pybench.report.labels import case_names
from pybench.report.sections.elements import Element, Material, Paragraph, Section
from pybench.report.sections.energy.budgets import budget_table, overview_table
from pybench.report.sections.energy.power import draw_powers
from pybench.report.tables import Table

_LEAD = "For each case, the run with the median energy: its power, its windows and its uncertainty budget."
_RUNS_SHOWN = 4  # power traces with their budgets on the page; the rest is in files
_ALL_DRAWN = 24  # cases; with more of them only the traces on the page are drawn, because nobody looks through the rest


@dataclass(frozen=True)
class Traces(Element):
    """The table of all cases, then power and budget of one case after another; of many cases only links to files.

    ids: of the cases, as `budgets`"""

    overview: Table
    ids: Sequence[str]
    budgets: Sequence[Table]
    powers: Sequence[Drawing]

    @property
    def drawings(self) -> Sequence[Drawing]:
        return self.powers

    @property
    def tables(self) -> Sequence[Table]:
        return (self.overview, *self.budgets)

    @property
    def runs(self) -> list[tuple[str, Picture, Table]]:
        shown = (one[:_RUNS_SHOWN] for one in (self.ids, self.pictures, self.budgets))
        return list(zip(*shown, strict=True))

    @property
    def rest(self) -> list[tuple[str, Table, Picture | None]]:
        """Budgets that the page does not show, with their traces as far as these are drawn."""
        shown = [*self.pictures, *[None] * (len(self.budgets) - len(self.pictures))]
        return list(zip(self.ids, self.budgets, shown, strict=True))[_RUNS_SHOWN:]


def build(material: Material) -> list[Element]:
    findings = material.analysis.joules
    if not findings:
        return []
    names, drawn = _names_of(findings), _count_drawn(findings)
    which = f" Power is drawn for the first {drawn} of {len(findings)} cases." if drawn < len(findings) else ""
    overview = overview_table(findings, names, material.run_link)
    return [
        Paragraph(_LEAD + which, "lead"),
        Traces(overview, [finding.case.id for finding in findings], _budgets(findings, names), material.powers),
    ]


def power_drawings(findings: Sequence[JouleFinding]) -> list[Drawing]:
    """The figures of this section, which rest on the runs alone: they can be drawn while the runs are analysed."""
    drawn = _count_drawn(findings)
    return draw_powers(findings[:drawn], _names_of(findings)[:drawn])


def _names_of(findings: Sequence[JouleFinding]) -> list[str]:
    return case_names([finding.case for finding in findings])


def _count_drawn(findings: Sequence[JouleFinding]) -> int:
    return len(findings) if len(findings) <= _ALL_DRAWN else _RUNS_SHOWN


def _budgets(findings: Sequence[JouleFinding], names: Sequence[str]) -> list[Table]:
    return [
        budget_table(number, name, finding)
        for number, (name, finding) in enumerate(zip(names, findings, strict=True), start=1)
    ]


SECTION = Section("joules", "Energy in detail", build, is_printed=False)
