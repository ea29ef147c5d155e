# SPDX-License-Identifier: Apache-2.0
"""`pybench replay`: a report made again and compared with what is published of it."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from pybench.campaign import layout
from pybench.cli.options import JsonOption
from pybench.cli.show import print_json
from pybench.errors import PybenchError, UsageError

if TYPE_CHECKING:
    from pybench.publication import Difference, Replay


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

    No GPU is needed. A whole report is compared byte for byte. Of a publication with `--report numbers`, each published
    cell is compared. Exit code 0: the same. 1: different. 4: the publication was changed.
    """
    from pybench.dataset import load
    from pybench.publication import check_unpacked, compare, unpacked
    from pybench.report import write_report

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
    elif result.is_reproduced:
        print("\n".join(_reproduced(result, out)))
    if not result.is_reproduced:
        raise _not_reproduced(result)


def _reproduced(result: Replay, out: Path | None) -> list[str]:
    if not result.is_of_numbers:
        return [f"equal: all {result.files} files of the report are identical"]
    how = "tables are made again, cell by cell" if result.differences else "tables are identical"
    return [
        f"equal: all {result.tables} published {how}",
        *_lines(result.differences),
        *([f"  {_cause(result)}"] if result.differences else []),
        f"not compared, because not published: page and figures, {f'now in {out}' if out else 'which --out DIR keeps'}",
    ]


def _not_reproduced(result: Replay) -> PybenchError:
    lost = [one for one in result.differences if not (result.is_of_numbers and one.keeps_all)]
    numbers = sum(not one.keeps_numbers for one in lost)
    said = (
        f"numbers differ in {numbers} of {result.tables} published tables"
        if numbers
        else "every published cell that is a number is the same"
    )
    what = "published tables" if result.is_of_numbers else "files of the report"
    lines = [f"{len(lost)} of {result.files} {what} differ", *_lines(lost), f"  {said}"]
    return PybenchError("\n".join(lines), hint=_cause(result))


def _cause(result: Replay) -> str:
    if result.causes:
        return f"other versions made the published report, which is the likely cause: {'; '.join(result.causes)}"
    return "all versions are equal, so sources of pybench, the processor or the build of a package differ"


def _lines(differences: Sequence[Difference]) -> list[str]:
    lines = [f"  {one.name} {one.how}" for one in differences[:_MOST_SHOWN]]
    rest = len(differences) - _MOST_SHOWN
    return [*lines, *([f"  and {rest} more"] if rest > 0 else [])]
