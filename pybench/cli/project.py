# SPDX-License-Identifier: Apache-2.0
"""`pybench project`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pybench.campaign.storage import write_bytes
from pybench.cli.options import JsonOption
from pybench.cli.show import print_json, print_tables
from pybench.errors import UsageError

if TYPE_CHECKING:
    from pybench.projection.simulate import Projection


def project(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="[DIR] SCENARIO", help="The campaign's directory, if it measured inputs; the scenario."),
    ],
    as_json: JsonOption = False,
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also draw the energy of a query, as .svg or .pdf.")
    ] = None,
) -> None:
    """Project joules a token to the energy of a query and of a fleet.

    The scenario is a YAML file with distributions of tokens, utilisation and overheads. Energies of tokens are given
    there, or measured by the campaign.
    """
    if len(paths) > 2:
        raise UsageError(
            f"takes a campaign and a scenario, not {len(paths)} paths", hint="pybench project DIR SCENARIO"
        )
    if paths[-1].is_dir():
        raise UsageError(f"{paths[-1]} is a folder, not a scenario", hint="pybench project DIR SCENARIO")
    if figure is not None and figure.suffix not in (".svg", ".pdf"):
        raise UsageError(f"{figure} is neither .svg nor .pdf", hint="pybench project SCENARIO --figure query.svg")
    from pybench.case import catalogue_of
    from pybench.dataset import load
    from pybench.projection import read_scenario, resolve, simulate
    from pybench.report.sections.projections.tables import projection_tables

    scenario = read_scenario(paths[-1])
    dataset = load(paths[0]) if len(paths) == 2 else None
    projection = simulate(scenario, resolve(scenario, dataset))
    if figure is not None:
        _draw(projection, figure)
    if as_json:
        print_json(projection.as_json())
    else:
        catalogue = catalogue_of(() if dataset is None else dataset.cases.values())
        print_tables(projection_tables(projection, catalogue))


def _draw(projection: Projection, target: Path) -> None:
    from pybench.report.canvas import draw
    from pybench.report.sections.projections.figure import draw_projection

    picture = draw(partial(draw_projection, projection), pdf=target.suffix == ".pdf")
    write_bytes(target, picture.svg.encode() if picture.pdf is None else picture.pdf, option="--figure")
