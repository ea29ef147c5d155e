# SPDX-License-Identifier: Apache-2.0
"""Inputs of a scenario that a campaign has measured."""

from __future__ import annotations

from pybench.analysis.estimate import Estimate
from pybench.catalogue.metrics import Metric
from pybench.dataset import Dataset
from pybench.errors import UsageError
from pybench.projection.distributions import Distribution, lognormal_of
from pybench.projection.scenario import FleetScenario, Measured


def resolve(scenario: FleetScenario, dataset: Dataset | None) -> dict[str, Distribution]:
    """Each input's distribution, by the names of `INPUTS`. Raises UsageError for what the campaign does not tell."""
    resolved = {}
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
    fitting = [row.name for row in metrics.values() if _is_of_gpus(row)]
    if asked.metric not in fitting:
        raise UsageError(f"{name}: {asked.metric} is no GPU energy of a token", hint=f"one of {', '.join(fitting)}")
    measurements = collect(dataset)
    findings = describe_cases(dataset, measurements, collect_units(dataset, measurements))
    found = next(finding for finding in findings if finding.case.id == case.id).metrics.get(asked.metric)
    if found is None or found.estimate is None:
        why = measurements.why_empty(case.id, asked.metric) if found is None else found.why_none
        hint = "name a case that has it, or write the number in the scenario"
        raise UsageError(f"{name}: {case.title()} has no {asked.metric}: {why}", hint=hint)
    return _distribution(found.estimate, found.absolute_95)


def _is_of_gpus(metric: Metric) -> bool:
    """Whether it is what a scenario calls the energy of a token: that of the GPUs, idle power included."""
    return metric.unit == "J" and metric.of == "gpu_energy_j" and "token" in (metric.per or "")


def _distribution(estimate: Estimate, absolute_95: float | None) -> Distribution:
    """The mean with all that is unknown of it, the board's gain included; of one run without interval a number."""
    if absolute_95 is not None:
        ratio = 1 + absolute_95 / estimate.value
        return lognormal_of(estimate.value, estimate.value / ratio, estimate.value * ratio)
    if estimate.lower is None or estimate.upper is None or estimate.upper <= estimate.lower:
        return Distribution("value", (estimate.value,))
    return lognormal_of(estimate.value, estimate.value**2 / estimate.upper, estimate.upper)
