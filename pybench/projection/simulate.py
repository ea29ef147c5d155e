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

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pybench.errors import UsageError
from pybench.projection.distributions import Distribution
from pybench.projection.scenario import COMMON_GAIN, INPUTS, USUAL, FleetScenario, NamedNumbers

JOULES_PER_WH = 3600.0
SOBOL_POINTS = 2**13  # base points of the sensitivity; a power of two, as Sobol's sequence needs
FLEET_PROBABILITY = 0.95
_PERCENT = f"{100 * FLEET_PROBABILITY:.0f}"

Floats = NDArray[np.float64]
Draws = Mapping[str, Floats]
Inputs = Mapping[str, Distribution]


@dataclass(frozen=True, slots=True)
class QuerySummary:
    """Energy of one kind of query. `ratio`: its median over that of the usual query, one number for all draws."""

    name: str
    median_wh: float
    quartiles_wh: tuple[float, float]
    mean_wh: float
    median_g: float
    quartiles_g: tuple[float, float]
    ratio: float


@dataclass(frozen=True, slots=True)
class InputShare:
    """Sobol indices of one input on the logarithm of an energy.

    first: the part of the variance that goes away where this input is known
    total: the part that stays where only this input is unknown
    """

    name: str
    first: float
    total: float


@dataclass(frozen=True, slots=True)
class FleetSummary:
    """A fleet on one day: medians with central 95 % intervals, in GWh and in tonnes of CO2 equivalent.

    shares: of its energy, by each input that is one value for all its queries
    """

    name: str
    energy_gwh: float
    energy_interval_gwh: tuple[float, float]
    carbon_t: float
    carbon_interval_t: tuple[float, float]
    shares: tuple[InputShare, ...]


@dataclass(frozen=True, slots=True)
class Projection:
    """The results of a scenario.

    inputs: what each was taken to be
    shares: of the energy of a usual query
    energies_wh: of each kind of query, by draw
    """

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
                    "quartiles_g": list(one.quartiles_g),
                    "ratio": one.ratio,
                }
                for one in self.queries
            ],
            "fleets": [
                {
                    "name": one.name,
                    "energy_median_gwh_per_day": one.energy_gwh,
                    f"energy_interval_{_PERCENT}_gwh_per_day": list(one.energy_interval_gwh),
                    "carbon_median_g_per_day": one.carbon_t * 1e6,
                    f"carbon_interval_{_PERCENT}_g_per_day": [bound * 1e6 for bound in one.carbon_interval_t],
                    "shares": _shares_json(one.shares),
                }
                for one in self.fleets
            ],
            "usual_query_shares": _shares_json(self.shares),
        }


def _shares_json(shares: tuple[InputShare, ...]) -> list[dict[str, Any]]:
    return [{"input": one.name, "first": one.first, "total": one.total} for one in shares]


def simulate(scenario: FleetScenario, inputs: Inputs) -> Projection:
    """Draws every input and computes the energies. `inputs`: by the names of `INPUTS`, and `COMMON_GAIN`, if any.

    Raises UsageError where a query can need no energy: it has no logarithm, and nothing is a multiple of it.
    """
    generator = np.random.default_rng(scenario.seed)
    drawn = [*INPUTS, *(name for name in inputs if name not in INPUTS)]
    draws = {name: inputs[name].ppf(generator.random(scenario.draws)) for name in drawn}
    factors = {USUAL: {}, **{variant.name: variant.numbers for variant in scenario.variants}}
    energies = {name: _energy_wh(_scaled(draws, by)) for name, by in factors.items()}
    free = [name for name, values in energies.items() if values.min() <= 0]
    if free:
        what = f"scenario {scenario.name}: some queries of `{free[0]}` need no energy"
        raise UsageError(what, hint="give tokens and joules above 0")
    usual_wh = float(np.median(energies[USUAL]))
    means = {name: np.array([inputs[name].mean]) for name, row in INPUTS.items() if row.varies_by_query}
    mean_wh = {name: _energy_wh(_scaled({**draws, **means}, by)).mean() for name, by in factors.items()}
    queries = tuple(_query(name, values, mean_wh[name], draws, usual_wh) for name, values in energies.items())
    shares = _shares(_energy_wh, inputs, _spreading(inputs, of_a_fleet=False), {}, scenario.seed)
    fleets = tuple(_fleet(mix, factors, inputs, draws, means, scenario.seed) for mix in scenario.mixes)
    return Projection(scenario, inputs, queries, fleets, shares, energies)


