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
from pybench.catalogue.criteria import CRITERIA, CriterionKind
from pybench.catalogue.metrics import METRICS

ReferenceKind = Literal["ratio", "difference", "absolute"]

# Names of comparisons: those of the criteria, without the sense of the bound.
COMPARED: dict[str, CriterionKind] = {name.rpartition("_")[0]: kind for name, kind in CRITERIA.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """One published value.

    name: as the plan writes it: a criterion without `_min` or `_max`, or a metric
    metric: what was measured
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
    metric: str
    kind: ReferenceKind
    value: float
    source: str
    device: str | None = None
    where: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    inverse: bool = False
    over_cells: bool = False
    path: tuple[str | int, ...] = field(default=(), compare=False)

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


def reference_from_json(stored: Mapping[str, Any]) -> Reference:
    """The inverse of `as_json`; raises KeyError or TypeError for what is none."""
    where = {factor: tuple(values) for factor, values in stored["where"].items()}
    return Reference(**{**stored, "where": where})


def meaning_of(name: str) -> tuple[str, ReferenceKind, bool]:
    """(metric, kind, inverse) of a name. Raises KeyError for a name that is neither a comparison nor a metric."""
    if name in COMPARED:
        kind = COMPARED[name]
        return kind.metric, kind.kind, kind.inverse
    return METRICS[name].name, "absolute", False


def value_problem(name: str, value: Any) -> str | None:
    """What is wrong with a published value, or None. Ratios, times, rates, sizes and energies are above 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"`value` takes a number, not {value!r}"
    metric, kind, _ = meaning_of(name)
    positive = kind == "ratio" or (kind == "absolute" and METRICS[metric].scale == "ratio")
    if not math.isfinite(value) or (positive and value <= 0):
        return f"`value` of {name} takes a finite number{' above 0' if positive else ''}, not {value}"
    return None
