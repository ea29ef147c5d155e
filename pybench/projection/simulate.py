# SPDX-License-Identifier: Apache-2.0
"""From joules a token to the energy of a query and of a fleet, by Monte Carlo.

    E_query = (n_in e_in + n_out e_out) (1 + idle (1 - u) / u) (1 + other) PUE

n: tokens. e: energy of the processors for a token while they serve. u: utilisation, the share of the time in which they
serve; in the rest they take `idle` times the power, which the served queries have to carry. `other`: power of the rest
of the node over that of its processors.

Tokens vary from query to query, which averages out over a fleet. Everything else is one unknown value for all queries
of a fleet, which does not. So the quartiles of a query have both, and the interval of a fleet only the latter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pybench.errors import UsageError
from pybench.projection.distributions import Distribution
from pybench.projection.scenario import INPUTS, USUAL, FleetScenario

JOULES_PER_WH = 3600.0
SOBOL_POINTS = 2**13  # base points of the sensitivity; a power of two, as Sobol's sequence needs
FLEET_PROBABILITY = 0.95

Floats = NDArray[np.float64]
Draws = Mapping[str, Floats]


@dataclass(frozen=True, slots=True)
class QuerySummary:
    """Energy of one kind of query. `ratio`: its median over that of the usual query."""

    name: str
    median_wh: float
    quartiles_wh: tuple[float, float]
    mean_wh: float
    median_g: float
    ratio: float


@dataclass(frozen=True, slots=True)
class FleetSummary:
    """A fleet on one day: medians with central 95 % intervals, in GWh and in tonnes of CO2 equivalent."""

    name: str
    energy_gwh: float
    energy_interval_gwh: tuple[float, float]
    carbon_t: float
    carbon_interval_t: tuple[float, float]


@dataclass(frozen=True, slots=True)
class InputShare:
    """Sobol indices of one input on the logarithm of the energy of a usual query.

    first: the part of the variance that goes away where this input is known
    total: the part that stays where only this input is unknown
    """

    name: str
    first: float
    total: float


@dataclass(frozen=True, slots=True)
class Projection:
    """The results of a scenario. `inputs`: what each was taken to be; `energies_wh`: of each kind of query, by draw."""

    scenario: FleetScenario
    inputs: Mapping[str, Distribution]
    queries: tuple[QuerySummary, ...]
    fleets: tuple[FleetSummary, ...]
    shares: tuple[InputShare, ...]
    energies_wh: Mapping[str, Floats]

    def result(self, name: str) -> tuple[float, tuple[float, float] | None]:
        """The value of `query.NAME` in Wh, `ratio.NAME` or `fleet.NAME` in GWh, with quartiles or interval."""
        kind, _, of = name.partition(".")
        if kind == "fleet":
            fleet = next(one for one in self.fleets if one.name == of)
            return fleet.energy_gwh, fleet.energy_interval_gwh
        query = next(one for one in self.queries if one.name == of)
        return (query.ratio, None) if kind == "ratio" else (query.median_wh, query.quartiles_wh)

    def as_json(self) -> dict[str, Any]:
        return {
            "scenario": self.scenario.name,
            "seed": self.scenario.seed,
            "draws": self.scenario.draws,
            "queries": [
                {
                    "name": one.name,
                    "median_wh": one.median_wh,
                    "quartiles_wh": list(one.quartiles_wh),
                    "mean_wh": one.mean_wh,
                    "median_g": one.median_g,
                    "ratio": one.ratio,
                }
                for one in self.queries
            ],
            "fleets": [
                {
                    "name": one.name,
                    "energy_gwh_per_day": one.energy_gwh,
                    "energy_interval_gwh_per_day": list(one.energy_interval_gwh),
                    "carbon_g_per_day": one.carbon_t * 1e6,
                    "carbon_interval_g_per_day": [bound * 1e6 for bound in one.carbon_interval_t],
                }
                for one in self.fleets
            ],
            "shares": [{"input": one.name, "first": one.first, "total": one.total} for one in self.shares],
        }


def simulate(scenario: FleetScenario, inputs: Mapping[str, Distribution]) -> Projection:
    """Draws every input and computes the energies. `inputs`: by the names of `INPUTS`, measured ones included.

    Raises UsageError where a query can need no energy: it has no logarithm, and nothing is a multiple of it.
    """
    generator = np.random.default_rng(scenario.seed)
    draws = {name: inputs[name].ppf(generator.random(scenario.draws)) for name in INPUTS}
    factors = {USUAL: {}, **{variant.name: variant.numbers for variant in scenario.variants}}
    energies = {name: _energy_wh(_scaled(draws, by)) for name, by in factors.items()}
    free = [name for name, values in energies.items() if values.min() <= 0]
    if free:
        what = f"scenario {scenario.name}: some queries of `{free[0]}` need no energy"
        raise UsageError(what, hint="give tokens and joules above 0")
    usual_wh = float(np.median(energies[USUAL]))
    queries = tuple(_query(name, values, draws, usual_wh) for name, values in energies.items())
    means = {name: _mean_energy_wh(_scaled(draws, by)) for name, by in factors.items()}
    fleets = tuple(_fleet(mix.name, mix.numbers, means, draws) for mix in scenario.mixes)
    return Projection(scenario, inputs, queries, fleets, _shares(inputs, scenario.seed), energies)


def _energy_wh(draws: Draws) -> Floats:
    tokens_j = (
        draws["query.input_tokens"] * draws["energy.input_token_j"]
        + draws["query.output_tokens"] * draws["energy.output_token_j"]
    )
    return np.asarray(tokens_j * _overhead(draws) / JOULES_PER_WH)


def _overhead(draws: Draws) -> Floats:
    """What one joule of serving processors becomes at the meter of the site."""
    used = draws["node.utilisation"]
    idle = 1 + draws["node.idle_power_ratio"] * (1 - used) / used
    return np.asarray(idle * (1 + draws["node.other_power_ratio"]) * draws["site.pue"])


def _mean_energy_wh(draws: Draws) -> Floats:
    """Mean over a fleet's queries, for each draw of what is one value for the fleet."""
    means = {
        name: np.full_like(values, values.mean()) if INPUTS[name].varies_by_query else values
        for name, values in draws.items()
    }
    return _energy_wh(means)


