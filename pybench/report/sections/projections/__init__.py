# SPDX-License-Identifier: Apache-2.0
"""Projection: what a scenario makes of joules a token, for a query and for a fleet."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pybench.case import catalogue_of
from pybench.report.sections.elements import Element, Material, Paragraph, Pictures, Section, Tables

if TYPE_CHECKING:
    from pybench.projection import Projection


def build(material: Material) -> list[Element]:
    projection = material.projection
    if projection is None:
        return []
    # What reads scenarios takes as long to import as a section takes to build, and few reports have one.
    from pybench.report.sections.projections.figure import draw_projection
    from pybench.report.sections.projections.tables import projection_tables

    catalogue = catalogue_of(material.dataset.cases.values())
    return [
        Paragraph(_lead(projection), "lead"),
        Pictures(lambda: [partial(draw_projection, projection)]),
        Tables(lambda: projection_tables(projection, catalogue)),
    ]


def _lead(projection: Projection) -> str:
    scenario = projection.scenario
    source = "" if scenario.source is None else f" It is compared with: {scenario.source}."
    return f"Scenario {scenario.name}. Only inputs that are marked `measured` come from runs.{source}"


SECTION = Section("projection", "From tokens to a fleet", build, is_printed=False)
