# SPDX-License-Identifier: Apache-2.0
"""`pybench compare`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Optional

import typer

from pybench.cli.options import JsonOption
from pybench.cli.show import print_json, print_tables
from pybench.errors import RegressionError, UnknownNameError, UsageError
from pybench.words import counted

if TYPE_CHECKING:
    from pybench.analysis.findings.comparison import Comparison


_Before = Annotated[Path, typer.Argument(metavar="A", help="The campaign to compare with.")]
_After = Annotated[Path, typer.Argument(metavar="B", help="The campaign to judge.")]
_Tolerance = Annotated[float, typer.Option(min=0.0, metavar="R", help="Tolerated change of a ratio: 0.02 is 2 %.")]
_TolerancePp = Annotated[
    float,
    typer.Option("--tolerance-pp", min=0.0, metavar="PP", help="Tolerated loss of accuracy, in percentage points."),
]
_Metrics = Annotated[
    Optional[list[str]],
    typer.Option("--metric", metavar="NAME", help="Judge only this metric; may be repeated [default: gated ones]."),
]
_AcrossBoards = Annotated[
    bool, typer.Option("--across-boards", help="Also compare runs on different models of GPU or CPU.")
]
_Markdown = Annotated[
    Optional[Path],
    typer.Option(metavar="FILE", help="Append the result to FILE as Markdown, such as $GITHUB_STEP_SUMMARY."),
]
_Junit = Annotated[
    Optional[Path],
    typer.Option(metavar="FILE", help="Write the verdicts to FILE as JUnit XML: each judged metric is a test."),
]


def compare(
    before: _Before,
    after: _After,
    tolerance: _Tolerance = 0.05,
    tolerance_pp: _TolerancePp = 1.0,
    metric: _Metrics = None,
    across_boards: _AcrossBoards = False,
    markdown: _Markdown = None,
    junit: _Junit = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two campaigns, case by case.

    Judged are the median latency, the energy of a unit of work and the accuracy of each case; the rest is context.

    Exit code 5: a judged metric of B is worse. Its whole 95 % interval is beyond the tolerance, and its p value is
    below 0.05 after Holm's correction for all judgements. Counted values have no p value.
    """
    from pybench.analysis.findings.comparison import compare as compare_datasets
    from pybench.dataset import load
    from pybench.processes import all_cores
    from pybench.report.comparison_tables import comparison_markdown, comparison_sentences, comparison_tables
    from pybench.report.junit import comparison_junit

    with all_cores() as processes:
        datasets = [load(directory, processes=processes) for directory in (before, after)]
    try:
        comparison = compare_datasets(
            *datasets,
            metrics=metric,
            tolerance=tolerance,
            tolerance_pp=tolerance_pp,
            across_boards=across_boards,
        )
    except UnknownNameError as error:
        if error.kind != "metric":
            raise
        near = (
            error.hint if error.hint and error.hint.startswith("did you mean") else "docs/metrics.md lists all metrics"
        )
        raise UsageError(f"--metric {error.name}: {error.message}", hint=near) from error
    if markdown is not None:
        _write("--markdown", markdown, comparison_markdown(comparison), mode="a")  # after what earlier steps wrote
    if junit is not None:
        _write("--junit", junit, comparison_junit(comparison), mode="w")
    if as_json:
        print_json(comparison.as_json())
    else:
        print_tables(comparison_tables(comparison))
        if comparison.changes:
            print("\n" + "\n".join(comparison_sentences(comparison)))
    _judge(comparison, before, after, metric or [])


def _write(option: str, file: Path, text: str, *, mode: Literal["a", "w"]) -> None:
    """Raises UsageError where that is impossible."""
    try:
        with file.open(mode, encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise UsageError(
            f"{option} {file}: {error.strerror}", hint="name a file in a folder that can be written to"
        ) from error


def _judge(comparison: Comparison, before: Path, after: Path, metrics: Sequence[str]) -> None:
    """Raises UsageError where nothing could be judged, RegressionError where a metric became worse."""
    from pybench.analysis.findings.changes import Change

    if not comparison.changes and comparison.runs_before and comparison.runs_after and metrics:
        raise UsageError(
            f"no case that {before} and {after} share has {' or '.join(metrics)}, so nothing was compared",
            hint="tables/metrics.csv of a report lists the metrics of each case",
        )
    if not comparison.changes:
        raise UsageError(
            f"{before} and {after} have no case with a number on both sides, so nothing was compared",
            hint="cases are the same only if all factors are equal, `iterations` too; `pybench status DIR` lists cases",
        )
    if all(change.change is Change.NOT_COMPARABLE for change in comparison.changes):
        raise UsageError(
            f"{before} and {after} are not comparable: {comparison.changes[0].why}",
            hint="add --across-boards to compare runs on different models of GPU or CPU",
        )
    if not comparison.judged:
        why = next((change.why for change in comparison.changes if change.why), "no metric is on both sides")
        raise UsageError(
            f"{before} and {after}: nothing was judged ({why})",
            hint="name another metric with --metric; `pybench check DIR` says which runs are missing",
        )
    if comparison.regressions:
        first, number = comparison.regressions[0], counted(len(comparison.regressions), "regression")
        raise RegressionError(
            f"{number}, such as {first.metric.name} of {first.case.title()}",
            hint="run A's plan again and compare both runs of A: if the second is worse, the machine has changed",
        )
