# SPDX-License-Identifier: Apache-2.0
"""Projection: what a scenario makes of joules a token, for a query and for a fleet."""

from __future__ import annotations

from functools import partial

from pybench.case import catalogue_of
from pybench.projection import Projection
from pybench.report.sections.elements import Element, Material, Paragraph, Pictures, Section, Tables
from pybench.report.sections.projections.figure import draw_projection
from pybench.report.sections.projections.tables import projection_tables


def build(material: Material) -> list[Element]:
    projection = material.projection
    if projection is None:
        return []
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
