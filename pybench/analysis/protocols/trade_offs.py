# SPDX-License-Identifier: Apache-2.0
"""What a case gains in speed and energy against what it loses in accuracy: the rows of the first paper's Table 1.

The paper's rule is kept as it is: a case is advantageous when the point estimates keep every bound, without intervals.
Means are arithmetic, over repetitions; Top-1 is that of the accuracy case which is joined with the case of inference,
and its difference is over images where predictions were stored. `pybench.analysis.findings.verdicts` is the house's own
rule, by intervals, and stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pybench.analysis.comparability import Comparability, PairComparability
from pybench.analysis.findings.verdicts import CaseVerdict, Verdict
from pybench.analysis.measurements import Measurements
from pybench.analysis.statistics.estimate import Estimate, Sample
from pybench.analysis.statistics.intervals import student_mean
from pybench.analysis.units import UnitScores
from pybench.case import Case, contrasts
from pybench.case.contrasts import Contrast, Criterion
from pybench.case.pairing import Pair, joined, pairs
from pybench.case.yields import metrics_of
from pybench.catalogue.protocols import Protocol

SPEED = (
    "latency_mean_ms",
    "latency_p50_ms",
    "latency_p95_ms",
    "latency_p99_ms",
    "throughput_samples_per_s",
    "gpu_energy_per_sample_j",
    "peak_device_bytes",
    "model_bytes",
)
ACCURACY = ("top1_percent", "top5_percent")
ENERGY = "gpu_energy_per_sample_j"
PERCENT = 100.0


class TradeOffVerdict(StrEnum):
    BASELINE = "baseline"
    ADVANTAGEOUS = "advantageous"
    NOT_ADVANTAGEOUS = "not advantageous"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of a row.

    estimate: the number; None with `why_none`
    windows: names of the windows that it was measured in
    methods: how it was measured
    """

    estimate: Estimate | None
    why_none: str | None
    windows: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            **({"value": None} if self.estimate is None else self.estimate.as_json()),
            "why_none": self.why_none,
            "windows": list(self.windows),
            "methods": list(self.methods),
        }


@dataclass(frozen=True, slots=True)
class BoundedValue:
    """One criterion by the point estimates.

    value: what the threshold bounds; None with `why_none`
    is_own: the protocol sets it, not the plan
    """

    criterion: Criterion
    value: float | None
    is_own: bool
    why_none: str | None

    @property
    def holds(self) -> bool | None:
        return None if self.value is None else self.criterion.holds(self.value)


@dataclass(frozen=True, slots=True)
class TradeOff:
    """One case of inference against its baseline.

    figures: metric -> number, accuracies included
    speedup: mean latency of the baseline over that of the case, 1
    energy_reduction_percent: of the energy of a sample, in % of that of the baseline
    top1_delta_pp: Top-1 of the case minus that of the baseline, in percentage points
    bounded: each criterion by the point estimates
    own_verdict: what the intervals of the paired comparison say; None where the plan has no criteria
    """

    case: Case
    baseline: Case
    figures: Mapping[str, Figure]
    speedup: Figure
    energy_reduction_percent: Figure
    top1_delta_pp: Figure
    bounded: tuple[BoundedValue, ...]
    own_verdict: Verdict | None

    @property
    def standing(self) -> TradeOffVerdict:
        """One bound broken is enough against it; a bound that cannot be judged leaves it open."""
        if self.case == self.baseline:
            return TradeOffVerdict.BASELINE
        kept = [one.holds for one in self.bounded]
        if False in kept:
            return TradeOffVerdict.NOT_ADVANTAGEOUS
        return TradeOffVerdict.NOT_JUDGED if None in kept or not kept else TradeOffVerdict.ADVANTAGEOUS

    @property
    def why_not_judged(self) -> str | None:
        if self.standing is not TradeOffVerdict.NOT_JUDGED:
            return None
        reasons = [f"{one.criterion.name}: {one.why_none}" for one in self.bounded if one.holds is None]
        return "; ".join(reasons) or "no criterion applies"

    def as_json(self) -> dict[str, Any]:
        return {
            "case_id": self.case.id,
            "title": self.case.title(),
            "baseline_id": self.baseline.id,
            "metrics": {name: figure.as_json() for name, figure in self.figures.items()},
            "speedup": self.speedup.as_json(),
            "energy_reduction_percent": self.energy_reduction_percent.as_json(),
            "top1_delta_pp": self.top1_delta_pp.as_json(),
            "bounds": [
                {
                    "criterion": one.criterion.name,
                    "threshold": one.criterion.threshold,
                    "set_by": "protocol" if one.is_own else "plan",
                    "value": one.value,
                    "holds": one.holds,
                    "why_none": one.why_none,
                }
                for one in self.bounded
            ],
            "standing": self.standing.value,
            "why": self.why_not_judged,
            "verdict_by_intervals": None if self.own_verdict is None else self.own_verdict.value,
        }


