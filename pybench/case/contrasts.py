# SPDX-License-Identifier: Apache-2.0
"""What a plan declares: contrasts with a baseline, and the bounds of each; read, checked and stored."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pybench.case.case import ROWS, Case, catalogue_of_rows
from pybench.case.factors import FACTORS
from pybench.case.references import Reference, reference_from_json
from pybench.catalogue.catalogue import BUILT_IN, Catalogue
from pybench.catalogue.criteria import CriterionKind, Kind, Sense, criteria_of, threshold_problem
from pybench.catalogue.metrics import Metric
from pybench.catalogue.stored import row_to_json
from pybench.errors import UsageError


@dataclass(frozen=True, slots=True)
class Criterion:
    """One bound: the comparison of `metric` has to be at least (`min`) or at most (`max`) `threshold`. Of an absolute
    one the baseline says nothing."""

    name: str
    row: Metric
    kind: Kind
    sense: Sense
    threshold: float
    inverse: bool = False

    @property
    def metric(self) -> str:
        """The name of the metric."""
        return self.row.name

    def compare(self, case_value: float, baseline_value: float) -> float:
        """The number that the threshold bounds, from the metric of the case and of its baseline.

        Raises ZeroDivisionError for a ratio to zero: the caller decides what a metric of zero means.
        """
        if self.kind == "absolute":
            return case_value
        if self.kind == "difference":
            return case_value - baseline_value
        return baseline_value / case_value if self.inverse else case_value / baseline_value

    def holds(self, compared: float) -> bool:
        """Whether a comparison is within the bound; equality is."""
        return compared >= self.threshold if self.sense == "min" else compared <= self.threshold


@dataclass(frozen=True, slots=True)
class Contrast:
    """Which cases are compared with which, and what is asked of them.

    baseline: factor -> value of the cases that others are compared with
    accept: bounds; without any the comparison is reported and not judged
    where: only cases with these factors (a tuple: any of its values); None: all
    name: as the plan has it; None: the title says what is compared
    reference: published values of the same comparison
    tells_where: whether the title has `where`, because another comparison without a name has this baseline, too
    """

    baseline: Mapping[str, Any]
    accept: tuple[Criterion, ...] = ()
    where: Mapping[str, Any] | None = None
    name: str | None = None
    reference: tuple[Reference, ...] = ()
    tells_where: bool = field(default=False, compare=False)

    def title(self) -> str:
        """Its name, or `baseline precision=fp32`; one of several with this baseline goes on with `where batch=1`."""
        where = f" where {_factors_written(self.where)}" if self.tells_where and self.where else ""
        return self.name or f"baseline {_factors_written(self.baseline)}{where}"

    def selects(self, case: Case) -> bool:
        """Whether `where` holds for a case."""
        return all(_value_fits(case.factors().get(factor), wanted) for factor, wanted in (self.where or {}).items())


def parse(
    declared: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None, catalogue: Catalogue = BUILT_IN
) -> tuple[Contrast, ...]:
    """The contrasts of a plan's `criteria`: one mapping or a list of them, with factor values already checked.

    Raises UsageError for an unknown key, criterion or factor and for a threshold that is no finite number.
    """
    if declared is None:
        return ()
    entries = [declared] if isinstance(declared, Mapping) else list(declared)
    return _told_apart([_parse_contrast(entry, catalogue) for entry in entries])


def to_json(contrasts: Iterable[Contrast]) -> list[dict[str, Any]]:
    """The form stored in plan.resolved.json; a criterion carries metric, kind and sense for that file's readers.

    A contrast carries the rows of metrics that are not pybench's, because none of the stored cases may have them.
    """
    return [
        {
            "name": contrast.name,
            "baseline": dict(contrast.baseline),
            "where": {factor: list(v) if isinstance(v, tuple) else v for factor, v in (contrast.where or {}).items()},
            "accept": [
                {
                    "name": criterion.name,
                    "metric": criterion.metric,
                    "kind": criterion.kind,
                    "sense": criterion.sense,
                    "inverse": criterion.inverse,
                    "threshold": criterion.threshold,
                }
                for criterion in contrast.accept
            ],
            **({"reference": [one.as_json() for one in contrast.reference]} if contrast.reference else {}),
            **({ROWS: rows} if (rows := _added_rows(contrast)) else {}),
        }
        for contrast in contrasts
    ]


def from_json(stored: Iterable[Mapping[str, Any]]) -> tuple[Contrast, ...]:
    """The inverse of `to_json`; raises UsageError for a criterion that this version does not know."""
    return _told_apart([_stored_contrast(entry, catalogue_of_rows(entry.get(ROWS, ()))) for entry in stored])


def _told_apart(contrasts: Sequence[Contrast]) -> tuple[Contrast, ...]:
    titles = Counter(contrast.title() for contrast in contrasts)
    return tuple(replace(contrast, tells_where=titles[contrast.title()] > 1) for contrast in contrasts)


def _stored_contrast(entry: Mapping[str, Any], catalogue: Catalogue) -> Contrast:
    declared = {
        **{key: value for key, value in entry.items() if key != ROWS},
        "accept": {one["name"]: one["threshold"] for one in entry.get("accept", ())},
        "reference": [reference_from_json(one, catalogue) for one in entry.get("reference", ())],
    }
    return _parse_contrast(declared, catalogue)


def _added_rows(contrast: Contrast) -> list[dict[str, Any]]:
    """The rows of metrics that packages add, each once."""
    rows = [one.row for one in contrast.accept] + [one.row for one in contrast.reference]
    return [row_to_json(row) for row in dict.fromkeys(rows) if row.plugin is not None]


def _factors_written(factors: Mapping[str, Any]) -> str:
    return ", ".join(f"{factor}={_written(value)}" for factor, value in factors.items())


def _written(value: object) -> str:
    """A value as a plan writes it, or several."""
    if isinstance(value, tuple):
        return " or ".join(map(_written, value))
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def _parse_contrast(entry: Mapping[str, Any], catalogue: Catalogue) -> Contrast:
    kinds = criteria_of(catalogue)
    _known(entry, ("name", "baseline", "accept", "where", "reference"), "key of criteria")
    baseline, where, accept = (dict(entry.get(key) or {}) for key in ("baseline", "where", "accept"))
    if not baseline:
        raise UsageError("criteria need a baseline", hint="such as `baseline: {precision: fp32}`")
    for factors in (baseline, where):
        _known({name: value for name, value in factors.items() if "." not in name}, tuple(FACTORS), "factor")
    _known(accept, tuple(kinds), "criterion")
    problems = [threshold_problem(kinds[name], threshold) for name, threshold in accept.items()]
    if any(problems):
        raise UsageError("; ".join(problem for problem in problems if problem))
    return Contrast(
        baseline=baseline,
        accept=tuple(_criterion(kinds[name], catalogue, threshold) for name, threshold in accept.items()),
        where={factor: tuple(value) if isinstance(value, list) else value for factor, value in where.items()},
        name=entry.get("name"),
        reference=tuple(entry.get("reference") or ()),
    )


def _criterion(kind: CriterionKind, catalogue: Catalogue, threshold: float) -> Criterion:
    row = catalogue.metrics[kind.metric]
    return Criterion(kind.name, row, kind.kind, kind.sense, float(threshold), kind.inverse)


def _known(given: Mapping[str, Any], names: Sequence[str], what: str) -> None:
    for name in given:
        if name not in names:
            near = difflib.get_close_matches(str(name), names, 1)
            raise UsageError(f"unknown {what} {name!r}", hint=f"did you mean {near[0]!r}?" if near else None)


def _value_fits(value: Any, wanted: Any) -> bool:
    return value in wanted if isinstance(wanted, tuple) else bool(value == wanted)
