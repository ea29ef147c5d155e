# SPDX-License-Identifier: Apache-2.0
"""Inputs of a scenario that a campaign has measured: joules of the GPUs, or of the CPU or the module where these serve.

A scenario adds the rest of the node as a share of what it calls processors, so all its joules are of one part.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pybench.analysis.statistics.estimate import NORMAL_95, SCATTERED, WIDE, Estimate
from pybench.case import catalogue_of
from pybench.case.yields import metrics_of
from pybench.catalogue.catalogue import BUILT_IN, Catalogue
from pybench.catalogue.metrics import Metric
from pybench.dataset import Dataset
from pybench.errors import ScenarioError, UsageError
from pybench.projection.distributions import Distribution, lognormal_of
from pybench.projection.scenario import COMMON_GAIN, FleetScenario, Measured

if TYPE_CHECKING:
    from pybench.analysis.findings.cases import CaseFinding

WHOLE_NODE = "the whole node"
PARTS: Mapping[str, str] = {
    "gpu_energy_j": "the GPUs",
    "cpu_energy_j": "the CPU",
    "module_energy_j": "the module",
    "node_energy_j": WHOLE_NODE,
}
"""Total -> the part of a node that it is of. Idle power is in each of them."""


_REST = "node.other_power_ratio"
_NO_SENSOR: Mapping[str, str] = {
    "module_energy_j": "its machine has no power rails that make up a module",
    "node_energy_j": "its machine has no counter of the node",
}


def part_of(metric: Metric) -> str | None:
    """The part of a node whose energy of a token a metric is; None: it is no such energy, or one without idle power."""
    is_of_a_token = metric.unit == "J" and "token" in (metric.per or "")
    return PARTS.get(metric.of or "") if is_of_a_token else None


def resolve(scenario: FleetScenario, dataset: Dataset | None) -> dict[str, Distribution]:
    """Each input's distribution, by the names of `INPUTS`; and that of `COMMON_GAIN`, where two energies have one.

    Raises ScenarioError for everything that the campaign does not tell, each with its place. It also is raised for
    joules of two parts, and for those of a whole node to which the rest of the node would be added.
    Raises UsageError where inputs are measured and there is no campaign.
    """
    assumed = scenario.inputs
    asked = {name: each.measured for name, each in assumed.items() if each.measured is not None}
    known = BUILT_IN if dataset is None else catalogue_of(dataset.cases.values())
    _refuse_two_parts(asked, scenario.file, known)
    given = {name: each.distribution for name, each in assumed.items() if each.distribution is not None}
    if given.get(_REST) != Distribution("value", (0.0,)):
        _refuse_whole_nodes(asked, scenario.file, known)
    return given | (_measured(asked, dataset, scenario.file) if asked else {})


def _measured(asked: Mapping[str, Measured], dataset: Dataset | None, file: str) -> dict[str, Distribution]:
    from pybench.analysis.findings.cases import describe_cases
    from pybench.analysis.measurements import collect
    from pybench.analysis.units import collect_units

    if dataset is None:
        raise UsageError(
            f"{next(iter(asked))} is measured, and no campaign is given", hint="pybench project DIR SCENARIO"
        )
    measurements = collect(dataset)
    findings = {one.case.id: one for one in describe_cases(dataset, measurements, collect_units(dataset, measurements))}
    told: dict[str, _Told] = {}
    problems = []
    for name, one in asked.items():
        try:
            told[name] = _tell(findings, one, dataset)
        except UsageError as error:
            problems.append(one.place.problem(f"`{name}`: {error.message}", error.hint))
    if problems:
        raise ScenarioError(file, problems)
    return _distributions(told)


@dataclass(frozen=True, slots=True)
class _Told:
    """What a campaign says of one input: its mean, and half a 95 % interval of the logarithm of each unknown in it.

    scatter: over the repetitions
    gain: of the board that measured it
    """

    value: float
    scatter: float
    gain: float


def _tell(findings: Mapping[str, CaseFinding], asked: Measured, dataset: Dataset) -> _Told:
    """What the campaign says of one input. Raises UsageError where it says nothing.

    A draw is no test, so its interval has 95 % also in a campaign whose intervals allow for looks.
    """
    from pybench.analysis.findings.cases import estimate_of

    finding = findings[dataset.plan.named(asked.case, dataset.campaign.path).id]
    metrics = finding.case.catalogue.metrics
    fitting = [row.name for row in metrics.values() if part_of(row)]
    if asked.metric not in fitting:
        raise UsageError(
            f"{asked.metric} is no energy of a token, idle power included", hint=f"one of {', '.join(fitting)}"
        )
    found = finding.metrics.get(asked.metric)
    estimate = None if found is None else estimate_of(found.metric, list(found.points.values()))
    if found is None or estimate is None:
        known = [name for name, one in finding.metrics.items() if name in fitting and one.estimate is not None]
        instead = f"use {' or '.join(known)} of this case" if known else "name a case that has it"
        raise UsageError(
            f"{finding.case.title()} has no {asked.metric}: {_why_none(finding, metrics[asked.metric])}",
            hint=f"{instead}, or write the joules of a token, as in `uniform: [0.1, 0.3]`",
        )
    if estimate.method == WIDE:
        raise UsageError(
            f"{asked.metric} of {finding.case.title()}: {SCATTERED}",
            hint="run more repetitions, or write the joules of a token, as in `uniform: [0.1, 0.3]`",
        )
    return _told_by(estimate, found.u_absolute)


def _why_none(finding: CaseFinding, metric: Metric) -> str:
    """Why a case has no value of a metric: what its runs say of it, else what they are."""
    found = finding.metrics.get(metric.name)
    if found is not None and found.why_none is not None:
        return found.why_none
    if not finding.outcomes:
        return "it has no finished run"
    if "ok" not in finding.outcomes:
        (outcome, why), _ = max(finding.failures.items(), key=lambda failure: failure[1])
        return f"{outcome}: {why}"
    possible = metrics_of(finding.case)
    if metric.name not in possible:
        rows = (row for name, row in finding.case.catalogue.metrics.items() if name in possible)
        others = " and ".join(row.name for row in rows if part_of(row) and row.of == metric.of)
        return f"workload {finding.case.workload} measures {others or 'no energy of a token'}"
    if finding.devices == {"cpu"} and metric.of == "gpu_energy_j":
        return "its runs used the CPU and no GPU"
    return _NO_SENSOR.get(metric.of or "", "not measured")


def _refuse_two_parts(asked: Mapping[str, Measured], file: str, known: Catalogue) -> None:
    """A metric without a row is refused when its case is known."""
    parts = {name: part_of(known.metrics[one.metric]) for name, one in asked.items() if one.metric in known.metrics}
    told = [f"{name} is of {part}" for name, part in parts.items() if part is not None]
    if len(set(filter(None, parts.values()))) > 1:
        place = asked[list(parts)[-1]].place
        hint = "measure both on one part of the node, or write the numbers"
        raise ScenarioError(file, [place.problem(", and ".join(told), hint)])


def _refuse_whole_nodes(asked: Mapping[str, Measured], file: str, known: Catalogue) -> None:
    for name, one in asked.items():
        if one.metric in known.metrics and part_of(known.metrics[one.metric]) == WHOLE_NODE:
            what = f"`{name}` is of {WHOLE_NODE}, and `{_REST}` would add the rest of it again"
            raise ScenarioError(file, [one.place.problem(what, "write `other_power_ratio: 0`")])


def _told_by(estimate: Estimate, u_absolute: float | None) -> _Told:
    """Of one run without interval, the scatter is 0."""
    value, lower, upper = estimate.value, estimate.lower, estimate.upper
    scatter = 0.0
    if lower is not None and upper is not None and upper > lower:
        scatter = math.log(upper / lower) / 2 if lower > 0 else math.log(upper / value)
    return _Told(value, scatter, math.log1p(NORMAL_95 * u_absolute / value) if u_absolute else 0.0)


def _distributions(told: Mapping[str, _Told]) -> dict[str, Distribution]:
    """The means with all that is unknown of them, by input; a number where nothing is.

    Scatter and gain add in squares on the logarithmic scale, on which both are drawn. What two energies have in common
    is an input of its own: drawn twice, it would partly average out.
    """
    common = _common(list(told.values()))
    found = {}
    for name, one in told.items():
        half = math.sqrt(max(one.scatter**2 + one.gain**2 - common**2, 0.0))
        found[name] = lognormal_of(one.value, half) if half else Distribution("value", (one.value,))
    return found | ({COMMON_GAIN: lognormal_of(1.0, common)} if common else {})


def _common(told: Sequence[_Told]) -> float:
    """Half a 95 % interval of what all energies have in common: the board's gain; of one measurement, all of it."""
    if len(told) < 2:
        return 0.0
    if len(set(told)) == 1:
        return math.hypot(told[0].scatter, told[0].gain)
    return min(one.gain for one in told)
