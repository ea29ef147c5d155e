# SPDX-License-Identifier: Apache-2.0
"""`pybench init`, `schema`, `validate` and `expand`: what can be done with a plan before anything runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from pybench.case import Case, case_to_json, runs_of
from pybench.cli.progress import counted
from pybench.errors import PlanError, UsageError
from pybench.factors import FACTORS

PlanArgument = Annotated[Path, typer.Argument(metavar="PLAN", help="The campaign's plan, a YAML file.")]
SetOption = Annotated[
    Optional[list[str]],
    typer.Option("--set", metavar="A.B=V", help="Change the plan: `--set defaults.iterations=50`. May be repeated."),
]
FilterOption = Annotated[
    Optional[str],
    typer.Option("--filter", "-k", metavar="EXPR", help="Only these cases, as in `precision=int8,batch>=8`."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]

NOT_APPLICABLE = "-"
SHORT_ID = 12  # hexadecimal digits of an id that are shown; `--rerun` takes as many as are unique


def register(app: typer.Typer) -> None:
    for command in (init, schema, validate, expand):
        app.command()(command)


def init(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="Where to write it.")] = Path("plan.yaml"),
) -> None:
    """Write a first plan, with comments. Never overwrites."""
    target = path / "plan.yaml" if path.is_dir() else path
    text = resources.files("pybench.plan").joinpath("starter.yaml").read_text(encoding="utf-8")
    try:
        with open(target, "x", encoding="utf-8") as file:
            file.write(text.replace("PLAN", str(target)))
    except FileExistsError as error:
        raise UsageError(f"{target} exists, and init never overwrites", hint="give another name") from error
    except OSError as error:
        raise UsageError(
            f"cannot write {target}: {error.strerror}", hint="give a name in a folder that exists"
        ) from error
    print(target)
    print(f"next: pybench expand {target}, then pybench run {target}", file=sys.stderr)


def schema() -> None:
    """Print the JSON Schema of plans."""
    from pybench.plan.schema import plan_schema_text

    print(plan_schema_text(), end="")


def validate(plan: PlanArgument, overrides: SetOption = None, as_json: JsonOption = False) -> None:
    """Check a plan as a whole, and say what it asks for."""
    from pybench.plan import load_plan

    try:
        loaded = load_plan(plan, tuple(overrides or ()))
    except PlanError as error:
        if as_json:
            print_json({"file": error.file, "valid": False, "problems": [_problem_json(one) for one in error.problems]})
        raise
    runs = _runs(loaded.cases, loaded.repetitions)
    summary = {
        "file": str(plan),
        "valid": True,
        "name": loaded.name,
        "cases": len(loaded.cases),
        "repetitions": loaded.repetitions,
        "runs": runs,
        "varying": _varying(loaded.cases),
        "comparisons": [contrast.title() for contrast in loaded.contrasts],
        "files": {value: file.as_json() for value, file in loaded.files.items()},
    }
    if as_json:
        print_json(summary)
        return
    print(f"{loaded.name}: {counted(len(loaded.cases), 'case')}, {_extent(loaded.cases, loaded.repetitions)}")
    for name, values in _varying(loaded.cases).items():
        print(f"  {name}: {', '.join(values)}")
    for contrast in loaded.contrasts:
        bounds = ", ".join(f"{criterion.name} {criterion.threshold:g}" for criterion in contrast.accept)
        print(f"  compared {contrast.title()}" + (f": {bounds}" if bounds else ""))
    for value, file in loaded.files.items():
        print(f"  file {value}: sha256 {file.sha256[:SHORT_ID]} of its {file.covers}, {file.bytes} bytes")


def expand(
    plan: PlanArgument, select: FilterOption = None, overrides: SetOption = None, as_json: JsonOption = False
) -> None:
    """List the cases of a plan, with the beginnings of their ids."""
    from pybench.plan import expand as cases_of
    from pybench.plan import load_plan
    from pybench.plan.filter import parse_filter

    accepts: Callable[[Case], bool] = parse_filter(select) if select is not None else lambda case: True
    loaded = load_plan(plan, tuple(overrides or ()))
    cases = [case for case in cases_of(loaded) if accepts(case)]
    if not cases:
        raise UsageError(f"--filter {select}: no case fits", hint=f"the plan has {len(loaded.cases)}; try without")
    if as_json:
        print_json({"name": loaded.name, "cases": [{**case_to_json(case), "title": case.title()} for case in cases]})
        return
    _print_table(cases)
    planned = counted(len(loaded.cases), "case")
    of = f"{len(cases)} of {planned}" if len(cases) < len(loaded.cases) else planned
    print(f"{of}, {_extent(cases, loaded.repetitions)}", file=sys.stderr)


def _extent(cases: Sequence[Case], repetitions: int) -> str:
    return f"{counted(repetitions, 'repetition')}: {counted(_runs(cases, repetitions), 'run')}"


def _runs(cases: Sequence[Case], repetitions: int) -> int:
    return sum(runs_of(case, repetitions) for case in cases)


def _print_table(cases: Sequence[Case]) -> None:
    """Rows in columns: workload, model and what varies or was chosen. With colours and lines on a terminal only."""
    columns = [name for name in FACTORS if _is_column(name, cases)]
    rows = [[case.id[:SHORT_ID], *(_shown(case, name) for name in columns)] for case in cases]
    header = ["case", *columns]
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table

        table = Table(*header)
        for row in rows:
            table.add_row(*row)
        Console().print(table)
        return
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _is_column(name: str, cases: Sequence[Case]) -> bool:
    shown = {_shown(case, name) for case in cases} - {NOT_APPLICABLE}
    is_chosen = any(getattr(case, name) != FACTORS[name].default for case in cases)
    return len(shown) > 1 or (is_chosen and not FACTORS[name].protocol)


def _varying(cases: Sequence[Case]) -> dict[str, list[str]]:
    """Factors with more than one value among the cases that they mean something for; workload and model always."""
    values = {name: list(dict.fromkeys(_shown(case, name) for case in cases)) for name in FACTORS}
    varying = {name: [text for text in found if text != NOT_APPLICABLE] for name, found in values.items()}
    return {name: found for name, found in varying.items() if len(found) > 1 or name in ("workload", "model")}


def _shown(case: Case, name: str) -> str:
    """A factor's value as a plan writes it, or a dash where it changes nothing about the case."""
    from pybench.plan.cases import applies

    value = getattr(case, name)
    if not applies(name, case):
        return NOT_APPLICABLE
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)


def _problem_json(problem: Any) -> dict[str, Any]:
    return {"line": problem.line, "column": problem.column, "what": problem.what, "hint": problem.hint}


def print_json(content: Mapping[str, Any]) -> None:
    print(json.dumps(content, indent=1, ensure_ascii=False))
