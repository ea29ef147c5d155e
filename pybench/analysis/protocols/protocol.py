# SPDX-License-Identifier: Apache-2.0
"""A named protocol carried out: every sample, every pair of cases, ANOVA where it may be done.

    ProtocolFinding
    ├── settings     Setting       the cases that one baseline stands for: equal but for the baseline's factors
    │   └── scenarios    Scenario      one metric of them: samples, all pairs, analysis of variance
    └── trade_offs   TradeOff      each case of inference with its accuracy: the papers' Table 1

The tests take samples as independent; beside each stands the house's own ratio, paired within blocks. Holm's correction
covers every pair that the protocol tests in the campaign, once for each metric however many contrasts hold it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pybench.analysis.comparability import Comparability, PairComparability, SoftwareComparisons
from pybench.analysis.findings.verdicts import CaseVerdict
from pybench.analysis.measurements import Measurements
from pybench.analysis.protocols.trade_offs import TradeOff, weigh
from pybench.analysis.statistics.estimate import Estimate, Sample
from pybench.analysis.statistics.intervals import bootstrap_mean, student_mean
from pybench.analysis.statistics.paired import ALPHA, Effect, compare_paired, holm
from pybench.analysis.statistics.unpaired import (
    Normality,
    PairTest,
    Variances,
    analyse_variance,
    compare_adaptively,
    compare_ranks,
    judge_normality,
)
from pybench.analysis.units import UnitScores
from pybench.case import Case
from pybench.case.contrasts import Contrast
from pybench.case.pairing import Pair, pairs
from pybench.catalogue.metrics import METRICS, Metric
from pybench.catalogue.protocols import Protocol
from pybench.dataset import Dataset
from pybench.processes import Processes

_TASK_SETTINGS = 8  # tested at once by one process: each result waits until the process that began it has a moment
_LEFT_TASKS = 24  # of a process, done while another one imports scipy.stats


@dataclass(frozen=True, slots=True)
class SampleFinding:
    """One metric of one case over its repetitions.

    estimate: arithmetic mean with the protocol's interval, in the unit of the metric; None with `why_none`
    normality: whether the sample may be normal; None where the protocol does not ask
    """

    case: Case
    estimate: Estimate | None
    normality: Normality | None
    why_none: str | None

    def as_json(self) -> dict[str, Any]:
        return {
            "case_id": self.case.id,
            "mean": None if self.estimate is None else self.estimate.as_json(),
            "shapiro_wilk": None if self.normality is None else self.normality.as_json(),
            "why_none": self.why_none,
        }


@dataclass(frozen=True, slots=True)
class TestedPair:
    """One metric of two cases.

    second: the baseline, or what stands before `first` in the plan
    test: takes the samples as independent
    p_adjusted: p of `test`, adjusted by Holm's method
    p_tukey: p of Tukey's test; None where ANOVA was not done
    paired: pybench's own ratio or difference within blocks
    why_none: why `test` is None
    """

    first: Case
    second: Case
    test: PairTest | None
    p_adjusted: float | None
    p_tukey: float | None
    paired: Effect | None
    why_none: str | None

    @property
    def is_significant(self) -> bool:
        return self.test is not None and self.test.p_value is not None and self.test.p_value < ALPHA

    def as_json(self) -> dict[str, Any]:
        return {
            "case_id": self.first.id,
            "against_id": self.second.id,
            **({} if self.test is None else self.test.as_json()),
            "p_adjusted": self.p_adjusted,
            "p_tukey": self.p_tukey,
            "paired": None if self.paired is None else self.paired.as_json(),
            "why_none": self.why_none,
        }


@dataclass(frozen=True, slots=True)
class Scenario:
    """One metric of one setting. `variances`: where the protocol asks for ANOVA and all cases have values."""

    metric: Metric
    samples: tuple[SampleFinding, ...]
    tested_pairs: tuple[TestedPair, ...]
    variances: Variances | None

    def as_json(self) -> dict[str, Any]:
        return {
            "metric": self.metric.name,
            "samples": [sample.as_json() for sample in self.samples],
            "pairs": [pair.as_json() for pair in self.tested_pairs],
            "anova": None if self.variances is None else self.variances.as_json(),
        }


@dataclass(frozen=True, slots=True)
class ProtocolSetting:
    """`cases`: the baseline, then every case that is compared with it, in the plan's order."""

    contrast: Contrast
    cases: tuple[Case, ...]
    scenarios: tuple[Scenario, ...]


