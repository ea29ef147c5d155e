# SPDX-License-Identifier: Apache-2.0
"""How one metric of one case changed from a campaign to another, and what is said of it.

The blocks of two campaigns share nothing, so the samples are independent: B/A is a ratio of geometric means with an
unpaired interval. Accuracies are compared image by image, which a deterministic model allows across campaigns, too.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from pybench.analysis.measurements import Measurements, collect
from pybench.analysis.statistics.estimate import EQUAL, EXACT, SINGLE, Estimate, Sample
from pybench.analysis.statistics.intervals import difference_pivot, estimate_difference
from pybench.analysis.statistics.paired import ALPHA, holm
from pybench.analysis.statistics.pivot import LimitTest, p_beyond
from pybench.analysis.units import UnitEffect, UnitScores, collect_units, unit_of
from pybench.case import Case
from pybench.catalogue.metrics import Metric
from pybench.dataset import Dataset
from pybench.words import counted

PERCENT = 100.0


class Change(StrEnum):
    """`better` and `worse` are beyond the tolerance with the whole interval, and after Holm's correction; `same` is
    within it with the whole interval. `not judged` is context."""

    WORSE = "worse"
    BETTER = "better"
    SAME = "same"
    UNCLEAR = "unclear"
    NOT_JUDGED = "not judged"
    NOT_COMPARED = "not compared"
    NOT_COMPARABLE = "not comparable"


VERDICTS = (Change.WORSE, Change.BETTER, Change.SAME, Change.UNCLEAR)


@dataclass(frozen=True, slots=True)
class MetricChange:
    """One metric of one case in both campaigns.

    estimate: B/A, or B - A in percentage points for an accuracy
    is_judged: whether it has a verdict; else it is context
    p_value: two-sided, of a change within the tolerance; None: it has no interval, or is counted
    p_adjusted: the same after Holm's correction for all that is judged; None: as `p_value`, or not judged
    test: of the estimate, or of its logarithm where it is a ratio
    """

    case: Case
    metric: Metric
    before: float | None
    after: float | None
    estimate: Estimate | None
    change: Change
    why: str | None
    is_judged: bool = True
    p_value: float | None = None
    p_adjusted: float | None = None
    test: LimitTest | None = field(default=None, repr=False)

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
            "judged": self.is_judged,
            "p_value": self.p_value,
            "p_adjusted": self.p_adjusted,
            "why": self.why,
        }


@dataclass(frozen=True, slots=True)
class Tolerances:
    """What may be worse: a ratio by this share, an accuracy by so many percentage points."""

    ratio: float
    percentage_points: float


@dataclass(frozen=True, slots=True)
class _ComparedMetric:
    """`change`: of its interval alone. `test` and `p_value`: as in `MetricChange`."""

    estimate: Estimate | None
    change: Change
    why: str | None
    test: LimitTest | None = None
    p_value: float | None = None


@dataclass(frozen=True, slots=True)
class Side:
    """What is compared of one campaign."""

    measurements: Measurements
    units: UnitScores


def side_of(dataset: Dataset) -> Side:
    measurements = collect(dataset)
    return Side(measurements, collect_units(dataset, measurements))


def changes_between(
    before: Side,
    after: Side,
    cases: Iterable[Case],
    metrics: Sequence[Metric],
    judged: Set[str],
    tolerances: Tolerances,
    other_boards: Mapping[str, str],
) -> tuple[MetricChange, ...]:
    """Every metric that a side has of each case. `judged`: names of those that get a verdict. `other_boards`: case id
    -> why it is not comparable."""
    changes = []
    for case in cases:
        for metric in metrics:
            if not any((case.id, metric.name) in side.measurements.cells for side in (before, after)):
                continue
            is_judged = metric.name in judged
            if case.id in other_boards:
                why = other_boards[case.id]
                changes.append(MetricChange(case, metric, None, None, None, Change.NOT_COMPARABLE, why, is_judged))
            else:
                changes.append(_compare_metric(case, metric, before, after, tolerances, is_judged))
    return _corrected(changes)


def _corrected(changes: Sequence[MetricChange]) -> tuple[MetricChange, ...]:
    """With Holm's p of all that is judged. What is no longer beyond the tolerance is unclear."""
    adjusted = holm([change.p_value if change.is_judged else None for change in changes])
    tests = sum(p_value is not None for p_value in adjusted)
    return tuple(
        replace(
            change,
            p_adjusted=p_value,
            change=Change.UNCLEAR,
            why=f"not beyond the tolerance after correction for {tests} tests",
        )
        if p_value is not None and p_value >= ALPHA and change.change in (Change.WORSE, Change.BETTER)
        else replace(change, p_adjusted=p_value)
        for change, p_value in zip(changes, adjusted, strict=True)
    )


