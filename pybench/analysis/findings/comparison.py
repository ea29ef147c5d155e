# SPDX-License-Identifier: Apache-2.0
"""Two campaigns compared case by case: what `pybench compare A B` finds.

Cases are joined by id. The blocks of two campaigns share nothing, so the samples are independent: B/A is a ratio of
geometric means with an unpaired interval. Accuracies are compared image by image, which a deterministic model allows
across campaigns, too. A regression is a metric that got worse by more than the tolerance with its whole interval.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pybench.analysis.comparability import (
    SoftwareDifference,
    board_models,
    differences_between,
    processor_models,
)
from pybench.analysis.measurements import Measurements, collect
from pybench.analysis.statistics.estimate import EQUAL, EXACT, SINGLE, Estimate, Sample
from pybench.analysis.statistics.intervals import estimate_difference
from pybench.analysis.units import UnitScores, collect_units
from pybench.case import Case, catalogue_of
from pybench.catalogue.metrics import Metric
from pybench.dataset import Dataset

TOLERANCE = 0.05  # a ratio worse by more than this is a regression
TOLERANCE_PP = 1.0  # percentage points that an accuracy may fall
PERCENT = 100.0


class Change(StrEnum):
    """`better` and `worse` are beyond the tolerance with the whole interval; `same` is within it with the whole
    interval."""

    WORSE = "worse"
    BETTER = "better"
    SAME = "same"
    UNCLEAR = "unclear"
    NOT_COMPARED = "not compared"
    NOT_COMPARABLE = "not comparable"


_VERDICTS = (Change.WORSE, Change.BETTER, Change.SAME, Change.UNCLEAR)


@dataclass(frozen=True, slots=True)
class MetricChange:
    """One metric of one case in both campaigns. `estimate`: B/A, or B - A in percentage points for an accuracy."""

    case: Case
    metric: Metric
    before: float | None
    after: float | None
    estimate: Estimate | None
    change: Change
    why: str | None

    def as_json(self) -> dict[str, Any]:
        return {
            "case_id": self.case.id,
            "title": self.case.title(),
            "metric": self.metric.name,
            "unit": self.metric.unit,
            "scale": self.metric.scale,
            "before": self.before,
            "after": self.after,
            "estimate": None if self.estimate is None else self.estimate.as_json(),
            "change": self.change.value,
            "why": self.why,
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """All changes, and what could not be joined.

    runs_after: `ok` runs of B in the common cases
    runs_shared: how many of them are runs of A, byte for byte
    only_before, only_after: cases that only one side's plan has
    unknown: stored metric that this pybench has no row of -> values on both sides
    """

    software: tuple[SoftwareDifference, ...]
    """What the runs of A and B have different values of."""
    changes: tuple[MetricChange, ...]
    only_before: tuple[Case, ...]
    only_after: tuple[Case, ...]
    unknown: Mapping[str, int]
    tolerance: float
    tolerance_pp: float
    runs_after: int
    runs_shared: int

    @property
    def counts(self) -> dict[Change, int]:
        """Verdict -> how many metrics of cases have it."""
        found = Counter(change.change for change in self.changes)
        return {change: found[change] for change in Change}

    @property
    def found_from(self) -> list[float]:
        """The factor from which on each ratio would be called worse, by its interval's width; the smallest first."""
        return sorted(
            (1 + self.tolerance) * width
            for change in self.changes
            if change.change in _VERDICTS and change.metric.scale == "ratio" and change.estimate is not None
            for width in _width_towards_worse(change.estimate, change.metric)
        )

    @property
    def regressions(self) -> tuple[MetricChange, ...]:
        return tuple(change for change in self.changes if change.change is Change.WORSE)

    def as_json(self) -> dict[str, Any]:
        return {
            "tolerance": self.tolerance,
            "tolerance_pp": self.tolerance_pp,
            "software": [{"name": one.name, "before": one.baseline, "after": one.candidate} for one in self.software],
            "regressions": len(self.regressions),
            "counts": {change.value: count for change, count in self.counts.items()},
            "worse_is_found_from_ratio": {
                "least": self.found_from[0] if self.found_from else None,
                "median": statistics.median(self.found_from) if self.found_from else None,
            },
            "runs_after": self.runs_after,
            "runs_shared": self.runs_shared,
            "changes": [change.as_json() for change in self.changes],
            "only_before": [{"case_id": case.id, "title": case.title()} for case in self.only_before],
            "only_after": [{"case_id": case.id, "title": case.title()} for case in self.only_after],
            "unknown_metrics": dict(self.unknown),
        }


