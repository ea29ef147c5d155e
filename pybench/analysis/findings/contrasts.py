# SPDX-License-Identifier: Apache-2.0
"""Every declared contrast: each case against its baseline, metric by metric, paired.

Runs are paired by block, units (images, windows of text) by id. Holm's correction covers one family: the metrics that a
contrast judges or, when it judges nothing, the headline of the workload. Every other effect is context and keeps its
own p value. What follows from the effects for acceptance is `pybench.analysis.findings.verdicts`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pybench.analysis.comparability import Comparability, PairComparability, SoftwareComparisons
from pybench.analysis.findings.cases import kinds_of_latency
from pybench.analysis.measurements import Measurements
from pybench.analysis.statistics.estimate import EQUAL, EXACT, SINGLE, Estimate
from pybench.analysis.statistics.paired import EQUIVALENCE_MARGIN, Effect, Pairing, compare_paired, holm
from pybench.analysis.units import UnitEffect, UnitScores
from pybench.case import Case, catalogue_of
from pybench.case.contrasts import Contrast
from pybench.case.pairing import Pair, pairs
from pybench.case.yields import metrics_of
from pybench.catalogue.metrics import TOTALS, Metric
from pybench.dataset import Dataset

PERCENT_MARGIN = 1.0  # percentage points that count as "no difference that matters" for an accuracy


@dataclass(frozen=True, slots=True)
class PairEffect:
    """One metric of one pair.

    effect: None with `why_none`
    units: the paired difference or ratio over units; None where the metric has none. `effect` has the same estimate.
    declared: whether it belongs to the family of `p_adjusted`
    p_adjusted: p of `effect`, adjusted by Holm's method; None: it is not in the family
    """

    metric: Metric
    effect: Effect | None
    units: UnitEffect | None
    declared: bool
    p_adjusted: float | None
    why_none: str | None

    def as_json(self) -> dict[str, Any]:
        return {
            **({} if self.effect is None else self.effect.as_json()),
            "units": None if self.units is None else _units_json(self.units),
            "declared": self.declared,
            "p_adjusted": self.p_adjusted,
            "why_none": self.why_none,
        }


@dataclass(frozen=True, slots=True)
class PairFinding:
    """A case against its baseline. `devices`: what each side ran on. `same_device`: whether the two runs of each block
    ran on one; None where a side does not say.

    `latencies`: what each side's runs call their latency: between the GPU's events, or as the host sees it.
    """

    pair: Pair
    effects: Mapping[str, PairEffect]
    candidate_devices: frozenset[str]
    baseline_devices: frozenset[str]
    candidate_latencies: frozenset[str]
    baseline_latencies: frozenset[str]
    comparability: PairComparability
    same_device: bool | None

    @property
    def same_latency(self) -> bool | None:
        if not self.candidate_latencies or not self.baseline_latencies:
            return None
        return self.candidate_latencies == self.baseline_latencies

    def as_json(self) -> dict[str, Any]:
        return {
            "case_id": self.pair.case.id,
            "title": self.pair.case.title(),
            "baseline_id": self.pair.baseline.id,
            "baseline_title": self.pair.baseline.title(),
            "same_device": self.same_device,
            "devices": {"case": sorted(self.candidate_devices), "baseline": sorted(self.baseline_devices)},
            "same_latency": self.same_latency,
            "latencies": {"case": sorted(self.candidate_latencies), "baseline": sorted(self.baseline_latencies)},
            "comparability": self.comparability.as_json(),
            "effects": {name: effect.as_json() for name, effect in self.effects.items()},
        }


@dataclass(frozen=True, slots=True)
class ContrastFinding:
    """One declared contrast with all of its pairs."""

    contrast: Contrast
    pairs: tuple[PairFinding, ...]


def compare_contrasts(
    dataset: Dataset,
    measurements: Measurements,
    units: UnitScores,
    contrasts: Sequence[Contrast],
    software: SoftwareComparisons,
) -> tuple[ContrastFinding, ...]:
    """Every pair of every contrast, with p values adjusted over all that was declared."""
    comparability = software.declared(dataset.plan.cases, contrasts)
    devices, latencies = _devices(dataset), kinds_of_latency(dataset)
    found = [
        ContrastFinding(
            contrast,
            tuple(
                _compare_pair(pair, contrast, measurements, units, devices, latencies, comparability[pair])
                for pair in pairs(dataset.plan.cases, contrast)
            ),
        )
        for contrast in contrasts
    ]
    return _adjusted(found)


def _compare_pair(
    pair: Pair,
    contrast: Contrast,
    measurements: Measurements,
    units: UnitScores,
    devices: Mapping[str, Mapping[int, str]],
    latencies: Mapping[str, frozenset[str]],
    comparability: PairComparability,
) -> PairFinding:
    possible = metrics_of(pair.case)
    declared = {criterion.metric for criterion in contrast.accept if criterion.kind != "absolute"} & possible
    headline = pair.headline
    if not contrast.accept and headline is not None:
        declared = {headline}
    measured = measurements.of_case(pair.case.id).keys() | measurements.of_case(pair.baseline.id).keys()
    shown = declared | (measured - (TOTALS - {reference.metric for reference in contrast.reference}))
    effects = {
        name: _compare_metric(metric, pair, measurements, units, comparability, declared=name in declared)
        for name, metric in catalogue_of((pair.case, pair.baseline)).metrics.items()
        if name in shown
    }
    first, second = (devices.get(case.id, {}) for case in (pair.case, pair.baseline))
    timed, timed_before = (latencies.get(case.id, frozenset()) for case in (pair.case, pair.baseline))
    return PairFinding(
        pair,
        effects,
        frozenset(first.values()),
        frozenset(second.values()),
        timed,
        timed_before,
        comparability,
        _same_device(first, second),
    )


def _same_device(first: Mapping[int, str], second: Mapping[int, str]) -> bool | None:
    """Block -> device of each side. Of sides without a common block, what they used in all is compared."""
    if not first or not second:
        return None
    both = first.keys() & second.keys()
    return all(first[block] == second[block] for block in both) if both else set(first.values()) == set(second.values())


def _compare_metric(
    metric: Metric,
    pair: Pair,
    measurements: Measurements,
    units: UnitScores,
    comparability: PairComparability,
    *,
    declared: bool,
) -> PairEffect:
    candidate, baseline = (measurements.cell(case.id, metric.name) for case in (pair.case, pair.baseline))
    for cell, case in ((candidate, pair.case), (baseline, pair.baseline)):
        if not cell.values:
            why = f"{_side(case, pair)}: {measurements.why_empty(case.id, metric.name)}"
            return PairEffect(metric, None, None, declared, None, why)
    if comparability.status is Comparability.NOT_COMPARABLE:
        return PairEffect(metric, None, None, declared, None, comparability.why())
    first, second = (comparability.kept(cell.values) for cell in (candidate, baseline))
    varies = bool(comparability.excluded) and not units.varying.keys().isdisjoint({pair.case.id, pair.baseline.id})
    by_unit = None if varies else units.compare(pair.case.id, pair.baseline.id, metric)
    if by_unit is not None:
        return PairEffect(metric, _unit_effect(metric, by_unit, first, second), by_unit, declared, None, None)
    if metric.scale == "ratio" and min(*first.values(), *second.values(), float("inf")) <= 0:
        return PairEffect(metric, None, None, declared, None, "a value is not positive, so there is no ratio")
    effect = compare_paired(first, second, metric.scale, tests=measurements.tests)
    if effect is None:
        return PairEffect(metric, None, None, declared, None, "no block has values of both sides")
    if metric.is_counted and effect.estimate.method in (EQUAL, SINGLE):
        effect = replace(effect, estimate=_exact(effect.estimate))
    return PairEffect(metric, effect, None, declared, None, None)


def _exact(estimate: Estimate) -> Estimate:
    return Estimate(estimate.value, estimate.value, estimate.value, estimate.n, EXACT)


def _unit_effect(
    metric: Metric, found: UnitEffect, candidate: Mapping[int, float], baseline: Mapping[int, float]
) -> Effect:
    """A difference or ratio over units in the form of one over blocks; nothing is known of equivalence or power but the
    interval."""
    both = tuple(sorted(candidate.keys() & baseline.keys()))
    return Effect(
        scale=metric.scale,
        estimate=found.estimate,
        pairing=Pairing(both, len(candidate) - len(both), len(baseline) - len(both)),
        p_value=found.p_value,
        p_equivalence=None,
        margin=PERCENT_MARGIN if metric.unit == "%" else EQUIVALENCE_MARGIN,
        detectable=None,
    )


def _adjusted(found: Sequence[ContrastFinding]) -> tuple[ContrastFinding, ...]:
    """Holm over every declared effect of every contrast."""
    family = [
        effect.effect.p_value if effect.effect is not None else None
        for contrast in found
        for pair in contrast.pairs
        for effect in pair.effects.values()
        if effect.declared
    ]
    adjusted = iter(holm(family))
    return tuple(
        replace(
            contrast,
            pairs=tuple(
                replace(
                    pair,
                    effects={
                        name: replace(effect, p_adjusted=next(adjusted)) if effect.declared else effect
                        for name, effect in pair.effects.items()
                    },
                )
                for pair in contrast.pairs
            ),
        )
        for contrast in found
    )


def _devices(dataset: Dataset) -> dict[str, dict[int, str]]:
    """Case id -> block -> device, of the `ok` runs that say it."""
    found: dict[str, dict[int, str]] = {}
    ok = dataset.runs.filter(dataset.runs["outcome"] == "ok")
    for case_id, block, device in ok.select("case_id", "block", "device").iter_rows():
        if device is not None:
            found.setdefault(case_id, {})[block] = device
    return found


def _side(case: Case, pair: Pair) -> str:
    return "the case" if case == pair.case else "the baseline"


def _units_json(found: UnitEffect) -> dict[str, Any]:
    return {
        **({} if found.pairs is None else found.pairs.as_json()),
        "n": found.n,
        "groups": found.groups,
        "agreement_percent": None if found.agreement is None else found.agreement.as_json(),
        "unmatched": found.unmatched,
        "relabelled": found.relabelled,
    }
