# SPDX-License-Identifier: Apache-2.0
"""A metric, or its ratio to a baseline, over a numeric factor: one line for each group of cases, and where lines cross.

Cases of one line are equal in everything but the factor. Where lines cross is `pybench.analysis.findings.crossings`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pybench.analysis.comparability import SoftwareComparisons
from pybench.analysis.findings.cases import CaseFinding
from pybench.analysis.findings.contrasts import ContrastFinding, PairEffect
from pybench.analysis.findings.crossings import Crossing, CurveLine, CurvePoint, find_crossings
from pybench.analysis.statistics.estimate import Estimate
from pybench.case import Case, catalogue_of
from pybench.case.contrasts import Contrast
from pybench.case.curves import LEAST_VALUES, PlannedCurve
from pybench.case.factors import factor_named, is_idle
from pybench.catalogue.catalogue import Catalogue
from pybench.catalogue.criteria import compared_of
from pybench.catalogue.metrics import Metric

_NAMING = frozenset({"build", "fixed_batch"})  # numbers that tell cases apart, and measure nothing


@dataclass(frozen=True, slots=True)
class Curve:
    """One figure: a metric over a factor.

    contrast: None: the metric itself is drawn, and no ratio or difference
    inverse: the ratio is that of the baseline over the case
    lines: one for each group of cases
    """

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
                    "is_shown": one.is_shown,
                    "blocks": one.blocks,
                    "blocks_excluded": one.blocks_excluded,
                }
                for one in self.crossings
            ],
        }


def find_curves(
    cases: Sequence[CaseFinding],
    contrasts: Sequence[ContrastFinding],
    planned: Sequence[PlannedCurve],
    software: SoftwareComparisons,
) -> tuple[Curve, ...]:
    """The curves that the plan asks for; without them, the headline of each workload and each judged ratio, over every
    numeric factor with three values."""
    wanted = planned or [PlannedCurve(name, None) for name in _numeric_factors([case.case for case in cases])]
    compared = [frozenset(one.contrast.baseline) for one in contrasts]
    found: list[Curve] = []
    for one in wanted:
        found += _of_metrics(one, cases, software, compared)
        found += _of_ratios(one, contrasts)
    return tuple(found)


def _of_metrics(
    wanted: PlannedCurve,
    cases: Sequence[CaseFinding],
    software: SoftwareComparisons,
    compared: Sequence[frozenset[str]],
) -> list[Curve]:
    groups: dict[tuple[str, str], dict[tuple[Any, ...], list[CurvePoint]]] = {}
    for case in cases:
        name = case.case.headline if wanted.metric is None else wanted.metric
        finding = None if name is None else case.metrics.get(name)
        at = _place(case.case, wanted.over)
        if name is None or finding is None or finding.estimate is None or at is None:
            continue
        lines = groups.setdefault((case.case.workload, name), {})
        point = CurvePoint(at, case.case, finding.estimate, {} if finding.over_units else finding.points)
        lines.setdefault(_line_key(case.case, wanted.over), []).append(point)
    found = []
    for (workload, name), lines in groups.items():
        drawn = _lines(lines)
        if drawn:
            metric = drawn[0].case.catalogue.metrics[name]
            crossings = find_crossings(drawn, metric, software, wanted.over, compared)
            found.append(Curve(wanted.over, workload, metric, None, False, drawn, crossings))
    return found


def _of_ratios(wanted: PlannedCurve, contrasts: Sequence[ContrastFinding]) -> list[Curve]:
    found = []
    for contrast in contrasts:
        if wanted.over in contrast.contrast.baseline:
            continue
        catalogue = catalogue_of(pair.pair.case for pair in contrast.pairs)
        for metric, inverse in _ratios(wanted, contrast.contrast, catalogue):
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


def _ratios(wanted: PlannedCurve, contrast: Contrast, catalogue: Catalogue) -> list[tuple[str, bool]]:
    """(metric, inverse) of what a curve shows of a comparison: the named ratio, or every ratio that is judged."""
    if wanted.metric is None:
        return [(one.metric, one.inverse) for one in contrast.accept if one.kind == "ratio"]
    kind = compared_of(catalogue).get(wanted.metric)
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