@dataclass(frozen=True, slots=True)
class ProtocolFinding:
    """What one protocol says.

    settings: what was tested of each contrast
    trade_offs: one tuple a contrast, in the order of `contrasts`
    """

    protocol: Protocol
    contrasts: tuple[Contrast, ...]
    settings: tuple[ProtocolSetting, ...]
    trade_offs: tuple[tuple[TradeOff, ...], ...]

    @property
    def tested_pairs(self) -> tuple[TestedPair, ...]:
        return tuple(pair for _, pair in _tested_pairs(self.settings))

    @property
    def distinct_pairs(self) -> tuple[TestedPair, ...]:
        """One a metric and pair of cases: contrasts that overlap hold the same pair more than once."""
        return tuple(_distinct(self.settings).values())

    @property
    def distinct_samples(self) -> tuple[SampleFinding, ...]:
        """One a metric and case."""
        return tuple(
            {
                (scenario.metric.name, sample.case): sample
                for setting in self.settings
                for scenario in setting.scenarios
                for sample in scenario.samples
            }.values()
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.protocol.name,
            "meaning": self.protocol.meaning,
            "alpha": ALPHA,
            "threats": list(self.protocol.threats),
            "settings": [
                {
                    "contrast": setting.contrast.title(),
                    "case_ids": [case.id for case in setting.cases],
                    "scenarios": [scenario.as_json() for scenario in setting.scenarios],
                }
                for setting in self.settings
            ],
            "trade_offs": [
                {"contrast": contrast.title(), "cases": [one.as_json() for one in found]}
                for contrast, found in zip(self.contrasts, self.trade_offs, strict=True)
                if found
            ],
        }


class ProtocolTests:
    """The tests of all protocols of a campaign, which other processes begin while this one does the rest of the
    analysis. Without contrasts of the plan's, a protocol compares with its own baseline."""

    def __init__(
        self,
        protocols: Sequence[Protocol],
        dataset: Dataset,
        measurements: Measurements,
        contrasts: Sequence[Contrast],
        software: SoftwareComparisons,
        processes: Processes,
    ) -> None:
        self._cases, self._measurements = dataset.plan.cases, measurements
        self._protocols = [_Comparisons.of(one, self._cases, contrasts, software) for one in protocols]
        settings = [setting for one in self._protocols for setting in one.settings]
        metrics = {name for one in protocols for name in one.metrics}
        self._begun = processes.begin(
            _Tests(measurements.of_metrics(metrics), dataset.plan.seed),
            [settings[first : first + _TASK_SETTINGS] for first in range(0, len(settings), _TASK_SETTINGS)],
        )

    def findings(self, units: UnitScores, verdicts: Sequence[Sequence[CaseVerdict]]) -> tuple[ProtocolFinding, ...]:
        """One a protocol. `verdicts`: the house's, one sequence a contrast of the plan."""
        weighed = [self._weigh(one, units, verdicts) for one in self._protocols]  # while the others still test
        tested = itertools.chain.from_iterable(self._begun.finish(leaving=_LEFT_TASKS))
        return tuple(
            ProtocolFinding(one.protocol, one.contrasts, _with_tests(one.settings, tested), trade_offs)
            for one, trade_offs in zip(self._protocols, weighed, strict=True)
        )

    def _weigh(
        self, found: _Comparisons, units: UnitScores, verdicts: Sequence[Sequence[CaseVerdict]]
    ) -> tuple[tuple[TradeOff, ...], ...]:
        return tuple(
            weigh(found.protocol, self._cases, self._measurements, units, contrast, judged, found.comparability)
            if found.protocol.accept
            else ()
            for contrast, judged in zip(found.contrasts, verdicts or [()] * len(found.contrasts), strict=True)
        )


