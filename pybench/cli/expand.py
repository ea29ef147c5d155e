# SPDX-License-Identifier: Apache-2.0
"""`pybench expand`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pybench.case import Case, case_to_json, catalogue_of, service_levels
from pybench.case.factors import factors_of
from pybench.cli.case_table import extent, print_cases
from pybench.cli.options import FilterOption, JsonOption, PlanArgument, SetOption, joined
from pybench.cli.show import print_json, say
from pybench.errors import UsageError
from pybench.words import counted


def expand(
    plan: PlanArgument, filters: FilterOption = None, overrides: SetOption = None, as_json: JsonOption = False
) -> None:
    """List the cases of a plan with their ids."""
    from pybench.plan import load_plan
    from pybench.plan.filter import parse_filter

    loaded = load_plan(plan, tuple(overrides or ()))
    select = joined(filters)
    known = factors_of(catalogue_of(loaded.cases))
    accepts: Callable[[Case], bool] = parse_filter(select, known) if select is not None else lambda case: True
    cases = [case for case in loaded.cases if accepts(case)]
    if not cases:
        raise UsageError(
            f"--filter {select}: no case matches",
            hint=f"`pybench expand` without --filter lists all {len(loaded.cases)} cases",
        )
    if as_json:
        listed = [_described(case, loaded.repetitions.of(case)) for case in cases]
        print_json({"name": loaded.name, "runs": loaded.repetitions.runs(cases), "cases": listed})
        return
    print_cases(cases)
    planned = counted(len(loaded.cases), "case")
    of = f"{len(cases)} of {planned}" if len(cases) < len(loaded.cases) else planned
    say(f"{of}, {extent(cases, loaded.repetitions)}")


def _described(case: Case, repetitions: int) -> dict[str, Any]:
    bounds = service_levels.bounds_of(case)
    own = {"slo_ms": list(bounds)} if bounds else {}
    return {**case_to_json(case), "title": case.title(), "repetitions": repetitions, **own}
