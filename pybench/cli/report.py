# SPDX-License-Identifier: Apache-2.0
"""`pybench report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from pybench.campaign.directory import open_campaign
from pybench.cli.options import DirectoryArgument


def report(
    directory: DirectoryArgument,
    out: Annotated[
        Optional[Path], typer.Option("--out", "-o", help="The report's folder [default: DIR/report].")
    ] = None,
) -> None:
    """Write the report: one HTML page, tables, figures.

    The page needs no network. The last line printed is its path. A report in DIR/report stays as it is while no file
    of the campaign and no part of pybench has changed.
    """
    from pybench.campaign.reported import ReportRecord

    campaign = open_campaign(directory)
    record = ReportRecord(campaign) if out is None else None
    if record is not None and record.is_current():
        print(campaign.report / "index.html")
        return
    from pybench.dataset import load
    from pybench.report import write_report

    print(write_report(load(directory), out))
    if record is not None:
        record.store()