@dataclass(frozen=True, slots=True)
class _Tolerances:
    """What may be worse: a ratio by this share, an accuracy by so many percentage points."""

    ratio: float
    percentage_points: float


@dataclass(frozen=True, slots=True)
class _ComparedMetric:
    estimate: Estimate | None
    change: Change
    why: str | None


@dataclass(frozen=True, slots=True)
class _Side:
    measurements: Measurements
    units: UnitScores


def judged_metrics(metrics: Mapping[str, Metric]) -> tuple[Metric, ...]:
    """Those that are compared by default: what is better lower or higher on a ratio scale, and accuracies."""
    return tuple(
        metric
        for metric in metrics.values()
        if metric.better != "none" and (metric.scale == "ratio" or (metric.is_over_units and metric.unit == "%"))
    )


def compare(
    before: Dataset,
    after: Dataset,
    *,
    metrics: Sequence[str] | None = None,
    tolerance: float = TOLERANCE,
    tolerance_pp: float = TOLERANCE_PP,
    across_boards: bool = False,
) -> Comparison:
    """Every metric of every common case. `metrics`: their names; by default `judged_metrics`. Cases that ran on GPUs,
    or without one on CPUs, of different models are not comparable, unless `across_boards`. Raises UnknownNameError for
    a name that is no metric's."""
    known = catalogue_of((*before.cases.values(), *after.cases.values())).metrics
    compared = judged_metrics(known) if metrics is None else tuple(known[name] for name in metrics)
    sides = [_side(dataset) for dataset in (before, after)]
    common = [case for case_id, case in before.cases.items() if case_id in after.cases]
    other_boards = {} if across_boards else _other_boards(before, after, common)
    earlier = {*before.digests_of(common)} - {""}  # an older pybench stored none
    later = after.digests_of(common)
    changes = []
    for case in common:
        for metric in compared:
            if not any((case.id, metric.name) in side.measurements.cells for side in sides):
                continue
            if case.id in other_boards:
                why = other_boards[case.id]
                changes.append(MetricChange(case, metric, None, None, None, Change.NOT_COMPARABLE, why))
            else:
                tolerances = _Tolerances(tolerance, tolerance_pp)
                changes.append(_compare_metric(case, metric, sides[0], sides[1], tolerances))
    return Comparison(
        software=differences_between(before, after),
        changes=tuple(changes),
        only_before=tuple(case for case_id, case in before.cases.items() if case_id not in after.cases),
        only_after=tuple(case for case_id, case in after.cases.items() if case_id not in before.cases),
        unknown=sum((Counter(side.measurements.unknown) for side in sides), Counter()),
        tolerance=tolerance,
        tolerance_pp=tolerance_pp,
        runs_after=len(later),
        runs_shared=sum(digests in earlier for digests in later),
    )


def _width_towards_worse(ratio: Estimate, metric: Metric) -> list[float]:
    """The factor between a ratio and the bound that has to be beyond the tolerance; none without an interval."""
    worse = ratio if metric.better == "lower" else ratio.inverse()
    return [] if worse.lower is None or worse.lower <= 0 or worse.method == EXACT else [worse.value / worse.lower]


def _other_boards(before: Dataset, after: Dataset, cases: Sequence[Case]) -> dict[str, str]:
    """Case id -> why it is not comparable: its runs used GPUs, or without any GPU CPUs, of different models."""
    found = {}
    for case in cases:
        for kind, models_of in (("GPU", board_models), ("CPU", processor_models)):
            first, second = (models_of(dataset, case.id) for dataset in (before, after))
            if first and second and first != second:
                found[case.id] = f"{kind} model {', '.join(sorted(first))} against {', '.join(sorted(second))}"
    return found


def _side(dataset: Dataset) -> _Side:
    measurements = collect(dataset)
    return _Side(measurements, collect_units(dataset, measurements))


def _compare_metric(case: Case, metric: Metric, before: _Side, after: _Side, tolerances: _Tolerances) -> MetricChange:
    cells = [side.measurements.cell(case.id, metric.name) for side in (before, after)]
    first, second = (list(cell.values.values()) for cell in cells)
    found = _find(case, metric, before, after, (first, second), tolerances)
    means = [_mean(values, metric) for values in (first, second)]
    return MetricChange(case, metric, means[0], means[1], found.estimate, found.change, found.why)


