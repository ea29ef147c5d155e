# SPDX-License-Identifier: Apache-2.0
"""Published values that a plan names next to its bounds: where each is from, and for which cases it was published.

A published value is never a bound: it is no part of a case, of its id or of a verdict.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pybench.case import Case
from pybench.catalogue.catalogue import Catalogue
from pybench.catalogue.criteria import compared_of
from pybench.catalogue.metrics import Metric

ReferenceKind = Literal["ratio", "difference", "absolute"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """One published value.

    name: as the plan writes it: a criterion without `_min` or `_max`, or a metric
    row: the metric, at a bound of latency if it was published for one
    kind: how the value follows from the metric: a ratio or a difference to the baseline, or the metric itself
    inverse: whether the ratio is that of the baseline to the case
    value: in the unit of the metric; a ratio has none
    source: where it was published
    device: what it was measured on, if the source says so
    where: factor -> values of the cases that it was published for
    over_cells: whether it is the mean over all of these cases, and not one value for each
    path: where the plan writes it; no part of what is stored
    """

    name: str
    row: Metric
    kind: ReferenceKind
    value: float
    source: str
    device: str | None = None
    where: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    inverse: bool = False
    over_cells: bool = False
    path: tuple[str | int, ...] = field(default=(), compare=False)

    @property
    def metric(self) -> str:
        """The name of the metric."""
        return self.row.name

    def selects(self, case: Case) -> bool:
        """Whether the value was published for such a case."""
        return all(case.factors().get(factor) in wanted for factor, wanted in self.where.items())

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "metric": self.metric,
            "kind": self.kind,
            "inverse": self.inverse,
            "value": self.value,
            "source": self.source,
            "device": self.device,
            "where": {factor: list(values) for factor, values in self.where.items()},
            "over_cells": self.over_cells,
        }


def reference_from_json(stored: Mapping[str, Any], catalogue: Catalogue) -> Reference:
    """The inverse of `as_json`; raises KeyError, TypeError or UnknownNameError for what is none."""
    where = {factor: tuple(values) for factor, values in stored["where"].items()}
    others = {key: value for key, value in stored.items() if key != "metric"}
    return Reference(**{**others, "row": catalogue.metric(stored["metric"]), "where": where})


def reference_names(catalogue: Catalogue) -> tuple[str, ...]:
    """Names that a published value can have: what criteria compare, and metrics."""
    return (*compared_of(catalogue), *catalogue.metrics)


def names_at_bounds(catalogue: Catalogue) -> frozenset[str]:
    """Those with one value for each bound of `slo_ms`: no curve says at which, and a published value has to."""
    return frozenset(name for name in reference_names(catalogue) if meaning_of(name, catalogue)[0].is_per_bound)


def curve_names(catalogue: Catalogue) -> tuple[str, ...]:
    """Those that a curve can draw."""
    at_bounds = names_at_bounds(catalogue)
    return tuple(name for name in reference_names(catalogue) if name not in at_bounds)


def meaning_of(name: str, catalogue: Catalogue) -> tuple[Metric, ReferenceKind, bool]:
    """(metric, kind, inverse) of a name. Raises UnknownNameError for one that is neither a comparison nor a metric."""
    kind = compared_of(catalogue).get(name)
    if kind is not None:
        return catalogue.metrics[kind.metric], kind.kind, kind.inverse
    return catalogue.metrics[name], "absolute", False


def value_problem(name: str, catalogue: Catalogue, value: Any) -> str | None:
    """What is wrong with a published value, or None. Ratios, times, rates, sizes and energies are above 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"`value` takes a number, not {value!r}"
    row, kind, _ = meaning_of(name, catalogue)
    positive = kind == "ratio" or (kind == "absolute" and row.scale == "ratio")
    if not math.isfinite(value) or (positive and value <= 0):
        return f"`value` of {name} takes a finite number{' above 0' if positive else ''}, not {value}"
    return None
