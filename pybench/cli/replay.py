# SPDX-License-Identifier: Apache-2.0
"""`pybench replay`: a published report made again and compared byte for byte."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from pybench.campaign import layout
from pybench.cli.options import JsonOption
from pybench.cli.show import print_json
from pybench.errors import PybenchError, UsageError

if TYPE_CHECKING:
    from pybench.publication import Replay


_MOST_SHOWN = 10


def replay(
    publication: Annotated[
        Path, typer.Argument(metavar="DIR", help="A published archive, or the folder that `pybench fetch` wrote.")
    ],
    out: Annotated[
        Optional[Path], typer.Option("--out", "-o", metavar="DIR", help="Keep the new report in this folder.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Make a published report again and compare it.

    No GPU is needed; the comparison is byte for byte. Exit code 0: equal. 1: different. 4: the publication was changed.
    """
    from pybench.dataset import load
    from pybench.publication import check_unpacked, compare, unpacked
    from pybench.report import TABLES, write_report

    with tempfile.TemporaryDirectory(prefix="pybench-replay-") as folder, unpacked(publication) as directory:
        listed = check_unpacked(directory)
        remade = out or Path(folder) / layout.REPORT
        if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise UsageError(f"{out} exists", hint="choose another folder with --out")
        has_pdf = any(name.startswith(f"{layout.REPORT}/") and name.endswith(".pdf") for name in listed)
        write_report(load(directory, hash_all=True), remade, run_link=f"../{layout.RUNS}", pdf=has_pdf)
        result = compare(directory, listed, remade)
    if as_json:
        print_json(result.as_json())
    elif not result.differences:
        print(f"equal: all {result.files} files of the report are identical")
    if result.differences:
        raise _not_equal(result, f"{layout.REPORT}/{TABLES}/")


def _not_equal(result: Replay, tables: str) -> PybenchError:
    """`tables`: how the names of their files begin."""
    lines = [f"{one.name} {one.how}" for one in result.differences[:_MOST_SHOWN]]
    rest = len(result.differences) - _MOST_SHOWN
    lines += [f"and {rest} more"] if rest > 0 else []
    if not any(one.name.startswith(tables) and one.is_on_both_sides for one in result.differences):
        lines.append("all tables that both reports have are equal, and so are their numbers")
    cause = (
        "other versions made the published report, which is the likely cause: " + "; ".join(result.causes)
        if result.causes
        else "all versions are equal, so sources of pybench, the processor or the build of a package differ"
    )
    return PybenchError(
        "\n  ".join([f"{len(result.differences)} of {result.files} files of the report differ", *lines]), hint=cause
    )
