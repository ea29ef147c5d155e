# SPDX-License-Identifier: Apache-2.0
"""`pybench project`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pybench.cli.options import JsonOption
from pybench.cli.show import print_json, print_tables
from pybench.errors import UsageError


def project(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="[DIR] SCENARIO", help="The campaign's directory, if it measured inputs; the scenario."),
    ],
    as_json: JsonOption = False,
) -> None:
    """Project joules a token to the energy of a query and of a fleet.

    The scenario is a YAML file with distributions of tokens, utilisation and overheads. Energies of tokens are given
    there, or measured by the campaign.
    """
    if len(paths) > 2:
        raise UsageError(
            f"takes a campaign and a scenario, not {len(paths)} paths", hint="pybench project DIR SCENARIO"
        )
    from pybench.dataset import load
    from pybench.projection import read_scenario, resolve, simulate
    from pybench.report.sections.projections.tables import projection_tables

    scenario = read_scenario(paths[-1])
    dataset = load(paths[0]) if len(paths) == 2 else None
    projection = simulate(scenario, resolve(scenario, dataset))
    if as_json:
        print_json(projection.as_json())
    else:
        print_tables(projection_tables(projection))