def weigh(
    protocol: Protocol,
    cases: Sequence[Case],
    measurements: Measurements,
    units: UnitScores,
    contrast: Contrast,
    verdicts: Sequence[CaseVerdict],
    comparability: Mapping[Pair, PairComparability],
) -> tuple[TradeOff, ...]:
    """Every case of inference of a contrast: the baselines, then what is compared with them, in the plan's order.

    Ratios and differences leave out the blocks whose two runs had different software, as paired comparisons do.
    """
    scales = _Scales(measurements, units, comparability)
    bounds = _bounds(protocol, contrast)
    own = {verdict.subject.case.id: verdict.verdict for verdict in verdicts}
    accuracies = {
        group.speed: scales.least_accurate(group.accuracy, bounds)
        for group in joined(pairs(cases, contrast))
        if group.speed is not None
    }
    rows = {pair.case: scales.row(pair, chosen, bounds, own.get(pair.case.id)) for pair, chosen in accuracies.items()}
    for baseline in dict.fromkeys(pair.baseline for pair in accuracies):
        chosen = [one.baseline for pair, one in accuracies.items() if one and pair.baseline == baseline]
        accuracy = Pair(chosen[0], chosen[0]) if chosen else _alone(baseline, cases)
        rows[baseline] = scales.row(Pair(baseline, baseline), accuracy, (), None)
    place = {case: index for index, case in enumerate(cases)}
    return tuple(sorted(rows.values(), key=lambda row: (row.case != row.baseline, place[row.case])))


def _alone(case: Case, cases: Sequence[Case]) -> Pair | None:
    """The accuracy case of the same answers, paired with itself: the Top-1 of a baseline that no accuracy is compared
    with."""
    itself = [Pair(other, other) for other in cases if other.workload_row.judges is not None]
    return next(iter(joined([Pair(case, case), *itself])[0].accuracy), None)


def _bounds(protocol: Protocol, contrast: Contrast) -> tuple[tuple[Criterion, bool], ...]:
    """(criterion, whether it is the protocol's own): the plan's bounds, and the protocol's where the plan has none."""
    (declared,) = contrasts.parse({"baseline": dict(contrast.baseline), "accept": protocol.accept})
    bounds = {one.name: (one, True) for one in declared.accept}
    return tuple((bounds | {one.name: (one, False) for one in contrast.accept}).values())