def _energy_wh(draws: Draws) -> Floats:
    tokens_j = (
        draws["query.input_tokens"] * draws["energy.input_token_j"]
        + draws["query.output_tokens"] * draws["energy.output_token_j"]
    )
    return np.asarray(tokens_j * draws.get(COMMON_GAIN, 1.0) * _overhead(draws) / JOULES_PER_WH)


def _overhead(draws: Draws) -> Floats:
    """What one joule of serving processors becomes at the meter of the site."""
    used = draws["node.utilisation"]
    idle = 1 + draws["node.idle_power_ratio"] * (1 - used) / used
    return np.asarray(idle * (1 + draws["node.other_power_ratio"]) * draws["site.pue"])


def _scaled(draws: Draws, factors: Mapping[str, float]) -> Draws:
    """Draws of a variant: the same ones, each times its factor."""
    return {name: values * factors.get(name, 1.0) for name, values in draws.items()}


def _query(name: str, energies_wh: Floats, mean_wh: float, draws: Draws, usual_wh: float) -> QuerySummary:
    low, median, high = _quartiles(energies_wh)
    low_g, median_g, high_g = _quartiles(energies_wh / 1000 * draws["site.carbon_g_per_kwh"])
    return QuerySummary(name, median, (low, high), float(mean_wh), median_g, (low_g, high_g), median / usual_wh)


def _quartiles(values: Floats) -> tuple[float, float, float]:
    low, median, high = (float(value) for value in np.quantile(values, [0.25, 0.5, 0.75]))
    return low, median, high


def _fleet(
    mix: NamedNumbers, factors: Mapping[str, Mapping[str, float]], inputs: Inputs, draws: Draws, means: Draws, seed: int
) -> FleetSummary:
    """A fleet's queries have their means, and everything else is one value for all of them."""

    def energy_gwh(drawn: Draws) -> Floats:
        each = [share * _energy_wh(_scaled(drawn, factors[query])) for query, share in mix.numbers.items()]
        return np.asarray(sum(each) * drawn["fleet.queries_per_day"] / 1e9)

    energies_gwh = energy_gwh({**draws, **means})
    carbon_t = energies_gwh * draws["site.carbon_g_per_kwh"]  # 1e6 kWh in a GWh, 1e6 g in a tonne
    shares = _shares(energy_gwh, inputs, _spreading(inputs, of_a_fleet=True), means, seed)
    return FleetSummary(mix.name, *_central(energies_gwh), *_central(carbon_t), shares)


def _central(values: Floats) -> tuple[float, tuple[float, float]]:
    outside = (1 - FLEET_PROBABILITY) / 2
    low, median, high = (float(value) for value in np.quantile(values, [outside, 0.5, 1 - outside]))
    return median, (low, high)


def _spreading(inputs: Inputs, *, of_a_fleet: bool) -> list[str]:
    """The unknown inputs that the energy of a query or of a fleet depends on."""
    rows = [row for row in INPUTS.values() if not inputs[row.name].is_constant]
    counted = [row.name for row in rows if (row.counts_for_a_fleet if of_a_fleet else row.counts_for_a_query)]
    return [*counted, *(name for name in inputs if name not in INPUTS)]


def _shares(
    energy: Callable[[Draws], Floats], inputs: Inputs, names: list[str], given: Draws, seed: int
) -> tuple[InputShare, ...]:
    """By the estimators of Saltelli and others (2010), as scipy has them; the largest share first.

    names: the inputs that are drawn; the others have their medians, or what is `given`
    """
    from scipy import stats

    fixed = {name: inputs[name].ppf(np.array([0.5])) for name in inputs if name not in names} | dict(given)
    if len(names) < 2:  # scipy takes two or more
        middles = {name: inputs[name].ppf(np.array([0.01, 0.99])) for name in names}
        share = float(np.ptp(energy({**fixed, **middles})) > 0)
        return tuple(InputShare(name, share, share) for name in names)

    def logarithm(points: Floats) -> Floats:
        drawn = dict(zip(names, points, strict=True))
        return np.log(energy({**fixed, **drawn}))[None, :]

    found = stats.sobol_indices(
        func=logarithm, n=SOBOL_POINTS, dists=[inputs[name] for name in names], rng=np.random.default_rng(seed)
    )
    firsts, totals = np.ravel(found.first_order), np.ravel(found.total_order)
    shares = [InputShare(*one) for one in zip(names, firsts.tolist(), totals.tolist(), strict=True)]
    return tuple(sorted(shares, key=lambda share: -share.total))
