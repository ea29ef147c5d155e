# SPDX-License-Identifier: Apache-2.0
"""Inputs of a scenario that a campaign has measured."""

from __future__ import annotations

from pybench.analysis.cases import MetricFinding
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
    from pybench.analysis.images import collect_images
    from pybench.analysis.measurements import collect

    if dataset is None:
        raise UsageError(f"{name} is measured, and no campaign is given", hint="pybench project DIR SCENARIO")
    case = dataset.plan.named(asked.case)
    metric = case.catalogue.metrics.get(asked.metric)
    if metric is None or metric.unit != "J" or "token" not in (metric.per or ""):
        energies = [
            row.name for row in case.catalogue.metrics.values() if row.unit == "J" and "token" in (row.per or "")
        ]
        raise UsageError(f"{name}: {asked.metric} is no energy of a token", hint=f"one of {', '.join(energies)}")
    measurements = collect(dataset)
    findings = describe_cases(dataset, measurements, collect_images(dataset, measurements))
    found = next(finding for finding in findings if finding.case.id == case.id).metrics.get(asked.metric)
    if found is None or found.estimate is None:
        why = measurements.why_empty(case.id, asked.metric) if found is None else found.why_none
        raise UsageError(f"{name}: {case.title()} has no {asked.metric}: {why}")
    return _distribution(found)


def _distribution(found: MetricFinding) -> Distribution:
    """The mean with all that is unknown of it, the board's gain included; of one run without interval a number."""
    estimate = found.estimate
    assert estimate is not None
    if found.absolute_95 is not None:
        ratio = 1 + found.absolute_95 / estimate.value
        return lognormal_of(estimate.value, estimate.value / ratio, estimate.value * ratio)
    if estimate.lower is None or estimate.upper is None or estimate.upper <= estimate.lower:
        return Distribution("value", (estimate.value,))
    return lognormal_of(estimate.value, estimate.value**2 / estimate.upper, estimate.upper)
