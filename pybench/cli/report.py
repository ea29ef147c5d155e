# SPDX-License-Identifier: Apache-2.0
"""`pybench report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from pybench.cli.options import DirectoryArgument


def report(
    directory: DirectoryArgument,
    out: Annotated[
        Optional[Path], typer.Option("--out", "-o", help="The report's folder [default: DIR/report].")
    ] = None,
) -> None:
    """Write the report: one HTML page, tables, figures.

    The page needs no network. The last line printed is its path.
    """
    from pybench.dataset import load
    from pybench.report import write_report

    print(write_report(load(directory), out))
