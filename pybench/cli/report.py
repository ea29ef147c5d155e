# SPDX-License-Identifier: Apache-2.0
"""`pybench report`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from pybench.campaign.directory import open_campaign
from pybench.cli.options import DirectoryArgument

if TYPE_CHECKING:
    from pybench.dataset import Dataset
    from pybench.projection import Projection

_IMPORTED_SLOWLY = ("pybench.report", "matplotlib.pyplot", "matplotlib.backends.backend_svg")


def report(
    directory: DirectoryArgument,
    out: Annotated[
        Optional[Path], typer.Option("--out", "-o", metavar="FOLDER", help="The report's folder [default: DIR/report].")
    ] = None,
    scenario: Annotated[
        Optional[Path],
        typer.Option("--scenario", metavar="FILE", help="Add a section with this scenario's projection to a fleet."),
    ] = None,
    pdf: Annotated[bool, typer.Option("--pdf", help="Also store each figure as PDF, for LaTeX.")] = False,
) -> None:
    """Write the report: one HTML page, tables, figures.

    The page needs no network. The last line printed is its path. A report in DIR/report stays as it is while no file
    of the campaign, no part of pybench and no option has changed.
    """
    from pybench.campaign.reported import ReportRecord

    campaign = open_campaign(directory)
    record = ReportRecord(campaign, pdf=pdf) if out is None and scenario is None else None
    if record is not None and record.is_current():
        print(campaign.report / "index.html")
        return
    from pybench.processes import all_cores

    with all_cores() as processes:
        processes.prepare("pybench.dataset.run_tables")
        processes.prepare_after(*_IMPORTED_SLOWLY)
        from pybench.dataset import load

        dataset = load(directory, processes=processes)
        from pybench.report import write_report  # after the runs: the others were idle while this one imports

        projection = None if scenario is None else _projection(scenario, dataset)
        print(write_report(dataset, out, projection=projection, processes=processes, pdf=pdf))
    if record is not None:
        record.store()


def _projection(path: Path, dataset: Dataset) -> Projection:
    from pybench.projection import read_scenario, resolve, simulate

    scenario = read_scenario(path)
    return simulate(scenario, resolve(scenario, dataset))