def _with_tests(
    settings: Sequence[_SettingToTest], tested: Iterator[tuple[Scenario, ...]]
) -> tuple[ProtocolSetting, ...]:
    """Those settings that have a scenario."""
    found = [ProtocolSetting(one.contrast, one.members, next(tested)) for one in settings]
    return _adjusted([setting for setting in found if setting.scenarios])


@dataclass(frozen=True, slots=True)
class _SettingToTest:
    """`comparabilities`: (later, earlier) of `members` -> what the two ran with."""

    protocol: Protocol
    contrast: Contrast
    members: tuple[Case, ...]
    comparabilities: Mapping[tuple[int, int], PairComparability]


@dataclass(frozen=True, slots=True)
class _Comparisons:
    """What one protocol compares: the plan's contrasts, or its own."""

    protocol: Protocol
    contrasts: tuple[Contrast, ...]
    comparability: Mapping[Pair, PairComparability]
    settings: tuple[_SettingToTest, ...]

    @classmethod
    def of(
        cls, protocol: Protocol, cases: Sequence[Case], contrasts: Sequence[Contrast], software: SoftwareComparisons
    ) -> _Comparisons:
        own = () if contrasts or protocol.baseline is None else (Contrast(baseline=protocol.baseline),)
        compared = (*contrasts, *own)
        comparability = software.declared(cases, compared)
        settings = tuple(
            _SettingToTest(protocol, contrast, members, _between(members, software))
            for contrast in compared
            for members in _members(cases, contrast)
        )
        return cls(protocol, compared, comparability, settings)


def _between(members: Sequence[Case], software: SoftwareComparisons) -> dict[tuple[int, int], PairComparability]:
    return {
        (later, earlier): software.between(members[later], members[earlier])
        for earlier, later in itertools.combinations(range(len(members)), 2)
    }


def _members(cases: Sequence[Case], contrast: Contrast) -> list[tuple[Case, ...]]:
    groups: dict[Case, list[Case]] = {}
    for pair in pairs(cases, contrast):
        groups.setdefault(pair.baseline, []).append(pair.case)
    return [(baseline, *others) for baseline, others in groups.items()]


class _Tests:
    """Tests settings, in any process. It describes a sample once: a case is in the settings of several contrasts."""

    def __init__(self, measurements: Measurements, seed: int) -> None:
        self._measurements = measurements
        self._seed = seed
        self._found: dict[tuple[str, str, str], SampleFinding] = {}

    def __call__(self, settings: Sequence[_SettingToTest]) -> list[tuple[Scenario, ...]]:
        return [tuple(_scenarios(self, setting, self._measurements)) for setting in settings]

    def sample(self, protocol: Protocol, case: Case, metric: Metric) -> SampleFinding:
        key = (case.id, metric.name)
        found = self._found.get((protocol.name, *key))
        if found is None:
            values, why_empty = self._measurements.cell(*key).values, self._measurements.why_empty(*key)
            found = _describe(protocol, case, values, why_empty, self._seed)
            self._found[protocol.name, *key] = found
        return found


def _scenarios(described: _Tests, setting: _SettingToTest, measurements: Measurements) -> Iterator[Scenario]:
    """One a metric that at least two cases have values of. Cases whose runs differ in software are no groups of one
    analysis of variance."""
    protocol, members, comparabilities = setting.protocol, setting.members, setting.comparabilities
    are_alike = not any(found.excluded for found in comparabilities.values())
    for metric in [METRICS[name] for name in protocol.metrics]:
        values = {case: dict(measurements.cell(case.id, metric.name).values) for case in members}
        if sum(bool(found) for found in values.values()) < 2:
            continue
        samples = tuple(described.sample(protocol, case, metric) for case in members)
        complete = protocol.checks_normality and are_alike and all(values.values())
        variances = analyse_variance([Sample.of(values[case].values()) for case in members]) if complete else None
        tested_pairs = tuple(
            _tested(
                protocol,
                metric,
                (samples[later], samples[earlier]),
                values,
                _tukey(variances, later, earlier),
                comparability,
                measurements.tests,
            )
            for (later, earlier), comparability in comparabilities.items()
        )
        yield Scenario(metric, samples, tested_pairs, variances)