def _compare_metric(
    case: Case, metric: Metric, before: Side, after: Side, tolerances: Tolerances, is_judged: bool
) -> MetricChange:
    cells = [side.measurements.cell(case.id, metric.name) for side in (before, after)]
    first, second = (list(cell.values.values()) for cell in cells)
    found = _find(case, metric, before, after, (first, second), tolerances)
    means = [_mean(values, metric) for values in (first, second)]
    change = Change.NOT_JUDGED if found.change in VERDICTS and not is_judged else found.change
    return MetricChange(
        case=case,
        metric=metric,
        before=means[0],
        after=means[1],
        estimate=found.estimate,
        change=change,
        why=found.why,
        is_judged=is_judged,
        p_value=found.p_value,
        test=found.test,
    )


def _find(
    case: Case,
    metric: Metric,
    before: Side,
    after: Side,
    values: tuple[list[float], list[float]],
    tolerances: Tolerances,
) -> _ComparedMetric:
    first, second = values
    for side, side_values, name in ((before, first, "before"), (after, second, "after")):
        if not side_values:
            return _ComparedMetric(
                None, Change.NOT_COMPARED, f"{name}: {side.measurements.why_empty(case.id, metric.name)}"
            )
    by_unit = _over_units(case, metric, before.units, after.units)
    if metric.is_over_units and metric.unit == "%":
        return _accuracy_change(case, metric, by_unit, values, tolerances.percentage_points)
    if metric.scale == "difference":
        estimate = estimate_difference(Sample.of(first), Sample.of(second))
        return _ComparedMetric(estimate, Change.NOT_COMPARED, "not judged, because this metric has no tolerance")
    if min(*first, *second) <= 0:
        return _ComparedMetric(None, Change.NOT_COMPARED, "a value is not positive, so there is no ratio")
    logarithms = Sample.of(first).log(), Sample.of(second).log()
    ratio = by_unit.estimate if by_unit else _exact_or(estimate_difference(*logarithms).exp(), metric)
    test = by_unit.test if by_unit else difference_pivot(*logarithms)
    margin = math.log1p(tolerances.ratio)
    p_value = None if test is None else p_beyond(test, -margin, margin)
    change = _judge_ratio(ratio, metric, tolerances.ratio)
    # A score without bounds could turn everything. Yet a regression must not pass because of a unit that is not there.
    possible = Change.UNCLEAR if by_unit and by_unit.left_out and change is not Change.WORSE else change
    return _ComparedMetric(ratio, possible, _why_left_out(case, by_unit, possible is not change), test, p_value)


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


def _accuracy_change(
    case: Case, metric: Metric, by_unit: UnitEffect | None, values: tuple[list[float], list[float]], tolerance_pp: float
) -> _ComparedMetric:
    """After minus before in percentage points: by unit where both have scores, else over runs."""
    samples = Sample.of(values[0]), Sample.of(values[1])
    estimate = by_unit.estimate if by_unit else estimate_difference(*samples)
    test = by_unit.test if by_unit else difference_pivot(*samples)
    p_value = None if test is None else p_beyond(test, -tolerance_pp, tolerance_pp)
    change = _judge_difference(estimate, metric, tolerance_pp)
    if by_unit is None:
        why = "the two sides have no scores in common: the interval is over runs only"
        return _ComparedMetric(estimate, change, why, test, p_value)
    possible = _judge_difference(_of_all_units(by_unit), metric, tolerance_pp)
    return _ComparedMetric(estimate, possible, _why_left_out(case, by_unit, possible is not change), test, p_value)


def _of_all_units(by_unit: UnitEffect) -> Estimate:
    """The interval of a difference in percentage points, if any unit that is left out could go from 0 to 100 %, or
    back."""
    found, share = by_unit.estimate, by_unit.left_out / (by_unit.left_out + by_unit.n)
    lower, upper = (
        None if bound is None else (1 - share) * bound + share * most
        for bound, most in ((found.lower, -PERCENT), (found.upper, PERCENT))
    )
    return replace(found, lower=lower, upper=upper)


def _why_left_out(case: Case, by_unit: UnitEffect | None, could_decide: bool) -> str | None:
    """How many units were not compared. `could_decide`: whether there is no verdict because of them."""
    if by_unit is None or not by_unit.left_out:
        return None
    unit = unit_of(case)
    told = f"{counted(by_unit.left_out, unit)} left out: on one side only, or with different labels"
    return f"{told}; they could change the verdict" if could_decide else told


def _over_units(case: Case, metric: Metric, before: UnitScores, after: UnitScores) -> UnitEffect | None:
    """After against before over the units that both scored; None where there are none."""
    if case.id not in before.frames or case.id not in after.frames:
        return None
    joined = UnitScores({"before": before.frames[case.id], "after": after.frames[case.id]}, {})
    return joined.compare("after", "before", metric)


def _judge_ratio(estimate: Estimate, metric: Metric, tolerance: float) -> Change:
    """The tolerance is symmetric in the logarithm: 1/(1 + t) to 1 + t."""
    return _judge(worsening_of(estimate, metric), 1 / (1 + tolerance), 1 + tolerance)


def worsening_of(ratio: Estimate, metric: Metric) -> Estimate:
    """A ratio that is above 1 where B is worse."""
    return ratio if metric.better == "lower" else ratio.inverse()


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
