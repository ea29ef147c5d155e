# SPDX-License-Identifier: Apache-2.0
"""Inputs of a scenario that a campaign has measured: joules of the GPUs, or of the CPU or the module where these serve.

A scenario adds the rest of the node as a share of what it calls processors, so all its joules are of one part.
"""

from __future__ import annotations

from collections.abc import Mapping

from pybench.analysis.estimate import Estimate
from pybench.catalogue.metrics import METRICS, Metric
from pybench.dataset import Dataset
from pybench.errors import UsageError
from pybench.projection.distributions import Distribution, lognormal_of
from pybench.projection.scenario import FleetScenario, Measured

PARTS: Mapping[str, str] = {
    "gpu_energy_j": "the GPUs",
    "cpu_energy_j": "the CPU",
    "module_energy_j": "the module",
}
"""Total -> the part of a node that it is of. Idle power is in each of them."""


def part_of(metric: Metric) -> str | None:
    """The part of a node whose energy of a token a metric is; None: it is no such energy, or one without idle power."""
    is_of_a_token = metric.unit == "J" and "token" in (metric.per or "")
    return PARTS.get(metric.of or "") if is_of_a_token else None


def resolve(scenario: FleetScenario, dataset: Dataset | None) -> dict[str, Distribution]:
    """Each input's distribution, by the names of `INPUTS`. Raises UsageError for what the campaign does not tell, and
    for joules of two parts."""
    resolved = {}
    _refuse_two_parts(scenario)
    for name, assumption in scenario.inputs.items():
        if assumption.distribution is not None:
            resolved[name] = assumption.distribution
        elif assumption.measured is not None:
            resolved[name] = _measured(name, assumption.measured, dataset)
    return resolved


def _measured(name: str, asked: Measured, dataset: Dataset | None) -> Distribution:
    from pybench.analysis.cases import describe_cases
    from pybench.analysis.measurements import collect
    from pybench.analysis.units import collect_units

    if dataset is None:
        raise UsageError(f"{name} is measured, and no campaign is given", hint="pybench project DIR SCENARIO")
    case = dataset.plan.named(asked.case)
    metrics = case.catalogue.metrics
    fitting = [row.name for row in metrics.values() if part_of(row)]
    if asked.metric not in fitting:
        raise UsageError(
            f"{name}: {asked.metric} is no energy of a token, idle power included", hint=f"one of {', '.join(fitting)}"
        )
    measurements = collect(dataset)
    findings = describe_cases(dataset, measurements, collect_units(dataset, measurements))
    found = next(finding for finding in findings if finding.case.id == case.id).metrics.get(asked.metric)
    if found is None or found.estimate is None:
        why = measurements.why_empty(case.id, asked.metric) if found is None else found.why_none
        hint = "name a case that has it, or write the number in the scenario"
        raise UsageError(f"{name}: {case.title()} has no {asked.metric}: {why}", hint=hint)
    return _distribution(found.estimate, found.absolute_95)


def _refuse_two_parts(scenario: FleetScenario) -> None:
    """A metric without a row is refused when its case is known."""
    asked = {name: each.measured.metric for name, each in scenario.inputs.items() if each.measured is not None}
    parts = {name: part_of(METRICS[metric]) for name, metric in asked.items() if metric in METRICS}
    told = [f"{name} is of {part}" for name, part in parts.items() if part is not None]
    if len(set(filter(None, parts.values()))) > 1:
        raise UsageError(f"{', and '.join(told)}", hint="measure both on one part of the node, or write the numbers")


def _distribution(estimate: Estimate, absolute_95: float | None) -> Distribution:
    """The mean with all that is unknown of it, the board's gain included; of one run without interval a number."""
    if absolute_95 is not None:
        ratio = 1 + absolute_95 / estimate.value
        return lognormal_of(estimate.value, estimate.value / ratio, estimate.value * ratio)
    if estimate.lower is None or estimate.upper is None or estimate.upper <= estimate.lower:
        return Distribution("value", (estimate.value,))
    return lognormal_of(estimate.value, estimate.value**2 / estimate.upper, estimate.upper)
