# SPDX-License-Identifier: Apache-2.0
"""`pybench check`, `analyse`, `report` and `compare`: what a campaign's directory says."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from pybench.errors import CoverageError, RegressionError, UsageError
from pybench.units import METRICS

if TYPE_CHECKING:
    from pybench.report.tables import Table

_Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The campaign's directory.")]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def register(app: typer.Typer) -> None:
    for command in (check, analyse, report, compare):
        app.command()(command)


def check(directory: _Directory, as_json: _Json = False) -> None:
    """Whether the runs cover the plan: exit 0 if they do, 3 if they fall short, 4 if stored files are corrupt."""
    from pybench.coverage import measure
    from pybench.dataset import load
    from pybench.report.trust_tables import coverage_table

    coverage = measure(load(directory))
    if as_json:
        _print_json(coverage.as_json())
    else:
        _print_tables([coverage_table(coverage)])
    if not coverage.is_full:
        raise CoverageError(
            f"{coverage.planned - coverage.covered} of {coverage.planned} planned runs have no answer",
            hint="run the plan again: it continues what is missing or was stopped; --retry-failed repeats the rest",
        )


def analyse(directory: _Directory, as_json: _Json = False) -> None:
    """What the runs say: each case, each comparison with its interval, each verdict."""
    from pybench.analysis import analyse as analyse_dataset
    from pybench.coverage import measure
    from pybench.dataset import load
    from pybench.report.case_tables import exclusions_table, workload_tables
    from pybench.report.contrast_tables import contrast_tables
    from pybench.report.findings import describe
    from pybench.report.protocol_section import protocol_sections
    from pybench.report.trust_tables import cautions_table, token_table

    dataset = load(directory)
    analysis, coverage = analyse_dataset(dataset), measure(dataset)
    if as_json:
        _print_json({**analysis.as_json(), "coverage": coverage.as_json()})
        return
    findings = describe(dataset, analysis, coverage)
    print(f"{analysis.name}: {findings.headline}\n")
    for title, sentences in findings.groups:
        print("\n".join([title, *(f"  {one.plain}" for one in sentences)]) + "\n")
    sections = protocol_sections(analysis)
    for section in sections:
        print("\n".join([f"By {section.name}", *(f"  {one.plain}" for one in section.sentences)]) + "\n")
    print("\n".join(["How sure it is", *(f"  {one.plain}" for one in findings.doubts)]) + "\n")
    tables = [*workload_tables(analysis, "runs"), *contrast_tables(analysis)]
    tables += [table for section in sections for table in section.tables]
    _print_tables([*tables, token_table(analysis), exclusions_table(analysis), cautions_table(dataset)])


def report(
    directory: _Directory,
    out: Annotated[
        Optional[Path], typer.Option("--out", "-o", help="The report's folder [default: DIR/report].")
    ] = None,
) -> None:
    """Write the report: one offline HTML page, tables and figures. The last line printed is where it lies."""
    from pybench.dataset import load
    from pybench.report import write_report

    print(write_report(load(directory), out))


def compare(
    before: Annotated[Path, typer.Argument(metavar="A", help="The campaign to compare with.")],
    after: Annotated[Path, typer.Argument(metavar="B", help="The campaign that may have got worse.")],
    tolerance: Annotated[float, typer.Option(min=0.0, help="How much worse a ratio may be.")] = 0.05,
    tolerance_pp: Annotated[
        float, typer.Option("--tolerance-pp", min=0.0, help="Percentage points that an accuracy may fall.")
    ] = 1.0,
    metric: Annotated[
        Optional[list[str]], typer.Option("--metric", metavar="NAME", help="Only this metric; may be repeated.")
    ] = None,
    as_json: _Json = False,
) -> None:
    """Two campaigns, case by case: exit 5 if any metric got worse by more than the tolerance with its whole
    interval."""
    from pybench.analysis.comparison import compare as compare_datasets
    from pybench.dataset import load
    from pybench.report.comparison_tables import comparison_tables

    _check_metrics(metric or [])
    comparison = compare_datasets(
        load(before), load(after), metrics=metric, tolerance=tolerance, tolerance_pp=tolerance_pp
    )
    if as_json:
        _print_json(comparison.as_json())
    else:
        _print_tables(comparison_tables(comparison))
    if not comparison.changes:
        raise UsageError(
            f"{before} and {after} share no case with a number on both sides: nothing was compared",
            hint="a case is the same only with every factor equal, iterations too; `pybench status DIR` lists cases",
        )
    if comparison.regressions:
        first = comparison.regressions[0]
        raise RegressionError(
            f"{len(comparison.regressions)} regressions, such as {first.metric.name} of {first.case.title()}",
            hint="compare environment.json of both sides before blaming the code",
        )


def _check_metrics(names: list[str]) -> None:
    import difflib

    for name in names:
        if name not in METRICS:
            near = difflib.get_close_matches(name, METRICS, 1)
            raise UsageError(
                f"--metric {name} is no metric",
                hint=f"did you mean {near[0]}?" if near else f"one of {', '.join(METRICS)}",
            )


def _print_tables(tables: list[Table]) -> None:
    from pybench.report.tables import to_text

    print("\n".join(to_text(table) for table in tables if table.rows), end="")


def _print_json(content: dict[str, Any]) -> None:
    json.dump(content, sys.stdout, indent=1, ensure_ascii=False, allow_nan=False)
    print()
