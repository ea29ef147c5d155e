# SPDX-License-Identifier: Apache-2.0
"""Service levels: the bounds of latency that a plan asks about.

They are no part of a case: its runs are the same whatever is asked of them later. A case carries its bounds as rows of
its catalogue, one row for each bound and each metric that is evaluated per bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from pybench.case.case import Case
from pybench.case.contrasts import Contrast, Criterion
from pybench.catalogue.catalogue import Catalogue
from pybench.catalogue.metrics import Metric
from pybench.catalogue.workloads import FactorGroup

STORED = "case_slo_ms"
GROUP: FactorGroup = "arriving"  # what is asked of requests has a meaning where requests can arrive


def with_bounds(case: Case, bounds_ms: Iterable[float]) -> Case:
    """The same case with these bounds, and those that it has."""
    bounds = tuple(sorted({*bounds_ms, *bounds_of(case)}))
    return replace(case, catalogue=_with_rows(case.catalogue, bounds)) if bounds else case


def bounds_of(case: Case) -> tuple[float, ...]:
    """Its bounds in ms, ascending; empty for most cases."""
    return tuple(sorted({row.bound_ms for row in rows_of(case) if row.bound_ms is not None}))


def rows_of(case: Case) -> tuple[Metric, ...]:
    """The rows of metrics at its bounds."""
    return tuple(row for row in case.catalogue.added() if isinstance(row, Metric) and row.bound_ms is not None)


def to_json(cases: Iterable[Case]) -> dict[str, Any]:
    """`{case_slo_ms: {case id: [bound...]}}` of a resolved plan; nothing where no case has a bound."""
    stored = {case.id: list(bounds) for case in cases if (bounds := bounds_of(case))}
    return {STORED: stored} if stored else {}


def from_json(cases: Iterable[Case], stored: Mapping[str, Any]) -> tuple[Case, ...]:
    """The cases of a resolved plan with their bounds. Raises ValueError or TypeError where these are malformed."""
    bounds = stored.get(STORED, {})
    return tuple(with_bounds(case, map(float, bounds.get(case.id, ()))) for case in cases)


def at_bounds(contrast: Contrast, cases: Sequence[Case]) -> Contrast:
    """The contrast with each criterion of such a metric once for each bound of the cases; without a bound as it is."""
    bounds = sorted({bound for case in cases for bound in bounds_of(case)})
    accept = [each for criterion in contrast.accept for each in _at_bounds(criterion, bounds)]
    return replace(contrast, accept=tuple(accept))


def _at_bounds(criterion: Criterion, bounds: Sequence[float]) -> list[Criterion]:
    row = criterion.row
    if not row.is_per_bound or not bounds:
        return [criterion]
    levels = [row.at_bound(bound) for bound in bounds]
    return [replace(criterion, name=criterion.name + level.name.removeprefix(row.name), row=level) for level in levels]


@lru_cache(maxsize=64)
def _with_rows(catalogue: Catalogue, bounds: tuple[float, ...]) -> Catalogue:
    """Cases with equal bounds share a catalogue."""
    per_bound = [metric for metric in catalogue.metrics.values() if metric.is_per_bound]
    return catalogue.with_rows(metric.at_bound(bound) for metric in per_bound for bound in bounds)
