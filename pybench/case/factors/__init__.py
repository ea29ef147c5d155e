# SPDX-License-Identifier: Apache-2.0
"""The closed list of factors: what a plan may set.

`Factors` defines each of them once, with its type, default and meaning; a case is made of it. `FACTORS` is the same
list as data (`pybench.case.factor`). Plans, run directories, tables and the JSON Schema come from it.

The fields are in one module per subject: `model`, `quantising`, `runtimes`, `sizes`, `inputs`, `training`, `running`.
The class of each extends that of the one before it, because the order of all fields is that of tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from pybench.case.factor import Factor
from pybench.case.factors.inputs import DATA, NORMAL, ZEROS
from pybench.case.factors.running import BOTH, FROM_GPU, TO_GPU, RunFactors
from pybench.case.factors.sizes import DIGITS_SIZE
from pybench.case.factors.training import CHANNELS_LAST, CONTIGUOUS
from pybench.case.idle import outside_its_rows
from pybench.catalogue.catalogue import BUILT_IN, Catalogue
from pybench.catalogue.metrics import Metric
from pybench.catalogue.options import Option
from pybench.catalogue.workloads import FactorGroup, Workload
from pybench.errors import UnknownNameError

if TYPE_CHECKING:
    from pybench.case.case import Case

__all__ = [
    "BOARD_SETTINGS",
    "BOTH",
    "CHANNELS_LAST",
    "CONTIGUOUS",
    "DATA",
    "DIGITS_SIZE",
    "FACTORS",
    "FROM_GPU",
    "NORMAL",
    "TO_GPU",
    "USUAL",
    "ZEROS",
    "Factors",
    "factor_named",
    "factor_names",
    "factors_in",
    "factors_of",
    "fixed_value",
    "followers_of",
    "idle_factors",
    "is_built_in",
    "is_idle",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors(RunFactors):
    """One value of each factor. The order is that of tables."""


FACTORS: Mapping[str, Factor] = {
    one.name: Factor(name=one.name, default=None if one.default is MISSING else one.default, **one.metadata)
    for one in fields(Factors)
}


# Factors whose default is in the workload's row.
USUAL: Mapping[str, str] = {name: factor.usual for name, factor in FACTORS.items() if factor.usual is not None}


@lru_cache(maxsize=8)
def factors_of(catalogue: Catalogue) -> Mapping[str, Factor]:
    """`FACTORS` with the values that the rows of a catalogue add, then the options of its rows."""
    if catalogue is BUILT_IN:
        return FACTORS
    owners: dict[str, list[str]] = {}
    options: dict[str, Option] = {}
    answering: set[str] = set()
    for row in catalogue.added():
        for option in () if isinstance(row, Metric) else row.options:
            owners.setdefault(option.name, []).append(row.name)
            options[option.name] = option
            if not isinstance(row, Workload):  # a model or a runtime: another value may be another program
                answering.add(option.name)
    own = {
        name: one if one.rows is None else replace(one, choices=tuple(getattr(catalogue, one.rows)))
        for name, one in FACTORS.items()
    }
    return own | {name: _factor_of(option, owners[name], answers=name in answering) for name, option in options.items()}


def _factor_of(option: Option, owners: list[str], *, answers: bool) -> Factor:
    return Factor(
        name=option.name,
        kind=option.kind,
        default=option.default,
        meaning=option.meaning,
        choices=option.choices,
        minimum=option.minimum,
        maximum=option.maximum,
        idle=outside_its_rows(option.name, owners),
        answers=answers,
    )


def factor_names(cases: Iterable[Case]) -> tuple[str, ...]:
    """Names of all factors, then of the options that any of these cases has."""
    return tuple(dict.fromkeys([*FACTORS, *(name for case in cases for name in case.own_factors())]))


def factor_named(name: str, case: Case) -> Factor:
    """A factor, or an option of the case. Raises UnknownNameError for another name."""
    known = case.own_factors()
    if name not in known:
        raise UnknownNameError("factor", name, known)
    return known[name]


def factors_in(*groups: FactorGroup) -> tuple[str, ...]:
    """Names of the factors in these groups, in the order of `FACTORS`."""
    return tuple(name for name, factor in FACTORS.items() if factor.group in groups)


def followers_of(fixed: str) -> tuple[str, ...]:
    """Names of the factors that follow one that a contrast fixes."""
    return tuple(name for name, factor in FACTORS.items() if fixed in factor.follows)


def idle_factors(case: Case) -> frozenset[str]:
    """Factors that change nothing about a case because of another factor. A plan resets them to their default."""
    known = factors_of(case.catalogue)
    return frozenset(name for name, factor in known.items() if factor.idle is not None and factor.idle.when(case))


def is_idle(name: str, case: Case) -> bool:
    """Whether a name means nothing for a case: an idle factor, or an option that the case does not have."""
    return name in case.idle or (name not in FACTORS and name not in case.own_factors())


def fixed_value(name: str, case: Case) -> str | None:
    """What the case's runtime has in the place of an idle factor; None: nothing."""
    field_name, row = factor_named(name, case).fixed_by, case.runtime_row
    return None if field_name is None or row is None else getattr(row, field_name)


def is_built_in(factor: str, value: object) -> bool:
    """Whether a `file` factor's value is one of its built-in names rather than a path."""
    return value in FACTORS[factor].choices


BOARD_SETTINGS = factors_in("board")
