# SPDX-License-Identifier: Apache-2.0
"""`pybench validate`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from pybench.case import Case
from pybench.case.executing import runs_nowhere
from pybench.case.service_levels import bounds_of
from pybench.cli.case_table import extent, varying
from pybench.cli.containers import not_here
from pybench.cli.options import JsonOption, PlanArgument, SetOption
from pybench.cli.show import SHORT_ID, print_json
from pybench.cli.stopping import rule_text, stopping_json
from pybench.errors import PlanError
from pybench.words import counted


def validate(plan: PlanArgument, overrides: SetOption = None, as_json: JsonOption = False) -> None:
    """Check a plan, and print its factors and its number of runs."""
    from pybench.plan import load_plan

    try:
        loaded = load_plan(plan, tuple(overrides or ()))
    except PlanError as error:
        if as_json:
            print_json({"file": error.file, "valid": False, "problems": [_problem_json(one) for one in error.problems]})
        raise
    absent = not_here(loaded.environments)
    summary = {
        "file": str(plan),
        "valid": True,
        "name": loaded.name,
        "cases": len(loaded.cases),
        "repetitions": loaded.repetitions.usual,
        "runs": loaded.repetitions.runs(loaded.cases),
        **stopping_json(loaded.repetitions),
        "varying": varying(loaded.cases),
        "on_no_machine": _on_no_machine(loaded.cases),
        "comparisons": [contrast.title() for contrast in loaded.contrasts],
        "environments": {name: one.text for name, one in loaded.environments.items()},
        "environments_not_here": list(absent),
        "files": {value: file.as_json() for value, file in loaded.files.items()},
    }
    if as_json:
        print_json(summary)
        return
    print(f"{loaded.name}: {counted(len(loaded.cases), 'case')}, {extent(loaded.cases, loaded.repetitions)}")
    if loaded.repetitions.rule is not None:
        print(f"  {rule_text(loaded.repetitions.rule)}")
    for name, values in varying(loaded.cases).items():
        print(f"  {name}: {', '.join(values)}")
    for why, number in _on_no_machine(loaded.cases).items():
        print(f"  no machine runs {counted(number, 'case')}: {why}")
    bounded = [case for case in loaded.cases if bounds_of(case)]
    if bounded:
        bounds_ms = sorted({bound for case in bounded for bound in bounds_of(case)})
        listed = ", ".join(f"{bound:g}" for bound in bounds_ms)
        print(f"  slo_ms: {listed} (evaluated on the runs of {counted(len(bounded), 'case')})")
    for contrast in loaded.contrasts:
        bounds = ", ".join(f"{criterion.name} {criterion.threshold:g}" for criterion in contrast.accept)
        published = counted(len(contrast.reference), "published value") if contrast.reference else ""
        print(f"  comparison: {'; '.join(filter(None, [contrast.title(), bounds, published]))}")
    for name, one in loaded.environments.items():
        print(f"  environment {name}: {one.text}{' (not on this machine)' if name in absent else ''}")
    for value, file in loaded.files.items():
        print(f"  file {value}: sha256 {file.sha256[:SHORT_ID]} of its {file.covers}, {file.bytes} bytes")


def _on_no_machine(cases: Sequence[Case]) -> dict[str, int]:
    """Why -> number of the cases that no machine runs for it."""
    refusals = filter(None, map(runs_nowhere, cases))
    return dict(Counter(refusal.in_one_line() for refusal in refusals))


def _problem_json(problem: Any) -> dict[str, Any]:
    return {"line": problem.line, "column": problem.column, "what": problem.what, "hint": problem.hint}
