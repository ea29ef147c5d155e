# SPDX-License-Identifier: Apache-2.0
"""Each case by itself: every metric's mean over blocks with its interval, its median, and what was left out.

Accuracies have units of their data (images, say) as their unit when scores were stored (`units`); an estimate of
energy is only ever an interval. How two cases compare is `pybench.analysis.findings.contrasts`.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pybench.analysis.measurements import Measurements, MetricValues
from pybench.analysis.statistics.estimate import EXACT, NORMAL_95, WIDE, Estimate, Sample
from pybench.analysis.statistics.intervals import estimate_geometric_mean, estimate_mean
from pybench.analysis.statistics.sequential import confidence_among
from pybench.analysis.units import UnitScores
from pybench.case import Case
from pybench.catalogue.latency import kind_of
from pybench.catalogue.metrics import Metric
from pybench.dataset import Dataset

CORES = "cpu_cores_ratio"
UTILISATION = "cpu_utilisation_ratio"


@dataclass(frozen=True, slots=True)
class MetricFinding:
    """One metric of one case.

    estimate: None where no run has a value that counts; then `why_none` says why, or `bounds` has an interval
    u_absolute: the mean absolute standard uncertainty of the runs; None where a run has none
    points: block -> value behind the estimate
    bounds: the widest interval of an estimate that has no value
    over_units: whether the interval is over units of the data, whose scores were stored, and not over runs
    """

    metric: Metric
    estimate: Estimate | None
    u_absolute: float | None
    median: float | None
    points: Mapping[int, float]
    bounds: tuple[float, float] | None
    excluded: Mapping[str, int]
    missing: Mapping[str, int]
    why_none: str | None
    methods: tuple[str, ...]
    over_units: bool

    @property
    def is_geometric(self) -> bool:
        """Whether the mean is geometric, as `estimate_of` takes it."""
        return self.metric.mean == "geometric" and all(value > 0 for value in self.points.values())

    @property
    def absolute_95(self) -> float | None:
        """Half the interval of the number itself, where it has an absolute uncertainty; it allows for looks, as the
        estimate does. None also where repetitions scatter too much for an interval.

        Nothing of a run's absolute uncertainty is taken to average out: it and the spread of repetitions add in
        squares. The part of it that does average out is then counted twice; it is small against the board's gain.
        """
        if self.estimate is None or self.u_absolute is None or self.estimate.method == WIDE:
            return None
        bounds = [bound for bound in (self.estimate.lower, self.estimate.upper) if bound is not None]
        spread = max((abs(bound - self.estimate.value) for bound in bounds), default=0.0)
        return math.hypot(spread, NORMAL_95 * self.u_absolute)

    def as_json(self) -> dict[str, Any]:
        return {
            "unit": self.metric.unit,
            "estimate": None if self.estimate is None else self.estimate.as_json(),
            "absolute_95": self.absolute_95,
            "median": self.median,
            "bounds": None if self.bounds is None else list(self.bounds),
            "points": {str(block): value for block, value in self.points.items()},
            "excluded": dict(self.excluded),
            "missing": dict(self.missing),
            "why_none": self.why_none,
            "methods": list(self.methods),
        }


@dataclass(frozen=True, slots=True)
class CautionFinding:
    """A doubt about a case: in how many of its runs it was raised; `metric` None concerns all of them."""

    code: str
    metric: str | None
    runs: int


@dataclass(frozen=True, slots=True)
class CaseFinding:
    """One case with everything that its runs say.

    outcomes: outcome -> runs
    failures: (outcome, why) of runs that are not ok -> runs
    devices: those that its runs ran on
    latencies: what its runs call their latency: between the GPU's events, or as the host sees it
    folders: block -> run directory, relative to the campaign
    metrics: name -> what its runs say of it
    in_groups: whether units of its data are of groups, so that intervals over units are of whole groups
    """

    case: Case
    outcomes: Mapping[str, int]
    failures: Mapping[tuple[str, str], int]
    devices: frozenset[str]
    latencies: frozenset[str]
    folders: Mapping[int, str]
    metrics: Mapping[str, MetricFinding]
    cautions: tuple[CautionFinding, ...]
    in_groups: bool

    @property
    def reasons(self) -> dict[str, int]:
        """Why runs are not ok -> runs, whatever the outcome."""
        found: Counter[str] = Counter()
        for (_, why), runs in self.failures.items():
            found[why] += runs
        return dict(found)

    def cautions_about(self, metric: str | None) -> tuple[str, ...]:
        """Codes of the doubts that concern one metric, or (None) the runs as a whole."""
        return tuple(caution.code for caution in self.cautions if caution.metric == metric)

    def as_json(self) -> dict[str, Any]:
        return {
            "case_id": self.case.id,
            "title": self.case.title(),
            "factors": self.case.factors(),
            "outcomes": dict(self.outcomes),
            "reasons": self.reasons,
            "devices": sorted(self.devices),
            "metrics": {name: finding.as_json() for name, finding in self.metrics.items()},
            "cautions": [{"code": one.code, "metric": one.metric, "runs": one.runs} for one in self.cautions],
        }


def describe_cases(dataset: Dataset, measurements: Measurements, units: UnitScores) -> tuple[CaseFinding, ...]:
    """Every case of the plan, in its order, runs or none."""
    rows: dict[str, list[dict[str, Any]]] = {}
    told = dataset.runs.select("case_id", "block", "outcome", "reason", "detail", "device", "folder")
    for row in told.iter_rows(named=True):
        rows.setdefault(row["case_id"], []).append(row)
    cautions: dict[str, Counter[tuple[str, str | None]]] = {}
    for case_id, code, metric in dataset.cautions.select("case_id", "code", "metric").iter_rows():
        cautions.setdefault(case_id, Counter())[code, metric] += 1
    latencies = kinds_of_latency(dataset)
    return tuple(
        _describe_case(
            case,
            rows.get(case.id, []),
            measurements,
            units,
            cautions.get(case.id, Counter()),
            latencies.get(case.id, frozenset()),
        )
        for case in dataset.plan.cases
    )


def kinds_of_latency(dataset: Dataset) -> dict[str, frozenset[str]]:
    """Case id -> what its runs call their latency, as far as they say it."""
    found: dict[str, set[str]] = {}
    for (case_id, _), labels in dataset.labels.items():
        if labels.get("latency") is not None:
            found.setdefault(case_id, set()).add(kind_of(str(labels["latency"])))
    return {case_id: frozenset(words) for case_id, words in found.items()}


def _describe_case(
    case: Case,
    rows: list[dict[str, Any]],
    measurements: Measurements,
    units: UnitScores,
    cautions: Mapping[tuple[str, str | None], int],
    latencies: frozenset[str],
) -> CaseFinding:
    metrics = {}
    for name, cell in measurements.of_case(case.id).items():
        metric = case.catalogue.metrics[name]
        metrics[name] = _describe_metric(metric, cell, units.share(case.id, metric), measurements.tests)
    if CORES in metrics:
        metrics[CORES] = _within_cpus(metrics[CORES], measurements.cell(case.id, UTILISATION))
    return CaseFinding(
        case=case,
        outcomes=Counter(row["outcome"] for row in rows),
        failures=Counter((row["outcome"], _why_failed(row)) for row in rows if row["outcome"] != "ok"),
        devices=frozenset(row["device"] for row in rows if row["outcome"] == "ok" and row["device"] is not None),
        latencies=latencies,
        folders={row["block"]: row["folder"] for row in rows},
        metrics=metrics,
        cautions=tuple(CautionFinding(code, metric, runs) for (code, metric), runs in cautions.items()),
        in_groups=units.in_groups(case.id),
    )


def _within_cpus(cores: MetricFinding, utilisation: MetricValues) -> MetricFinding:
    """The interval of the CPU cores in use ends at the CPUs that the runs could use: their cores over their share."""
    shares = {block: utilisation.values.get(block, 0.0) for block in cores.points}
    if cores.estimate is None or not shares or min(shares.values()) <= 0:
        return cores
    allowed = max(value / shares[block] for block, value in cores.points.items())
    return replace(cores, estimate=cores.estimate.within(0.0, allowed))


def _why_failed(row: Mapping[str, Any]) -> str:
    return ": ".join(part for part in (row["reason"] or row["outcome"], row["detail"]) if part)


def _describe_metric(metric: Metric, cell: MetricValues, share: Estimate | None, tests: int) -> MetricFinding:
    values = list(cell.values.values())
    over_units = share is not None and bool(values)
    estimate = share if over_units else estimate_of(metric, values, tests)
    bounds = None
    if cell.bounds:
        bounds = (min(low for low, _ in cell.bounds.values()), max(high for _, high in cell.bounds.values()))
    return MetricFinding(
        metric=metric,
        estimate=estimate,
        u_absolute=_u_absolute(cell),
        median=statistics.median(values) if values else None,
        points=dict(sorted(cell.values.items())),
        bounds=bounds,
        excluded=Counter(map(str, cell.excluded.values())),
        missing=Counter(map(str, cell.missing.values())),
        why_none=(cell.why_empty() or "not measured") if estimate is None and bounds is None else None,
        methods=tuple(sorted(cell.methods)),
        over_units=over_units,
    )


def _u_absolute(cell: MetricValues) -> float | None:
    is_known = bool(cell.u_absolute) and cell.u_absolute.keys() == cell.values.keys()
    return statistics.fmean(cell.u_absolute.values()) if is_known else None


def estimate_of(metric: Metric, values: Sequence[float], tests: int = 1) -> Estimate | None:
    """The mean of a metric over runs with its interval, as every table has it; None without values. `tests`: as in
    `Measurements`."""
    if not values:
        return None
    sample = Sample.of(values)
    if metric.is_counted and sample.is_constant:
        return Estimate(values[0], values[0], values[0], sample.n, EXACT)
    if metric.mean == "geometric" and (sample.values > 0).all():
        return estimate_geometric_mean(sample, confidence_among(tests))
    estimate = estimate_mean(sample, confidence_among(tests))
    return estimate if metric.limits is None else estimate.within(*metric.limits)
