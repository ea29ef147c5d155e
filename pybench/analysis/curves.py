# SPDX-License-Identifier: Apache-2.0
"""A metric, or its ratio to a baseline, over a numeric factor: one line for each group of cases, and where lines cross.

Cases of one line are equal in everything but the factor. Between two neighbouring values both lines are taken as
straight in logarithms (or plainly, where a value is not positive), which is an assumption. The uncertainty of a
crossing comes from resampled blocks (percentile bootstrap); it does not contain the error of that assumption.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pybench.analysis.cases import CaseFinding
from pybench.analysis.contrasts import ContrastFinding, PairEffect
from pybench.analysis.elementary import exp_of, log
from pybench.analysis.estimate import CONFIDENCE, Estimate
from pybench.case import Case
from pybench.case.contrasts import Contrast
from pybench.case.curves import LEAST_VALUES, PlannedCurve
from pybench.case.factors import factor_named, is_idle
from pybench.case.references import COMPARED
from pybench.catalogue.metrics import Metric

Numbers = NDArray[np.float64]

LEAST_BLOCKS = 5  # for an uncertainty of a crossing
LEAST_SHARE = 0.8  # of the resamples that cross: with fewer, lines may as well not cross
RESAMPLES = 2000
_NAMING = frozenset({"build", "fixed_batch"})  # numbers that tell cases apart, and measure nothing


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """One case of a line. `values`: block -> value behind the estimate; empty for a ratio."""

    at: float
    case: Case
    estimate: Estimate
    values: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class CurveLine:
    """Cases that differ in the factor alone, by rising value of it."""

    points: tuple[CurvePoint, ...]

    @property
    def case(self) -> Case:
        return self.points[0].case


@dataclass(frozen=True, slots=True)
class Crossing:
    """Where two lines cross. `share`: of the resamples of blocks in which they cross; None with too few blocks."""

    first: CurveLine
    second: CurveLine
    at: float
    lower: float | None
    upper: float | None
    share: float | None


@dataclass(frozen=True, slots=True)
class Curve:
    """One figure: `metric` over `factor`. `contrast` is None for the metric itself; `inverse`: baseline over case."""

    factor: str
    workload: str
    metric: Metric
    contrast: Contrast | None
    inverse: bool
    lines: tuple[CurveLine, ...]
    crossings: tuple[Crossing, ...]

    def as_json(self) -> dict[str, Any]:
        place = {id(line): number for number, line in enumerate(self.lines)}
        return {
            "over": self.factor,
            "workload": self.workload,
            "metric": self.metric.name,
            "contrast": None if self.contrast is None else self.contrast.title(),
            "inverse": self.inverse,
            "lines": [
                [{"at": one.at, "case_id": one.case.id, **one.estimate.as_json()} for one in line.points]
                for line in self.lines
            ],
            "crossings": [
                {
                    "lines": [place[id(one.first)], place[id(one.second)]],
                    "at": one.at,
                    "lower": one.lower,
                    "upper": one.upper,
                    "share_of_resamples": one.share,
                }
                for one in self.crossings
            ],
        }


def find_curves(
    cases: Sequence[CaseFinding], contrasts: Sequence[ContrastFinding], planned: Sequence[PlannedCurve], seed: int
) -> tuple[Curve, ...]:
    """The curves that the plan asks for; without them, the headline of each workload and each judged ratio, over every
    numeric factor with three values."""
    wanted = planned or [PlannedCurve(name, None) for name in _numeric_factors([case.case for case in cases])]
    found: list[Curve] = []
    for one in wanted:
        found += _of_metrics(one, cases, seed)
        found += _of_ratios(one, contrasts)
    return tuple(found)


def _of_metrics(wanted: PlannedCurve, cases: Sequence[CaseFinding], seed: int) -> list[Curve]:
    groups: dict[tuple[str, str], dict[tuple[Any, ...], list[CurvePoint]]] = {}
    for case in cases:
        name = case.case.headline if wanted.metric is None else wanted.metric
        finding = None if name is None else case.metrics.get(name)
        at = _place(case.case, wanted.over)
        if name is None or finding is None or finding.estimate is None or at is None:
            continue
        lines = groups.setdefault((case.case.workload, name), {})
        point = CurvePoint(at, case.case, finding.estimate, finding.points)
        lines.setdefault(_line_key(case.case, wanted.over), []).append(point)
    found = []
    for (workload, name), lines in groups.items():
        drawn = _lines(lines)
        if drawn:
            metric = drawn[0].case.catalogue.metrics[name]
            crossings = tuple(_crossings(drawn, seed))
            found.append(Curve(wanted.over, workload, metric, None, False, drawn, crossings))
    return found


def _of_ratios(wanted: PlannedCurve, contrasts: Sequence[ContrastFinding]) -> list[Curve]:
    found = []
    for contrast in contrasts:
        if wanted.over in contrast.contrast.baseline:
            continue
        for metric, inverse in _ratios(wanted, contrast.contrast):
            by_workload: dict[str, dict[tuple[Any, ...], list[CurvePoint]]] = {}
            for pair in contrast.pairs:
                effect, at = pair.effects.get(metric), _place(pair.pair.case, wanted.over)
                if effect is None or effect.effect is None or at is None:
                    continue
                point = CurvePoint(at, pair.pair.case, _estimate(effect, inverse), {})
                lines = by_workload.setdefault(pair.pair.case.workload, {})
                lines.setdefault(_line_key(pair.pair.case, wanted.over), []).append(point)
            for workload, lines in by_workload.items():
                drawn = _lines(lines)
                if drawn:
                    row = drawn[0].case.catalogue.metrics[metric]
                    found.append(Curve(wanted.over, workload, row, contrast.contrast, inverse, drawn, ()))
    return found


def _ratios(wanted: PlannedCurve, contrast: Contrast) -> list[tuple[str, bool]]:
    """(metric, inverse) of what a curve shows of a comparison: the named ratio, or every ratio that is judged."""
    if wanted.metric is None:
        return [(one.metric, one.inverse) for one in contrast.accept if one.kind == "ratio"]
    kind = COMPARED.get(wanted.metric)
    return [] if kind is None or kind.kind != "ratio" else [(kind.metric, kind.inverse)]


def _estimate(found: PairEffect, inverse: bool) -> Estimate:
    if found.effect is None:
        raise ValueError("a point of a curve without an effect")
    return found.effect.estimate.inverse() if inverse else found.effect.estimate


def _lines(found: Mapping[tuple[Any, ...], list[CurvePoint]]) -> tuple[CurveLine, ...]:
    """Lines of two points and more; none where no line has `LEAST_VALUES`."""
    lines = [CurveLine(tuple(sorted(points, key=lambda point: point.at))) for points in found.values()]
    if not any(len(line.points) >= LEAST_VALUES for line in lines):
        return ()
    return tuple(line for line in lines if len(line.points) > 1)


def _numeric_factors(cases: Sequence[Case]) -> list[str]:
    """Numeric factors that have at least `LEAST_VALUES` values in cases that are equal elsewhere."""
    names = dict.fromkeys(name for case in cases for name in case.own_factors())
    return [name for name in names if name not in _NAMING and _is_varied(name, cases)]


def _is_varied(name: str, cases: Sequence[Case]) -> bool:
    values: dict[tuple[Any, ...], set[float]] = {}
    for case in cases:
        at = _place(case, name)
        if at is not None:
            values.setdefault(_line_key(case, name), set()).add(at)
    return any(len(each) >= LEAST_VALUES for each in values.values())


def _place(case: Case, name: str) -> float | None:
    """The value of a numeric factor that says what is measured; None where it has none, or means nothing."""
    if name not in case.own_factors() or is_idle(name, case):
        return None
    factor, value = factor_named(name, case), case.value(name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and factor.kind in ("integer", "number") and not factor.protocol else None


def _line_key(case: Case, name: str) -> tuple[Any, ...]:
    return tuple((factor, value) for factor, value in case.factors().items() if factor != name)


# --- crossings -------------------------------------------------------------------------------------------------------


def _crossings(lines: Sequence[CurveLine], seed: int) -> list[Crossing]:
    return [
        crossing
        for first, second in itertools.combinations(lines, 2)
        for crossing in _crossings_of(first, second, seed)
    ]


def _crossings_of(first: CurveLine, second: CurveLine, seed: int) -> list[Crossing]:
    """Every place where two lines change sides between two values that both have."""
    others = {point.at: point for point in second.points}
    both = [(point, others[point.at]) for point in first.points if point.at in others]
    found = []
    for before, here, after in zip(both, both[1:], both[2:], strict=False):
        gaps = [_gap(pair, logarithmic=False) for pair in (before, here, after)]
        if gaps[1] == 0 and gaps[0] * gaps[2] < 0:
            found.append(Crossing(first, second, here[0].at, None, None, None))
    for left, right in itertools.pairwise(both):
        corners = (*left, *right)
        scale = _scale([point.estimate.value for point in corners])
        gaps = [_gap(pair, scale) for pair in (left, right)]
        if gaps[0] * gaps[1] < 0:
            ends = left[0].at, right[0].at
            at = float(_between(ends, np.array([gaps[0]]), np.array([gaps[1]]))[0])
            found.append(Crossing(first, second, at, *_uncertainty(ends, corners, scale, seed)))
    return sorted(found, key=lambda crossing: crossing.at)


def _scale(values: Sequence[float]) -> bool:
    """Whether values are compared by their logarithms."""
    return min(values) > 0


def _gap(pair: tuple[CurvePoint, CurvePoint], logarithmic: bool) -> float:
    first, second = (point.estimate.value for point in pair)
    return math.log(first / second) if logarithmic else first - second


def _between(ends: tuple[float, float], left: Numbers, right: Numbers) -> Numbers:
    """Where a straight line from `left` to `right` is zero, on a logarithmic axis where both ends are positive."""
    share = left / (left - right)
    if min(ends) <= 0:
        return np.asarray(ends[0] + share * (ends[1] - ends[0]), dtype=np.float64)
    low, high = (float(log(np.array([end]))[0]) for end in ends)
    return exp_of(low + share * (high - low))


def _uncertainty(
    ends: tuple[float, float], corners: Sequence[CurvePoint], logarithmic: bool, seed: int
) -> tuple[float | None, float | None, float | None]:
    """(lower, upper, share of the resamples that cross), from blocks that all four cases have."""
    blocks = sorted(set.intersection(*(set(point.values) for point in corners)))
    if len(blocks) < LEAST_BLOCKS:
        return None, None, None
    table = np.array([[point.values[block] for block in blocks] for point in corners])
    if logarithmic and table.min() > 0:
        table = log(table)
    drawn = np.random.default_rng(seed).integers(0, len(blocks), (RESAMPLES, len(blocks)))
    means = table[:, drawn].mean(axis=2)
    left, right = means[0] - means[1], means[2] - means[3]
    crosses = left * right < 0
    share = float(crosses.mean())
    if share < LEAST_SHARE:
        return None, None, share
    tail = 100 * (1 - CONFIDENCE) / 2
    lower, upper = np.percentile(_between(ends, left[crosses], right[crosses]), (tail, 100 - tail))
    return float(lower), float(upper), share