def _find(
    case: Case,
    metric: Metric,
    before: _Side,
    after: _Side,
    values: tuple[list[float], list[float]],
    tolerances: _Tolerances,
) -> _ComparedMetric:
    first, second = values
    for side, side_values, name in ((before, first, "before"), (after, second, "after")):
        if not side_values:
            return _ComparedMetric(
                None, Change.NOT_COMPARED, f"{name}: {side.measurements.why_empty(case.id, metric.name)}"
            )
    if metric.is_over_units and metric.unit == "%":
        estimate, why = _accuracy_difference(case, metric, before.units, after.units, values)
        return _ComparedMetric(estimate, _judge_difference(estimate, metric, tolerances.percentage_points), why)
    if metric.scale == "difference":
        estimate = estimate_difference(Sample.of(first), Sample.of(second))
        return _ComparedMetric(estimate, Change.NOT_COMPARED, "not judged, because this metric has no tolerance")
    if min(*first, *second) <= 0:
        return _ComparedMetric(None, Change.NOT_COMPARED, "a value is not positive, so there is no ratio")
    by_unit = _over_units(case, metric, before.units, after.units)
    ratio = by_unit or estimate_difference(Sample.of(first).log(), Sample.of(second).log()).exp()
    return _ComparedMetric(
        _exact_or(ratio, metric), _judge_ratio(_exact_or(ratio, metric), metric, tolerances.ratio), None
    )


def _mean(values: list[float], metric: Metric) -> float | None:
    """Geometric on a ratio scale, so that B over A is the ratio printed beside them."""
    if not values:
        return None
    geometric = metric.mean == "geometric" and min(values) > 0
    return statistics.geometric_mean(values) if geometric else statistics.fmean(values)


def _exact_or(estimate: Estimate, metric: Metric) -> Estimate:
    """A file's size is counted, not sampled: one repetition decides."""
    if metric.is_counted and estimate.method in (EQUAL, SINGLE):
        return Estimate(estimate.value, estimate.value, estimate.value, estimate.n, EXACT)
    return estimate


def _accuracy_difference(
    case: Case,
    metric: Metric,
    before: UnitScores,
    after: UnitScores,
    values: tuple[list[float], list[float]],
) -> tuple[Estimate, str | None]:
    """After minus before in percentage points: by unit where both have scores, else over runs."""
    by_unit = _over_units(case, metric, before, after)
    if by_unit is not None:
        return by_unit, None
    estimate = estimate_difference(Sample.of(values[0]), Sample.of(values[1]))
    return estimate, "the two sides have no scores in common: the interval is over runs only"


def _over_units(case: Case, metric: Metric, before: UnitScores, after: UnitScores) -> Estimate | None:
    """After against before over the units that both scored; None where there are none."""
    if case.id not in before.frames or case.id not in after.frames:
        return None
    joined = UnitScores({"before": before.frames[case.id], "after": after.frames[case.id]}, {})
    effect = joined.compare("after", "before", metric)
    return None if effect is None else effect.estimate


def _judge_ratio(estimate: Estimate, metric: Metric, tolerance: float) -> Change:
    """The tolerance is symmetric in the logarithm: 1/(1 + t) to 1 + t."""
    worse = estimate if metric.better == "lower" else estimate.inverse()
    return _judge(worse, 1 / (1 + tolerance), 1 + tolerance)


def _judge_difference(estimate: Estimate, metric: Metric, tolerance_pp: float) -> Change:
    """`estimate` of something that is better when higher, in percentage points."""
    lower, upper = (None if bound is None else -bound for bound in (estimate.upper, estimate.lower))
    loss = Estimate(-estimate.value, lower, upper, estimate.n, estimate.method, estimate.confidence)
    return _judge(loss if metric.better == "higher" else estimate, -tolerance_pp, tolerance_pp)


def _judge(worsening: Estimate, low: float, high: float) -> Change:
    if worsening.lower is None or worsening.upper is None:
        return Change.UNCLEAR
    if worsening.lower > high:
        return Change.WORSE
    if worsening.upper < low:
        return Change.BETTER
    return Change.SAME if low <= worsening.lower and worsening.upper <= high else Change.UNCLEAR
