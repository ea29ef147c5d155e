# SPDX-License-Identifier: Apache-2.0
"""Two campaigns compared case by case: what `pybench compare A B` finds.

Cases are joined by id. The blocks of two campaigns share nothing, so the samples are independent: B/A is a ratio of
geometric means with an unpaired interval. Accuracies are compared image by image, which a deterministic model allows
across campaigns, too.

Judged are the gated metrics of the catalogue, or those that the caller names; all others are context. A regression got
worse by more than the tolerance with its whole interval, and still so after Holm's correction for all judgements. What
changed of the machine between two campaigns is in neither campaign's spread.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from pybench.analysis.comparability import (
    SoftwareDifference,
    board_models,
    differences_between,
    processor_models,
)
from pybench.analysis.measurements import Measurements, collect
from pybench.analysis.statistics import elementary
from pybench.analysis.statistics.estimate import EQUAL, EXACT, SINGLE, WIDEST, Estimate, Sample
from pybench.analysis.statistics.intervals import difference_pivot, estimate_difference
from pybench.analysis.statistics.paired import ALPHA, holm
from pybench.analysis.statistics.pivot import LimitTest, Pivot, p_beyond
from pybench.analysis.units import UnitEffect, UnitScores, collect_units, unit_of
from pybench.case import Case, catalogue_of
from pybench.catalogue.cautions import CautionCode
from pybench.catalogue.metrics import Metric
from pybench.dataset import Dataset
from pybench.words import counted

TOLERANCE = 0.05  # a ratio worse by more than this is a regression
TOLERANCE_PP = 1.0  # percentage points that an accuracy may fall
PERCENT = 100.0
# Doubts about the machine and not about the case: a reason to run both again before a change is believed.
DISTURBANCES = (
    CautionCode.BUSY_MACHINE,
    CautionCode.CORE_SPEED_VARIES,
    CautionCode.NODE_SHARED,
    CautionCode.FOREIGN_PROCESS,
    CautionCode.THROTTLED,
)


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
class Comparison:
    """All changes, and what could not be joined.

    apart_s: from the last end of a run of the earlier campaign to the first begin of the later one; 0: the two overlap
    runs_after: `ok` runs of B in the common cases
    runs_before: those of A
    runs_shared: how many of them are runs of A, byte for byte
    disturbed: doubt about the machine -> how many of these runs of A and of B have it
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
    runs_before: int
    runs_shared: int
    disturbed: Mapping[CautionCode, tuple[int, int]]
    apart_s: float | None = None

    @property
    def counts(self) -> dict[Change, int]:
        """Verdict -> how many metrics of cases have it."""
        found = Counter(change.change for change in self.changes)
        return {change: found[change] for change in Change}

    @property
    def found_from(self) -> list[float]:
        """The factor from which on each judged ratio would be called worse if no other is; the smallest first. Infinity
        where none would be."""
        return sorted(
            (1 + self.tolerance) * _width_towards_worse(change.test, change.metric, self.tests)
            for change in self.changes
            if change.is_judged and change.metric.scale == "ratio" and isinstance(change.test, Pivot)
        )

    @property
    def tests(self) -> int:
        """How many p values Holm's correction is for."""
        return sum(change.p_adjusted is not None for change in self.changes)

    @property
    def judged(self) -> tuple[MetricChange, ...]:
        return tuple(change for change in self.changes if change.change in VERDICTS)

    @property
    def lost(self) -> tuple[MetricChange, ...]:
        """What would be judged, if B had a number as A has."""
        return tuple(one for one in self.changes if one.is_judged and one.before is not None and one.after is None)

    @property
    def shift(self) -> tuple[float, float] | None:
        """The least and the largest worsening where all judged ratios that are sampled got worse, and one is worse."""
        sampled = [change for change in self.judged if change.metric.scale == "ratio" and change.test is not None]
        factors = [_worsening(change.estimate, change.metric).value for change in sampled if change.estimate]
        is_found = any(change.change is Change.WORSE for change in sampled)
        return (min(factors), max(factors)) if is_found and len(factors) > 2 and min(factors) > 1 else None

    @property
    def regressions(self) -> tuple[MetricChange, ...]:
        return tuple(change for change in self.changes if change.change is Change.WORSE)

    def as_json(self) -> dict[str, Any]:
        return {
            "tolerance": self.tolerance,
            "tolerance_pp": self.tolerance_pp,
            "software": [{"name": one.name, "before": one.baseline, "after": one.candidate} for one in self.software],
            "alpha": ALPHA,
            "tests": self.tests,
            "seconds_apart": self.apart_s,
            "regressions": len(self.regressions),
            "counts": {change.value: count for change, count in self.counts.items()},
            "worse_is_found_from_ratio": {
                "least": _finite(self.found_from[0]) if self.found_from else None,
                "median": _finite(statistics.median(self.found_from)) if self.found_from else None,
            },
            "runs_after": self.runs_after,
            "runs_before": self.runs_before,
            "runs_shared": self.runs_shared,
            "disturbed_runs": {
                code.code: {"before": before, "after": after} for code, (before, after) in self.disturbed.items()
            },
            "changes": [change.as_json() for change in self.changes],
            "only_before": [{"case_id": case.id, "title": case.title()} for case in self.only_before],
            "only_after": [{"case_id": case.id, "title": case.title()} for case in self.only_after],
            "unknown_metrics": dict(self.unknown),
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


def compared_metrics(metrics: Mapping[str, Metric]) -> tuple[Metric, ...]:
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
    """Every metric of every common case. `metrics`: names of those that are compared and judged; by default
    `compared_metrics` are compared, and those of them that are gated are judged. Cases that ran on GPUs, or without one
    on CPUs, of different models are not comparable, unless `across_boards`. Raises UnknownNameError for a name that is
    no metric's."""
    known = catalogue_of((*before.cases.values(), *after.cases.values())).metrics
    compared = compared_metrics(known) if metrics is None else tuple(known[name] for name in metrics)
    judged = frozenset(metric.name for metric in compared if metric.gated or metrics is not None)
    sides = [side_of(dataset) for dataset in (before, after)]
    common = [case for case_id, case in before.cases.items() if case_id in after.cases]
    other_boards = {} if across_boards else _other_boards(before, after, common)
    former = before.digests_of(common)
    earlier = {*former} - {""}  # an older pybench stored none
    later = after.digests_of(common)
    changes = changes_between(
        sides[0], sides[1], common, compared, judged, Tolerances(tolerance, tolerance_pp), other_boards
    )
    return Comparison(
        software=differences_between(before, after),
        changes=changes,
        only_before=tuple(case for case_id, case in before.cases.items() if case_id not in after.cases),
        only_after=tuple(case for case_id, case in after.cases.items() if case_id not in before.cases),
        unknown=sum((Counter(side.measurements.unknown) for side in sides), Counter()),
        tolerance=tolerance,
        tolerance_pp=tolerance_pp,
        runs_after=len(later),
        runs_before=len(former),
        runs_shared=sum(digests in earlier for digests in later),
        disturbed=_disturbed(before, after, common),
        apart_s=_apart_s(before, after, common),
    )


def _disturbed(before: Dataset, after: Dataset, cases: Sequence[Case]) -> dict[CautionCode, tuple[int, int]]:
    """Caution -> how many `ok` runs of both sides have it, where any has."""
    counts = [_cautions_of(dataset, cases) for dataset in (before, after)]
    found = {code: (counts[0][code.code], counts[1][code.code]) for code in DISTURBANCES}
    return {code: both for code, both in found.items() if any(both)}


def _cautions_of(dataset: Dataset, cases: Sequence[Case]) -> Counter[str]:
    is_meant = dataset.cautions["case_id"].is_in([case.id for case in cases])
    runs = dataset.cautions.filter(is_meant).select("case_id", "block", "code").unique()
    return Counter(runs["code"].to_list())


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


def _width_towards_worse(test: Pivot, metric: Metric, tests: int) -> float:
    """The factor between a ratio and the bound that has to be beyond the tolerance. If no other one of the tests is,
    Holm's correction multiplies its p by their number."""
    lower, upper = test.bounds(1 - ALPHA / tests)
    factor = elementary.exp(test.value - lower if metric.better == "lower" else upper - test.value)
    return factor if factor <= WIDEST else math.inf


def _finite(factor: float) -> float | None:
    return factor if math.isfinite(factor) else None


def _apart_s(before: Dataset, after: Dataset, cases: Sequence[Case]) -> float | None:
    """None where a side has no run of the cases."""
    spans = [_span(dataset, cases) for dataset in (before, after)]
    if spans[0] is None or spans[1] is None:
        return None
    first, second = sorted((spans[0], spans[1]))
    return max(0.0, (second[0] - first[1]).total_seconds())


def _span(dataset: Dataset, cases: Sequence[Case]) -> tuple[datetime, datetime] | None:
    """When the first `ok` run of some cases began, and when the last one ended."""
    is_meant = dataset.runs["case_id"].is_in([case.id for case in cases]) & (dataset.runs["outcome"] == "ok")
    begun, ended = (
        [datetime.fromisoformat(text) for text in dataset.runs.filter(is_meant)[name] if text is not None]
        for name in ("started_utc", "finished_utc")
    )
    return (min(begun), max(ended)) if begun and ended else None


def _other_boards(before: Dataset, after: Dataset, cases: Sequence[Case]) -> dict[str, str]:
    """Case id -> why it is not comparable: its runs used GPUs, or without any GPU CPUs, of different models."""
    found = {}
    for case in cases:
        for kind, models_of in (("GPU", board_models), ("CPU", processor_models)):
            first, second = (models_of(dataset, case.id) for dataset in (before, after))
            if first and second and first != second:
                found[case.id] = f"{kind} model {', '.join(sorted(first))} against {', '.join(sorted(second))}"
    return found


def side_of(dataset: Dataset) -> Side:
    measurements = collect(dataset)
    return Side(measurements, collect_units(dataset, measurements))


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
    found = _ComparedMetric(ratio, _judge_ratio(ratio, metric, tolerances.ratio), None, test, p_value)
    return found if by_unit is None else _with_left_out(found, case, by_unit, hides_most=True)


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
    why = None if by_unit else "the two sides have no scores in common: the interval is over runs only"
    found = _ComparedMetric(estimate, _judge_difference(estimate, metric, tolerance_pp), why, test, p_value)
    if by_unit is None:
        return found
    share_pp = PERCENT * by_unit.left_out / (by_unit.left_out + by_unit.n)
    return _with_left_out(found, case, by_unit, hides_most=share_pp > tolerance_pp)


def _with_left_out(found: _ComparedMetric, case: Case, by_unit: UnitEffect, *, hides_most: bool) -> _ComparedMetric:
    """Says how many units were not compared. `hides_most`: whether they could hide a change beyond the tolerance; there
    is no verdict then."""
    if not by_unit.left_out:
        return found
    unit = unit_of(case)
    why = f"{counted(by_unit.left_out, unit)} left out: on one side only, or with different labels"
    return replace(found, why=why, change=Change.UNCLEAR if hides_most else found.change)


def _over_units(case: Case, metric: Metric, before: UnitScores, after: UnitScores) -> UnitEffect | None:
    """After against before over the units that both scored; None where there are none."""
    if case.id not in before.frames or case.id not in after.frames:
        return None
    joined = UnitScores({"before": before.frames[case.id], "after": after.frames[case.id]}, {})
    return joined.compare("after", "before", metric)


def _judge_ratio(estimate: Estimate, metric: Metric, tolerance: float) -> Change:
    """The tolerance is symmetric in the logarithm: 1/(1 + t) to 1 + t."""
    return _judge(_worsening(estimate, metric), 1 / (1 + tolerance), 1 + tolerance)


def _worsening(ratio: Estimate, metric: Metric) -> Estimate:
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
