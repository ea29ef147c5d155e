# SPDX-License-Identifier: Apache-2.0
"""Two campaigns compared case by case: what `pybench compare A B` finds.

Cases are joined by id. How one metric of a case is compared is in `changes`.

Judged are the gated metrics of the catalogue, or those that the caller names; all others are context. A regression got
worse by more than the tolerance with its whole interval, and still so after Holm's correction for all judgements. What
changed of the machine between two campaigns is in neither campaign's spread.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pybench.analysis.comparability import (
    SoftwareDifference,
    board_models,
    differences_between,
    processor_models,
)
from pybench.analysis.findings.changes import (
    VERDICTS,
    Change,
    MetricChange,
    Tolerances,
    changes_between,
    side_of,
    worsening_of,
)
from pybench.analysis.statistics import elementary
from pybench.analysis.statistics.estimate import WIDEST
from pybench.analysis.statistics.paired import ALPHA
from pybench.analysis.statistics.pivot import Pivot
from pybench.case import Case, catalogue_of
from pybench.catalogue.cautions import CautionCode
from pybench.catalogue.metrics import Metric
from pybench.dataset import Dataset

TOLERANCE = 0.05  # a ratio worse by more than this is a regression
TOLERANCE_PP = 1.0  # percentage points that an accuracy may fall
# Doubts about the machine and not about the case: a reason to run both again before a change is believed.
DISTURBANCES = (
    CautionCode.BUSY_MACHINE,
    CautionCode.CORE_SPEED_VARIES,
    CautionCode.NODE_SHARED,
    CautionCode.FOREIGN_PROCESS,
    CautionCode.THROTTLED,
)


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
        factors = [worsening_of(change.estimate, change.metric).value for change in sampled if change.estimate]
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
