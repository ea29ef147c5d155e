# SPDX-License-Identifier: Apache-2.0
"""Energies of tokens that a campaign has measured, as inputs of a scenario."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pybench.analysis.findings.cases import describe_cases
from pybench.analysis.measurements import collect
from pybench.analysis.statistics.estimate import SINGLE, SKEW_T, Estimate
from pybench.analysis.units import collect_units
from pybench.case import Case
from pybench.case.repetitions import Stop, StoppingRule
from pybench.case.yields import metrics_of
from pybench.catalogue.catalogue import BUILT_IN
from pybench.catalogue.metrics import METRICS
from pybench.catalogue.workloads import WORKLOADS
from pybench.dataset import Dataset, load
from pybench.errors import ScenarioError, UsageError
from pybench.measure.quantity import Quantity
from pybench.plan import load_plan
from pybench.projection import read_scenario, resolve, simulate
from pybench.projection.distributions import Distribution
from pybench.projection.measured import _distributions, _told_by
from pybench.projection.scenario import COMMON_GAIN
from pybench.report import write_report
from tests.projection.test_scenario import SCENARIO, written
from tests.support.campaigns import CampaignBuilder

ENERGIES_J = (1.9, 2.0, 2.1, 2.05, 1.95)
PLANS = Path(__file__).parents[2] / "plans"
METRIC = "gpu_energy_per_token_j"


def decoder() -> Case:
    return Case(workload="infer", model="tinylm-small", runtime="torch", batch=4)


def campaign(
    folder: Path, u_absolute: float | None = None, blocks: int = len(ENERGIES_J), rule: StoppingRule | None = None
) -> Dataset:
    builder = CampaignBuilder(folder / "campaign", [decoder()], repetitions=blocks, declared=[], rule=rule)
    for block, energy_j in enumerate(ENERGIES_J[:blocks], start=1):
        builder.run(decoder(), block, {METRIC: Quantity(value=energy_j, u_absolute=u_absolute)})
    return load(builder.path, stop=None if rule is None else Stop(blocks, "blocks"))


def resolved(folder: Path, dataset: Dataset | None, case: str, metric: str = METRIC) -> Distribution:
    measured = f"{{measured: {{case: {case}, metric: {metric}}}"
    scenario = read_scenario(
        written(folder, SCENARIO.replace('{uniform: [1, 3], source: "a paper, table 2"', measured))
    )
    return resolve(scenario, dataset)["energy.output_token_j"]


def test_repetitions_and_the_boards_gain_make_the_spread(tmp_path: Path) -> None:
    alone = resolved(tmp_path, campaign(tmp_path / "a"), decoder().id)
    with_gain = resolved(tmp_path, campaign(tmp_path / "b", u_absolute=0.2), decoder().id)
    middle, end = np.array([0.5]), np.array([0.975])
    assert alone.ppf(middle) == pytest.approx(2.0, rel=0.01)
    assert 2.05 < float(alone.ppf(end)[0]) < 2.2
    assert float(with_gain.ppf(end)[0]) > 2.35


@pytest.mark.parametrize("u_absolute", [None, 0.03])
def test_looks_at_a_campaign_spread_no_draw(tmp_path: Path, u_absolute: float | None) -> None:
    """Of intervals, they ask for more than 95 %."""
    looked = campaign(tmp_path / "looked", u_absolute, rule=StoppingRule(20))
    measurements = collect(looked)
    (found,) = describe_cases(looked, measurements, collect_units(looked, measurements))
    estimate = found.metrics[METRIC].estimate
    assert estimate is not None
    assert estimate.confidence > 0.95
    once = campaign(tmp_path / "once", u_absolute)
    assert resolved(tmp_path, looked, decoder().id) == resolved(tmp_path, once, decoder().id)


@pytest.mark.parametrize("u_absolute", [None, 0.03])
def test_repetitions_that_scatter_too_much_are_one_error(tmp_path: Path, u_absolute: float | None) -> None:
    builder = CampaignBuilder(tmp_path / "campaign", [decoder()], repetitions=2)
    for block, energy_j in enumerate((1.0, 5.5), start=1):
        builder.run(decoder(), block, {METRIC: Quantity(value=energy_j, u_absolute=u_absolute)})
    dataset = load(builder.path)
    with pytest.raises(ScenarioError, match="the values scatter too much for an interval"):
        resolved(tmp_path, dataset, decoder().id)
    measurements = collect(dataset)
    found = describe_cases(dataset, measurements, collect_units(dataset, measurements))
    assert found[0].metrics[METRIC].absolute_95 is None


def _drawn(estimate: Estimate, u_absolute: float | None) -> Distribution:
    return _distributions({"energy.output_token_j": _told_by(estimate, u_absolute)})["energy.output_token_j"]


def test_an_interval_that_leans_is_drawn_as_wide_as_it_is() -> None:
    drawn = _drawn(Estimate(0.87, 0.46, 1.28, 5, SKEW_T), None)
    low, middle, high = drawn.ppf(np.array([0.025, 0.5, 0.975]))
    assert (middle, high / low) == pytest.approx((0.87, 1.28 / 0.46))


def _factors(estimate: Estimate, u_absolute: float | None) -> tuple[float, float]:
    """From the median to both ends of the central 95 %."""
    low, middle, high = _drawn(estimate, u_absolute).ppf(np.array([0.025, 0.5, 0.975]))
    return middle / low, high / middle


def test_a_geometric_mean_is_drawn_as_wide_as_its_interval_and_the_gain_together() -> None:
    """Also where the upper half is as long as the value, so that it leaves nothing below it."""
    widths = []
    for factor in (1.2, 1.99, 2.0, 2.01, 5.0):
        estimate = Estimate(1.0, 1 / factor, factor, 2, SKEW_T)
        assert _factors(estimate, None) == pytest.approx((factor, factor))
        with_gain = math.exp(math.hypot(math.log(factor), math.log1p(1.959964 * 0.02)))
        assert _factors(estimate, 0.02) == pytest.approx((with_gain, with_gain))
        widths.append(with_gain)
    assert widths == sorted(widths)


def test_the_gain_of_a_board_does_not_average_out_between_two_energies(tmp_path: Path) -> None:
    """By hand: with one gain, the energy of a query has the half interval of the gain, however it is divided."""
    exact, u = Estimate(2.0, None, None, 1, SINGLE), 0.06
    other = Estimate(4.0, None, None, 1, SINGLE)
    told = {"energy.input_token_j": _told_by(exact, u), "energy.output_token_j": _told_by(other, 2 * u)}
    found = _distributions(told)
    assert [found[name] for name in told] == [Distribution("value", (2.0,)), Distribution("value", (4.0,))]
    scenario = read_scenario(written(tmp_path, SCENARIO))
    constant = {name: Distribution("value", (1.0,)) for name in scenario.inputs} | found
    (fleet, *_) = simulate(scenario, constant).fleets
    low, high = fleet.energy_interval_gwh
    assert high / fleet.energy_gwh == pytest.approx(1 + 1.959964 * u / 2.0, rel=2e-3)
    assert fleet.energy_gwh / low == pytest.approx(1 + 1.959964 * u / 2.0, rel=2e-3)
    assert [(one.name, one.total) for one in fleet.shares] == [(COMMON_GAIN, 1.0)]


def test_one_measurement_for_both_energies_is_drawn_once() -> None:
    one = _told_by(Estimate(1.0, 1 / 1.2, 1.2, 5, SKEW_T), 0.02)
    found = _distributions({"energy.input_token_j": one, "energy.output_token_j": one})
    assert found["energy.input_token_j"] == found["energy.output_token_j"] == Distribution("value", (1.0,))
    half = math.log(float(found[COMMON_GAIN].ppf(np.array([0.975]))[0]))
    assert half == pytest.approx(math.hypot(math.log(1.2), math.log1p(1.959964 * 0.02)))


def test_the_gain_alone_is_drawn_of_one_run() -> None:
    assert _factors(Estimate(2.0, None, None, 1, SINGLE), 0.2) == pytest.approx((1.1959964, 1.1959964))


def test_one_run_is_a_number(tmp_path: Path) -> None:
    assert resolved(tmp_path, campaign(tmp_path, blocks=1), decoder().id) == Distribution("value", (1.9,))


@pytest.mark.parametrize(
    ("case", "metric", "said"),
    [
        ("ffffffff", METRIC, "ffffffff fits no case of the plan"),
        (decoder().id, "latency_mean_ms", "`energy.output_token_j`: latency_mean_ms is no energy of a token"),
        (decoder().id, "system_energy_per_token_j", "system_energy_per_token_j is no energy of a token"),
        (decoder().id, "gpu_net_energy_per_token_j", "gpu_net_energy_per_token_j is no energy of a token"),
        (
            decoder().id,
            "gpu_energy_per_output_token_j",
            "gpu_energy_per_output_token_j: workload infer measures gpu_energy_per_token_j",
        ),
        (decoder().id, "module_energy_per_token_j", "its machine has no power rails that make up a module"),
        (decoder().id, "node_energy_per_token_j", "is of the whole node, and `node.other_power"),
        (decoder().title()[:-1], METRIC, f"did you mean `{decoder().title()}`"),
        ("generate tinylm-small torch batch=8", METRIC, "lists cases with their ids"),
    ],
)
def test_what_a_campaign_does_not_tell_is_one_error(tmp_path: Path, case: str, metric: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        resolved(tmp_path, campaign(tmp_path), case, metric)


@pytest.mark.parametrize(
    ("label", "outcome", "why"),
    [
        ("cpu", "ok", "its runs used the CPU and no GPU"),
        ("cuda", "ok", "not measured"),
        ("cuda", "oom", "oom: torch.OutOfMemoryError"),
        ("cuda", None, "it has no finished run"),
    ],
)
def test_the_error_says_why_there_is_no_number_and_what_to_write(
    label: str, outcome: str | None, why: str, tmp_path: Path
) -> None:
    builder = CampaignBuilder(tmp_path / "campaign", [decoder()], repetitions=1)
    if outcome == "ok":
        builder.run(decoder(), 1, {"cpu_energy_per_token_j": 3.0}, labels={"device": label})
    elif outcome is not None:
        builder.run(decoder(), 1, outcome=outcome, reason="torch.OutOfMemoryError")
    with pytest.raises(ScenarioError) as raised:
        resolved(tmp_path, load(builder.path), decoder().id)
    (problem,) = raised.value.problems
    assert problem.what == f"`energy.output_token_j`: {decoder().title()} has no {METRIC}: {why}"
    assert (
        problem.line == SCENARIO.splitlines().index(next(x for x in SCENARIO.splitlines() if "output_token_j" in x)) + 1
    )
    instead = "use cpu_energy_per_token_j of this case" if outcome == "ok" else "name a case that has it"
    assert problem.hint == f"{instead}, or write the joules of a token, as in `uniform: [0.1, 0.3]`"


def test_every_input_without_a_number_is_named(tmp_path: Path) -> None:
    measured = f"{{measured: {{case: {decoder().id}, metric: module_energy_per_token_j}}}}"
    text = SCENARIO.replace("input_token_j: 0.1", f"input_token_j: {measured}")
    text = text.replace('{uniform: [1, 3], source: "a paper, table 2"}', measured)
    with pytest.raises(ScenarioError) as raised:
        resolve(read_scenario(written(tmp_path, text)), campaign(tmp_path))
    assert [problem.what.split(":")[0] for problem in raised.value.problems] == [
        "`energy.input_token_j`", "`energy.output_token_j`",
    ]  # fmt: skip


def test_a_measured_input_needs_a_campaign(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"energy\.output_token_j is measured, and no campaign is given"):
        resolved(tmp_path, None, decoder().id)


@pytest.mark.parametrize("part", ["cpu", "module"])
def test_joules_of_a_cpu_or_module_are_taken_where_these_serve(part: str, tmp_path: Path) -> None:
    metric = f"{part}_energy_per_token_j"
    builder = CampaignBuilder(tmp_path / "campaign", [decoder()], repetitions=1)
    builder.run(decoder(), 1, {metric: 3.0})
    assert resolved(tmp_path, load(builder.path), decoder().id, metric) == Distribution("value", (3.0,))


def test_joules_of_a_whole_node_have_the_rest_inside(tmp_path: Path) -> None:
    metric = "node_energy_per_token_j"
    measured = f"{{measured: {{case: {decoder().id}, metric: {metric}}}}}"
    text = SCENARIO.replace('{uniform: [1, 3], source: "a paper, table 2"}', measured)
    scenario = read_scenario(written(tmp_path, text.replace("other_power_ratio: 0.4", "other_power_ratio: 0")))
    with pytest.raises(UsageError, match="its machine has no counter of the node"):
        resolve(scenario, campaign(tmp_path / "without"))
    builder = CampaignBuilder(tmp_path / "campaign", [decoder()], repetitions=1)
    builder.run(decoder(), 1, {metric: 5.0})
    assert resolve(scenario, load(builder.path))["energy.output_token_j"] == Distribution("value", (5.0,))


def test_joules_of_two_parts_of_a_node_are_one_error(tmp_path: Path) -> None:
    """The rest of the node is a share of one of them."""
    one, other = (f"{{measured: {{case: x, metric: {part}_energy_per_token_j}}}}" for part in ("gpu", "cpu"))
    text = SCENARIO.replace("input_token_j: 0.1", f"input_token_j: {one}")
    text = text.replace('{uniform: [1, 3], source: "a paper, table 2"}', other)
    with pytest.raises(UsageError, match=r"input_token_j is of the GPUs, and energy.output_token_j is of the CPU"):
        resolve(read_scenario(written(tmp_path, text)), campaign(tmp_path))


def test_joules_of_a_package_are_of_a_part_as_well(tmp_path: Path) -> None:
    """Of its rows, too, both are told before a case is looked for."""
    own = replace(METRICS["cpu_energy_per_token_j"], name="acme_per_token_j")
    row = replace(WORKLOADS["infer"], yields=(*WORKLOADS["infer"].yields, own.name))
    case = replace(decoder(), catalogue=BUILT_IN.with_rows([own, row]))
    builder = CampaignBuilder(tmp_path / "campaign", [case], repetitions=1)
    builder.run(case, 1, {METRIC: 2.0, own.name: 3.0})
    one, other = (f"{{measured: {{case: x, metric: {name}}}" for name in (METRIC, own.name))
    text = SCENARIO.replace("input_token_j: 0.1", f"input_token_j: {one}}}")
    text = text.replace('{uniform: [1, 3], source: "a paper, table 2"', other)
    with pytest.raises(UsageError, match=r"input_token_j is of the GPUs, and energy.output_token_j is of the CPU"):
        resolve(read_scenario(written(tmp_path, text)), load(builder.path))


def test_the_table_tells_the_part_of_a_metric_of_a_package(tmp_path: Path) -> None:
    own = replace(METRICS["cpu_energy_per_token_j"], name="acme_per_token_j")
    row = replace(WORKLOADS["infer"], yields=(*WORKLOADS["infer"].yields, own.name))
    case = replace(decoder(), catalogue=BUILT_IN.with_rows([own, row]))
    builder = CampaignBuilder(tmp_path / "campaign", [case], repetitions=1)
    builder.run(case, 1, {own.name: 3.0})
    dataset = load(builder.path)
    measured = f"{{measured: {{case: {case.id}, metric: {own.name}}}"
    text = SCENARIO.replace('{uniform: [1, 3], source: "a paper, table 2"', measured)
    scenario = read_scenario(written(tmp_path, text))
    write_report(dataset, tmp_path / "page", projection=simulate(scenario, resolve(scenario, dataset)))
    table = (tmp_path / "page/tables/projection-inputs.csv").read_text()
    assert f"measured: acme_per_token_j of {case.id}, joules of the CPU" in table


def test_the_ready_scenario_asks_for_what_its_plan_measures(tmp_path: Path) -> None:
    plan = load_plan(PLANS / "generate.yaml")
    scenario = read_scenario(PLANS / "scenarios/measured-generate.yaml")
    asked = [one.measured for one in scenario.inputs.values() if one.measured is not None]
    (case,) = {case for one in asked for case in plan.cases if case.title() == one.case}
    assert {one.metric for one in asked} <= set(metrics_of(case))
    builder = CampaignBuilder(tmp_path / "c", plan.cases, repetitions=1)
    builder.run(case, 1, {"gpu_energy_per_input_token_j": 0.01, "gpu_energy_per_output_token_j": 0.4})
    inputs = resolve(scenario, load(builder.path))
    assert inputs["energy.output_token_j"] == Distribution("value", (0.4,))