def _scaled(draws: Draws, factors: Mapping[str, float]) -> Draws:
    """Draws of a variant: the same ones, each times its factor."""
    return {name: values * factors.get(name, 1.0) for name, values in draws.items()}


def _query(name: str, energies_wh: Floats, draws: Draws, usual_wh: float) -> QuerySummary:
    low, median, high = (float(value) for value in np.quantile(energies_wh, [0.25, 0.5, 0.75]))
    grams = energies_wh / 1000 * draws["site.carbon_g_per_kwh"]
    return QuerySummary(
        name, median, (low, high), float(energies_wh.mean()), float(np.median(grams)), median / usual_wh
    )


def _fleet(name: str, mix: Mapping[str, float], means_wh: Draws, draws: Draws) -> FleetSummary:
    per_query_wh = sum((share * means_wh[query] for query, share in mix.items()), np.zeros(1))
    energy_gwh = per_query_wh * draws["fleet.queries_per_day"] / 1e9
    carbon_t = energy_gwh * draws["site.carbon_g_per_kwh"]  # 1e6 kWh in a GWh, 1e6 g in a tonne
    return FleetSummary(name, *_central(energy_gwh), *_central(carbon_t))


def _central(values: Floats) -> tuple[float, tuple[float, float]]:
    outside = (1 - FLEET_PROBABILITY) / 2
    low, median, high = (float(value) for value in np.quantile(values, [outside, 0.5, 1 - outside]))
    return median, (low, high)


def _shares(inputs: Mapping[str, Distribution], seed: int) -> tuple[InputShare, ...]:
    """By the estimators of Saltelli and others (2010), as scipy has them; the largest share first."""
    from scipy import stats

    names = [row.name for row in INPUTS.values() if row.counts_for_a_query and not inputs[row.name].is_constant]
    fixed = {name: inputs[name].ppf(np.array([0.5])) for name in INPUTS if name not in names}
    if len(names) < 2:
        return tuple(InputShare(name, 1.0, 1.0) for name in names)  # scipy takes two or more

    def logarithm(points: Floats) -> Floats:
        drawn = dict(zip(names, points, strict=True))
        return np.log(_energy_wh({**fixed, **drawn}))[None, :]

    found = stats.sobol_indices(
        func=logarithm, n=SOBOL_POINTS, dists=[inputs[name] for name in names], rng=np.random.default_rng(seed)
    )
    firsts, totals = np.ravel(found.first_order), np.ravel(found.total_order)
    shares = [InputShare(*one) for one in zip(names, firsts.tolist(), totals.tolist(), strict=True)]
    return tuple(sorted(shares, key=lambda share: -share.total))
