# SPDX-License-Identifier: Apache-2.0
"""One value of a key that is no factor: what is wrong with it. Values of factors are in `pybench.plan.values`.

Each check returns the value as the plan has it, and raises ValueProblem for what does not fit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from pybench.case.references import curve_names, names_at_bounds
from pybench.case.repetitions import LOOKS, MOST_REPETITIONS, UNTIL
from pybench.catalogue.catalogue import Catalogue
from pybench.document import Plain
from pybench.document.keys import described
from pybench.plan.values import ValueProblem, nearest

SCHEMA_VERSION = 1  # of plans; a case and a run directory have versions of their own
LARGEST_SEED = 2**32 - 1
NAME = r"[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9])?"  # of a campaign
_ONE_A_BOUND = "it has a value for each bound of `slo_ms`, and the report lists these in a table of their own"


def check_version(value: Plain) -> int:
    if value == SCHEMA_VERSION and isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueProblem(f"`schema_version` is {described(value)}; this pybench reads {SCHEMA_VERSION}")


def check_name(value: Plain) -> str:
    if isinstance(value, str) and re.fullmatch(NAME, value):
        return value
    hint = "it is the name of the campaign's folder: at most 64 letters, digits, `.`, `_`, `-`"
    raise ValueProblem(f"`name` takes a short word; not {described(value)}", hint)


def check_text(key: str, value: Plain) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise ValueProblem(f"`{key}` takes text; not {described(value)}", "put it in quotes")


def check_integer(key: str, value: Plain, least: int, most: int) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return value
    raise ValueProblem(f"`{key}` takes an integer from {least} to {most}; not {described(value)}")


def check_repetitions(value: Plain) -> int:
    return check_integer("repetitions", value, 1, MOST_REPETITIONS)


def check_blocks(value: Plain) -> int:
    """The number of a whole plan, which can be a mapping as well."""
    try:
        return check_repetitions(value)
    except ValueProblem as problem:
        raise ValueProblem(problem.what, f"or {{until: {UNTIL}, at_most: 60}}, to stop when decided") from problem


def check_until(value: Plain) -> str:
    if value == UNTIL:
        return UNTIL
    raise ValueProblem(f"`until` takes {UNTIL}; not {described(value)}")


def check_at_most(value: Plain) -> int:
    return check_integer("at_most", value, LOOKS[0], LOOKS[-1])


def check_within_s(value: Plain) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf:
        return float(value)
    hint = "as in `within_s: 1200` for 20 minutes" if isinstance(value, str) else None
    raise ValueProblem(f"`within_s` takes a number of seconds above 0; not {described(value)}", hint)


def check_number(problem: Callable[[Plain], str | None]) -> Callable[[Plain], float | None]:
    """`problem`: what is wrong with a value, or None."""

    def check(value: Plain) -> float:
        wrong = problem(value)
        if wrong is None and isinstance(value, int | float):
            return float(value)
        raise ValueProblem(str(wrong))

    return check


def check_truth(value: Plain) -> bool:
    if isinstance(value, bool):
        return value
    raise ValueProblem(f"`over_cells` takes true or false; not {described(value)}")


def check_drawable(catalogue: Catalogue, value: Plain) -> str | None:
    names = curve_names(catalogue)
    if isinstance(value, str) and value in names:
        return value
    what = f"`metric` takes a metric, or a criterion without `_min` or `_max`; not {described(value)}"
    if value in names_at_bounds(catalogue):
        raise ValueProblem(what, _ONE_A_BOUND)
    raise ValueProblem(what, nearest(value, names) or "docs/metrics.md lists all metrics")
