# SPDX-License-Identifier: Apache-2.0
"""Projections: closed forms, analytic shares of the variance, and the published scenario."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from pybench.errors import UsageError
from pybench.projection import Projection, read_scenario, resolve, simulate
from tests.projection.test_scenario import SCENARIO, written

FRONTIER = Path(__file__).parents[2] / "plans" / "scenarios" / "frontier-query.yaml"


def projected(folder: Path, text: str) -> Projection:
    scenario = read_scenario(written(folder, text))
    return simulate(scenario, resolve(scenario, None))


def constant(text: str = SCENARIO) -> str:
    return text.replace("{quartiles: [150, 600], chosen: a guess}", "300").replace(
        '{uniform: [1, 3], source: "a paper, table 2"}', "2"
    )


def test_constants_give_the_formula(tmp_path: Path) -> None:
    found = projected(tmp_path, constant())
    overhead = (1 + 0.2 * 0.5 / 0.5) * 1.4 * 1.2
    usual_wh, long_wh = ((100 * 0.1 + tokens * 2) * overhead / 3600 for tokens in (300, 4500))
    usual, long = found.queries
    assert (usual.median_wh, usual.mean_wh) == pytest.approx((usual_wh, usual_wh))
    assert usual.quartiles_wh == pytest.approx((usual_wh, usual_wh))
    assert (usual.median_g, *usual.quartiles_g) == pytest.approx(3 * (usual_wh / 1000 * 300,))
    assert long.ratio == pytest.approx(long_wh / usual_wh)
    fleet = found.fleets[0]
    assert fleet.energy_gwh == pytest.approx((usual_wh + long_wh) / 2 * 1e6 / 1e9)
    assert fleet.carbon_t == pytest.approx(fleet.energy_gwh * 300)
    assert found.shares == ()


def test_differences_between_queries_average_out_over_a_fleet(tmp_path: Path) -> None:
    found = projected(tmp_path, constant().replace("output_tokens: 300", "output_tokens: {quartiles: [150, 600]}"))
    low, high = found.queries[0].quartiles_wh
    assert high / low > 3
    assert found.fleets[0].energy_interval_gwh[0] == pytest.approx(found.fleets[0].energy_interval_gwh[1])


def test_the_mean_of_tokens_is_no_samples_mean(tmp_path: Path) -> None:
    """20,000 draws of such a wide distribution have another mean for each seed."""
    text = constant().replace("output_tokens: 300", "output_tokens: {quartiles: [10, 1000]}")
    found = projected(tmp_path, text)
    tokens = 100 * math.exp((math.log(100) / (2 * 0.6744897501960817)) ** 2 / 2)
    plain = projected(tmp_path, constant().replace("output_tokens: 300", f"output_tokens: {tokens}"))
    assert found.queries[0].mean_wh == pytest.approx(plain.queries[0].mean_wh)
    assert found.fleets[0].energy_gwh == pytest.approx(plain.fleets[0].energy_gwh)


def test_what_is_unknown_of_a_fleet_does_not_average_out(tmp_path: Path) -> None:
    found = projected(tmp_path, constant().replace("pue: 1.2", "pue: {uniform: [1, 2]}"))
    low, high = found.fleets[0].energy_interval_gwh
    assert high / low == pytest.approx(1.975 / 1.025, rel=0.01)


def test_shares_are_those_of_a_product_of_log_normal_inputs(tmp_path: Path) -> None:
    text = constant().replace("input_tokens: 100", "input_tokens: 0")
    text = text.replace("output_tokens: 300", "output_tokens: {quartiles: [150, 600]}")
    text = text.replace("output_token_j: 2", "output_token_j: {quartiles: [1, 2]}")
    variances = [math.log(4) ** 2, math.log(2) ** 2]
    found = projected(tmp_path, text).shares
    assert [share.name for share in found] == ["query.output_tokens", "energy.output_token_j"]
    for share, variance in zip(found, variances, strict=True):
        assert share.first == pytest.approx(variance / sum(variances), abs=0.02)
        assert share.total == pytest.approx(variance / sum(variances), abs=0.02)


def test_shares_of_a_fleet_are_without_its_tokens(tmp_path: Path) -> None:
    """Tokens average out; the number of queries counts, which no query depends on."""
    text = constant().replace("input_tokens: 100", "input_tokens: 0")
    text = text.replace("output_tokens: 300", "output_tokens: {quartiles: [150, 600]}")
    text = text.replace("output_token_j: 2", "output_token_j: {quartiles: [1, 2]}")
    text = text.replace("queries_per_day: 1.0e+6", "queries_per_day: {quartiles: [1.0e+6, 4.0e+6]}")
    variances = [math.log(4) ** 2, math.log(2) ** 2]
    (fleet,) = projected(tmp_path, text).fleets
    assert [share.name for share in fleet.shares] == ["fleet.queries_per_day", "energy.output_token_j"]
    for share, variance in zip(fleet.shares, variances, strict=True):
        assert share.first == pytest.approx(variance / sum(variances), abs=0.02)
        assert share.total == pytest.approx(variance / sum(variances), abs=0.02)


def test_the_only_unknown_input_has_no_share_where_nothing_depends_on_it(tmp_path: Path) -> None:
    text = constant().replace("utilisation: 0.5", "utilisation: 1").replace("ratio: 0.2", "ratio: {uniform: [0, 1]}")
    found = projected(tmp_path, text)
    assert [share.total for share in (*found.shares, *found.fleets[0].shares)] == [0, 0]


def test_a_query_without_energy_is_refused(tmp_path: Path) -> None:
    text = (
        constant().replace("input_token_j: 0.1", "input_token_j: 0").replace("output_token_j: 2", "output_token_j: 0")
    )
    with pytest.raises(UsageError, match="scenario small: some queries of `usual` need no energy"):
        projected(tmp_path, text)


def test_a_seed_repeats_and_another_differs(tmp_path: Path) -> None:
    first, again = (projected(tmp_path, SCENARIO).as_json() for _ in range(2))
    assert first == again
    assert projected(tmp_path, SCENARIO.replace("seed: 7", "seed: 8")).as_json()["queries"] != first["queries"]


def test_the_published_scenario_gives_its_query_and_its_factor() -> None:
    scenario = read_scenario(FRONTIER)
    found = simulate(scenario, resolve(scenario, None))
    usual, long = found.queries[:2]
    low, high = usual.quartiles_wh
    assert low < 0.34 < high
    assert 0.18 < usual.median_wh < 0.67
    assert scenario.variants[0].numbers == {"query.output_tokens": 15.0}
    assert long.ratio == pytest.approx(13, rel=0.1)
