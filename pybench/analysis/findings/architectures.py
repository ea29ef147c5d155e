# SPDX-License-Identifier: Apache-2.0
"""What compiling does to architectures: their order, and what a sample costs in a batch.

Architectures are values of the factor that a model's row names so (`Model.architecture`), with all else equal.

Batch friction, a measure of our own: time per sample at batch b over that at batch 1, paired within blocks. At 1/b a
batch takes as long as one sample, at 1 batching gains nothing, and above 1 it costs.

Order: a pair of architectures is `reversed` where an eager and a compiling runtime rank it differently. The whole
interval of the ratio of their times is then on one side of 1 in the eager runtime, and on the other side in the
compiling one. The pair is `kept` where both intervals are on one side, and else `open`. Every interval of a ratio
between architectures has 1 - 0.05 over their number (Bonferroni). With a probability of 95 %, all of them contain the
true ratio, and then none of the words `kept` and `reversed` is wrong.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pybench.analysis.comparability import SoftwareComparisons
from pybench.analysis.measurements import Measurements
from pybench.analysis.statistics.estimate import Estimate
from pybench.analysis.statistics.paired import EQUIVALENCE_MARGIN, compare_paired
from pybench.analysis.statistics.sequential import confidence_among
from pybench.case import Case
from pybench.case.factors import followers_of
from pybench.case.pairing import agree

METRIC = "latency_mean_ms"

OrderChange = Literal["kept", "reversed", "open"]
Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class BatchFriction:
    """One case with a batch above 1. `ratio`: its time per sample over that of the same case at batch 1."""

    case: Case
    ratio: Estimate


@dataclass(frozen=True, slots=True)
class ArchitectureOrder:
    """Two architectures in an eager and in a compiling runtime.

    first, second: the cases of the compiling runtime
    eager_first, eager_second: the cases of the eager runtime
    eager, compiled: time of the first over that of the second
    """

    first: Case
    second: Case
    eager_first: Case
    eager_second: Case
    eager: Estimate
    compiled: Estimate

    @property
    def change(self) -> OrderChange:
        sides = [_side(self.eager), _side(self.compiled)]
        if 0 in sides:
            return "open"
        return "kept" if sides[0] == sides[1] else "reversed"


@dataclass(frozen=True, slots=True)
class ArchitectureFinding:
    """`confidence`: of each interval in `orders`."""

    orders: tuple[ArchitectureOrder, ...]
    frictions: tuple[BatchFriction, ...]
    confidence: float

    def as_json(self) -> dict[str, Any]:
        return {
            "metric": METRIC,
            "orders": [
                {
                    "case_ids": [one.first.id, one.second.id],
                    "eager_case_ids": [one.eager_first.id, one.eager_second.id],
                    "eager": one.eager.as_json(),
                    "compiled": one.compiled.as_json(),
                    "change": one.change,
                }
                for one in self.orders
            ],
            "batch_friction": [{"case_id": one.case.id, **one.ratio.as_json()} for one in self.frictions],
        }


def find_architectures(
    planned: Sequence[Case], measurements: Measurements, software: SoftwareComparisons
) -> ArchitectureFinding | None:
    """None for a campaign without two architectures of one model that are timed."""
    cases = [case for case in planned if architecture_of(case) and _times(case, measurements)]
    if len({_of(case, str(architecture_of(case))) for case in cases}) < 2:
        return None
    pairs = _pairs_of(cases)
    ratios = {pair for compiled, eager in pairs for pair in (compiled, eager)}
    confidence = confidence_among(max(len(ratios), 1) * measurements.tests)
    found = {pair: _ratio(*pair, 1.0, confidence, measurements, software) for pair in ratios}
    orders = [
        ArchitectureOrder(*compiled, *eager, first, second)
        for compiled, eager in pairs
        if (first := found[eager]) is not None and (second := found[compiled]) is not None
    ]
    return ArchitectureFinding(tuple(orders), tuple(_frictions(cases, measurements, software)), confidence)


def architecture_of(case: Case) -> str | None:
    """The factor that tells architectures of the case's model apart; None: the model is one architecture."""
    row = case.model_row
    return None if row is None else row.architecture


def _pairs_of(cases: Sequence[Case]) -> list[tuple[tuple[Case, Case], tuple[Case, Case]]]:
    """Each pair of architectures in a compiling runtime, with the same pair in the eager one."""
    eager: dict[Key, list[Case]] = {}
    for case in cases:
        if case.runtime_row is not None and case.runtime_row.is_eager:
            eager.setdefault(_key(case, _executing()), []).append(case)
    groups: dict[Key, list[Case]] = {}
    for case in cases:
        if case.runtime_row is not None and not case.runtime_row.is_eager:
            groups.setdefault(_key(case, {str(architecture_of(case))}), []).append(case)
    found = []
    for group in groups.values():
        for pair in itertools.combinations(group, 2):
            sides = [_eager_of(case, eager.get(_key(case, _executing()), ())) for case in pair]
            if sides[0] is not None and sides[1] is not None:
                found.append((pair, (sides[0], sides[1])))
    return found


def _eager_of(case: Case, candidates: Sequence[Case]) -> Case | None:
    """The eager case of a compiled one: the two agree in what both have, such as threads."""
    return next((other for other in candidates if agree(case, other, followers_of("runtime"))), None)


def _frictions(cases: Sequence[Case], measurements: Measurements, software: SoftwareComparisons) -> list[BatchFriction]:
    single = {_key(case, {"batch"}): case for case in cases if case.batch == 1}
    found = []
    for case in cases:
        one = single.get(_key(case, {"batch"}))
        if case.batch == 1 or one is None:
            continue
        ratio = _ratio(case, one, 1 / case.batch, confidence_among(measurements.tests), measurements, software)
        if ratio is not None:
            found.append(BatchFriction(case, ratio))
    return found


def _ratio(
    case: Case,
    other: Case,
    factor: float,
    confidence: float,
    measurements: Measurements,
    software: SoftwareComparisons,
) -> Estimate | None:
    """`factor` times the time of a case over that of another, without blocks whose software differs."""
    comparable = software.between(case, other)
    effect = compare_paired(
        comparable.kept(_times(case, measurements)),
        _times(other, measurements),
        "ratio",
        EQUIVALENCE_MARGIN,
        confidence=confidence,
    )
    return None if effect is None else effect.estimate.scaled(factor)


def _times(case: Case, measurements: Measurements) -> Mapping[int, float]:
    return measurements.cell(case.id, METRIC).values


def _side(ratio: Estimate) -> int:
    """-1 or 1 where the interval is on one side of 1, else 0."""
    if ratio.lower is None or ratio.upper is None:
        return 0
    return 1 if ratio.lower > 1 else -1 if ratio.upper < 1 else 0


def _executing() -> set[str]:
    """The factors in which an eager and a compiled case may differ."""
    return {"runtime", *followers_of("runtime")}


def _key(case: Case, without: set[str]) -> Key:
    return tuple((name, value) for name, value in case.factors().items() if name not in without)


def _of(case: Case, name: str) -> Key:
    return case.model, case.value(name)
