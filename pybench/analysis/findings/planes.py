# SPDX-License-Identifier: Apache-2.0
"""Trade-offs of a model: its cases by two numbers, and which of them no other one beats.

Only cases of the same work compete. Another length of sequence, another cache or other data is other work
(`Factor.sets_work`). Latencies of two kinds (between the GPU's events, or as the host sees them) show no win.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pybench.analysis.findings.cases import CaseFinding
from pybench.analysis.statistics.dominance import find_beaten
from pybench.analysis.statistics.estimate import Estimate
from pybench.case import Case
from pybench.case.pairing import is_judged, join_key
from pybench.catalogue.metrics import Metric
from pybench.catalogue.planes import PLANES, Plane

LATENCY = "latency_mean_ms"


@dataclass(frozen=True, slots=True)
class JoinedSpeed:
    """A case that has a latency, with the accuracies of the same answers: one where all of them agree."""

    speed: CaseFinding
    accuracies: tuple[CaseFinding, ...]

    @property
    def headline(self) -> str:
        """The metric of its accuracies."""
        return str(self.accuracies[0].case.headline)

    @property
    def ids(self) -> tuple[str, ...]:
        """Of its cases."""
        return (self.speed.case.id, *(accuracy.case.id for accuracy in self.accuracies))


@dataclass(frozen=True, slots=True)
class PlanePoint:
    """One case in a plane.

    accuracy: the case that one of its numbers is of; None: both are its own
    latencies: the kinds of its latency
    beaten_by: the case that beats it; None: none does, or its place is `open`
    is_shown: whether intervals show that it is beaten
    is_open: several accuracies belong to the case, so nobody can say which is its own
    """

    case: Case
    accuracy: Case | None
    x: Estimate
    y: Estimate
    latencies: frozenset[str]
    beaten_by: Case | None = None
    is_shown: bool = False
    is_open: bool = False

    @property
    def is_on_front(self) -> bool:
        return self.beaten_by is None and not self.is_open

    @property
    def cases(self) -> tuple[Case, ...]:
        return (self.case,) if self.accuracy is None else (self.case, self.accuracy)


@dataclass(frozen=True, slots=True)
class PlaneFinding:
    """The cases of one model in one plane."""

    plane: Plane
    model: str
    x: Metric
    y: Metric
    points: tuple[PlanePoint, ...]


def speeds_with_accuracies(cases: Sequence[CaseFinding]) -> list[JoinedSpeed]:
    """Every infer case that has a latency and at least one accuracy of the same answers."""
    return [one for one in _joined(cases) if one.accuracies and _estimate(one.speed, LATENCY)]


def find_planes(cases: Sequence[CaseFinding]) -> tuple[PlaneFinding, ...]:
    """Every plane in which cases of one model differ in both numbers, by plane and then by model."""
    models: dict[str, list[JoinedSpeed]] = {}
    for one in _joined(cases):
        models.setdefault(str(one.speed.case.model), []).append(one)
    found = [_plane(plane, model, joined) for plane in PLANES.values() for model, joined in models.items()]
    return tuple(one for one in found if one is not None and _varies(one.points))


def _estimate(case: CaseFinding, name: str | None) -> Estimate | None:
    """None where the case has no such number."""
    finding = None if name is None else case.metrics.get(name)
    return None if finding is None else finding.estimate


def _joined(cases: Sequence[CaseFinding]) -> list[JoinedSpeed]:
    accuracies: dict[tuple[object, ...], dict[object, CaseFinding]] = {}
    for case in cases:
        if case.case.workload_row.judges is not None and (found := _estimate(case, case.case.headline)):
            different = accuracies.setdefault(join_key(case.case), {})
            different.setdefault((found.value, found.lower, found.upper), case)
    speeds = [case for case in cases if is_judged(case.case)]
    return [JoinedSpeed(case, tuple(accuracies.get(join_key(case.case), {}).values())) for case in speeds]


def _plane(plane: Plane, model: str, joined: Sequence[JoinedSpeed]) -> PlaneFinding | None:
    has_accuracy = not (plane.x and plane.y)
    joined = [one for one in joined if one.accuracies] if has_accuracy else joined
    if not joined:
        return None
    x, y = (_metric(names, joined) for names in (plane.x, plane.y))
    if x is None or y is None:
        return None
    points = []
    for one in joined:
        for accuracy in one.accuracies if has_accuracy else (None,):
            at_x = _estimate(one.speed if plane.x or accuracy is None else accuracy, x.name)
            at_y = _estimate(one.speed if plane.y or accuracy is None else accuracy, y.name)
            if at_x is not None and at_y is not None:
                case = None if accuracy is None else accuracy.case
                is_open = has_accuracy and len(one.accuracies) > 1
                points.append(PlanePoint(one.speed.case, case, at_x, at_y, one.speed.latencies, is_open=is_open))
    return PlaneFinding(plane, model, x, y, _judged(points, plane, x, y))


def _metric(names: Sequence[str], joined: Sequence[JoinedSpeed]) -> Metric | None:
    """The first of `names` that a case has a number of; without names that of the accuracies."""
    if not names:
        accuracy = joined[0].accuracies[0]
        return accuracy.metrics[joined[0].headline].metric
    found = (one.speed.metrics[name].metric for name in names for one in joined if _estimate(one.speed, name))
    return next(found, None)


def _judged(points: Sequence[PlanePoint], plane: Plane, x: Metric, y: Metric) -> tuple[PlanePoint, ...]:
    """The points, each with the case of its own work that beats it."""
    judged = list(points)
    groups: dict[tuple[object, ...], list[int]] = {}
    for place, point in enumerate(points):
        if not point.is_open:
            groups.setdefault(_work(point.case, plane), []).append(place)
    higher = (x.better == "higher", y.better == "higher")
    for members in groups.values():
        found = find_beaten([(points[place].x, points[place].y) for place in members], higher=higher)
        for place, beaten in zip(members, found, strict=True):
            if beaten is not None:
                by = points[members[beaten.by]]
                is_shown = beaten.is_shown and (LATENCY not in plane.x or by.latencies == points[place].latencies)
                judged[place] = replace(points[place], beaten_by=by.case, is_shown=is_shown)
    return tuple(judged)


def _work(case: Case, plane: Plane) -> tuple[object, ...]:
    factors = case.own_factors().items()
    return tuple(
        (name, case.value(name))
        for name, factor in factors
        if factor.sets_work or (plane.by_iteration and factor.sizes_iteration)
    )


def _varies(points: Sequence[PlanePoint]) -> bool:
    return len({point.x.value for point in points}) > 1 and len({point.y.value for point in points}) > 1