def _describe(protocol: Protocol, case: Case, values: Mapping[int, float], why_empty: str, seed: int) -> SampleFinding:
    if not values:
        return SampleFinding(case, None, None, why_empty)
    sample = Sample.of(values.values())
    estimate = student_mean(sample) if protocol.interval == "student" else bootstrap_mean(sample, seed)
    return SampleFinding(case, estimate, judge_normality(sample) if protocol.checks_normality else None, None)


def _tested(
    protocol: Protocol,
    metric: Metric,
    sides: tuple[SampleFinding, SampleFinding],
    values: Mapping[Case, Mapping[int, float]],
    p_tukey: float | None,
    comparability: PairComparability,
    tests: int,
) -> TestedPair:
    first, second = (side.case for side in sides)
    for side in sides:
        if side.estimate is None:
            return TestedPair(first, second, None, None, None, None, side.why_none)
    if comparability.status is Comparability.NOT_COMPARABLE:
        return TestedPair(first, second, None, None, None, None, comparability.why())
    kept = {case: comparability.kept(values[case]) for case in (first, second)}
    if not all(kept.values()):
        return TestedPair(first, second, None, None, None, None, comparability.why())
    one, other = (Sample.of(kept[case].values()) for case in (first, second))
    if protocol.checks_normality:
        test = compare_adaptively(one, other, (_normality(sides[0], one), _normality(sides[1], other)))
    else:
        test = compare_ranks(one, other, "the protocol's test throughout")
    positive = all(value > 0 for case in (first, second) for value in kept[case].values())
    has_effect = positive or metric.scale != "ratio"
    paired = compare_paired(kept[first], kept[second], metric.scale, tests=tests) if has_effect else None
    return TestedPair(first, second, test, None, p_tukey, paired, None)


def _normality(side: SampleFinding, kept: Sample) -> Normality:
    """Of what is compared; known already where no value was left out."""
    if side.normality is not None and side.estimate is not None and side.estimate.n == kept.n:
        return side.normality
    return judge_normality(kept)


def _tukey(variances: Variances | None, later: int, earlier: int) -> float | None:
    return None if variances is None or variances.tukey is None else variances.tukey[later][earlier]


_PairKey = tuple[str, frozenset[Case]]  # metric, and the two cases in either order


def _adjusted(settings: Sequence[ProtocolSetting]) -> tuple[ProtocolSetting, ...]:
    """Holm over every metric and pair, each once; a pair that several settings hold has one adjusted p in all."""
    distinct = _distinct(settings)
    p_values = holm([pair.test.p_value if pair.test else None for pair in distinct.values()])
    adjusted = dict(zip(distinct, p_values, strict=True))

    def with_adjusted(scenario: Scenario) -> Scenario:
        tested_pairs = (
            replace(pair, p_adjusted=adjusted[_key(scenario.metric.name, pair)]) for pair in scenario.tested_pairs
        )
        return replace(scenario, tested_pairs=tuple(tested_pairs))

    return tuple(replace(setting, scenarios=tuple(map(with_adjusted, setting.scenarios))) for setting in settings)


def _distinct(settings: Sequence[ProtocolSetting]) -> dict[_PairKey, TestedPair]:
    found: dict[_PairKey, TestedPair] = {}
    for metric, pair in _tested_pairs(settings):
        found.setdefault(_key(metric, pair), pair)
    return found


def _key(metric: str, pair: TestedPair) -> _PairKey:
    return metric, frozenset((pair.first, pair.second))


def _tested_pairs(settings: Sequence[ProtocolSetting]) -> Iterator[tuple[str, TestedPair]]:
    """(metric, pair) of every scenario."""
    return ((one.metric.name, pair) for setting in settings for one in setting.scenarios for pair in one.tested_pairs)