@dataclass(frozen=True, slots=True)
class _Scales:
    """Reads numbers of cases and sets them against each other."""

    measurements: Measurements
    units: UnitScores
    comparability: Mapping[Pair, PairComparability]
    _figures: dict[tuple[str, str], Figure] = field(default_factory=dict)
    """(case id, metric) -> what was read before: a baseline is in many ratios."""

    def row(
        self, pair: Pair, accuracy: Pair | None, bounds: Sequence[tuple[Criterion, bool]], own: Verdict | None
    ) -> TradeOff:
        figures = {name: self.figure(pair.case, name) for name in SPEED}
        figures |= {name: self._accuracy(accuracy, name) for name in ACCURACY}
        return TradeOff(
            case=pair.case,
            baseline=pair.baseline,
            figures=figures,
            speedup=self._ratio(pair, "latency_mean_ms", lambda case, baseline: baseline / case),
            energy_reduction_percent=self._ratio(pair, ENERGY, lambda case, baseline: PERCENT * (1 - case / baseline)),
            top1_delta_pp=self.accuracy_delta(accuracy, "top1_percent"),
            bounded=tuple(
                self._bounded(criterion, is_own, pair, accuracy)
                for criterion, is_own in bounds
                if _applies(criterion, pair.case)
            ),
            own_verdict=own,
        )

    def figure(self, case: Case, metric: str) -> Figure:
        """Arithmetic mean over repetitions with Student's interval; over images with Wilson's where there are any."""
        found = self._figures.get((case.id, metric))
        if found is None:
            found = self._figures[case.id, metric] = self._mean(case, metric)
        return found

    def _mean(self, case: Case, metric: str) -> Figure:
        cell = self.measurements.cell(case.id, metric)
        if not cell.values:
            return Figure(None, self.measurements.why_empty(case.id, metric))
        estimate = self.units.share(case.id, case.catalogue.metric(metric)) or student_mean(
            Sample.of(cell.values.values())
        )
        return Figure(estimate, None, tuple(sorted(cell.windows)), tuple(sorted(cell.methods)))

    def least_accurate(self, accuracies: Sequence[Pair], bounds: Sequence[tuple[Criterion, bool]]) -> Pair | None:
        """The accuracy that decides, of several of the same answers.

        It is the one that breaks a bound, else one that is not known (it leaves the case open), else the one that lost
        most."""
        bounded = [criterion for criterion, _ in bounds if criterion.metric in ACCURACY]

        def delta(pair: Pair, metric: str) -> float | None:
            estimate = self.accuracy_delta(pair, metric).estimate
            return None if estimate is None else estimate.value

        losses = [(pair, delta(pair, "top1_percent")) for pair in accuracies]
        known = [(loss, pair) for pair, loss in losses if loss is not None]
        ordered = [pair for _, pair in sorted(known, key=lambda one: one[0])]
        values = {pair: [(one, delta(pair, one.metric)) for one in bounded] for pair in accuracies}
        breaking = [
            pair for pair in ordered if any(value is not None and not one.holds(value) for one, value in values[pair])
        ]
        unknown = [pair for pair, loss in losses if loss is None or any(value is None for _, value in values[pair])]
        return next(iter((*breaking, *unknown, *ordered)), None)

    def accuracy_delta(self, pair: Pair | None, metric: str) -> Figure:
        """Case minus baseline in percentage points: over images where both sides kept predictions."""
        if pair is None:
            return Figure(None, _NO_ACCURACY)
        if pair not in self.comparability or not self.comparability[pair].excluded:
            by_unit = self.units.compare(pair.case.id, pair.baseline.id, pair.case.catalogue.metric(metric))
            if by_unit is not None:
                return Figure(by_unit.estimate, None)
        return self._ratio(pair, metric, lambda case, baseline: case - baseline)

    def _accuracy(self, pair: Pair | None, metric: str) -> Figure:
        return Figure(None, _NO_ACCURACY) if pair is None else self.figure(pair.case, metric)

    def _side(self, case: Case, metric: str, software: PairComparability | None) -> Figure:
        """One side of a comparison: its mean over the blocks that are compared."""
        if software is None or not software.excluded:
            return self.figure(case, metric)
        values = software.kept(self.measurements.cell(case.id, metric).values)
        if not values:
            return Figure(None, self.measurements.why_empty(case.id, metric) or software.why())
        return Figure(student_mean(Sample.of(values.values())), None)

    def _ratio(self, pair: Pair, metric: str, compare: Callable[[float, float], float]) -> Figure:
        """A number of two means; it has no interval of its own."""
        software = self.comparability.get(pair)  # None for a baseline with itself
        if software is not None and software.status is Comparability.NOT_COMPARABLE:
            return Figure(None, software.why())
        sides = [self._side(case, metric, software) for case in (pair.case, pair.baseline)]
        for side, name in zip(sides, ("the case", "the baseline"), strict=True):
            if side.estimate is None:
                return Figure(None, f"{name}: {side.why_none}")
        values = [side.estimate.value for side in sides if side.estimate is not None]
        try:
            value = float(compare(*values))
        except ZeroDivisionError:
            return Figure(None, "a ratio to zero")
        return Figure(Estimate(value, None, None, min(s.estimate.n for s in sides if s.estimate), _POINT), None)

    def _bounded(self, criterion: Criterion, is_own: bool, pair: Pair, accuracy: Pair | None) -> BoundedValue:
        if criterion.kind == "absolute":
            found = self.figure(pair.case, criterion.metric)
        elif criterion.metric in metrics_of(pair.case):
            found = self._ratio(pair, criterion.metric, criterion.compare)
        elif accuracy is not None and criterion.metric in ACCURACY:
            found = self.accuracy_delta(accuracy, criterion.metric)
        else:
            found = Figure(None, _NO_ACCURACY)
        return BoundedValue(criterion, None if found.estimate is None else found.estimate.value, is_own, found.why_none)


_NO_ACCURACY = "the plan has no accuracy case of this model, runtime and precision"
_POINT = "ratio of means"


def _applies(criterion: Criterion, case: Case) -> bool:
    """Whether the case, or an accuracy case of its model, can yield what the criterion bounds."""
    if criterion.metric in metrics_of(case):
        return True
    judge = case.catalogue.judge_of(case.workload_row)
    return (
        judge is not None
        and judge.accepts(case.model_row)
        and criterion.metric in metrics_of(case.with_factors(workload=judge.name))
    )
