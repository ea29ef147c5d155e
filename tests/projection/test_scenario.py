# SPDX-License-Identifier: Apache-2.0
"""Scenario files: what they may say, and what each wrong one is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybench.document import parse_text
from pybench.errors import ScenarioError
from pybench.projection import read_scenario, resolve, simulate
from pybench.projection.scenario import A_SCENARIO

SCENARIO = """\
name: small
seed: 7
draws: 20000
query:
  input_tokens: 100
  output_tokens: {quartiles: [150, 600], chosen: a guess}
energy:
  input_token_j: 0.1
  output_token_j: {uniform: [1, 3], source: "a paper, table 2"}
node:
  utilisation: 0.5
  idle_power_ratio: 0.2
  other_power_ratio: 0.4
site:
  pue: 1.2
  carbon_g_per_kwh: 300
fleet:
  queries_per_day: 1.0e+6
variants:
  long: {query.output_tokens: 15}
mixes:
  half: {usual: 0.5, long: 0.5}
published:
  - {of: query.usual, value: 0.3, quartiles: [0.2, 0.7], source: abstract}
"""
READY = sorted((Path(__file__).parents[2] / "plans" / "scenarios").glob("*.yaml"))


def written(folder: Path, text: str) -> Path:
    path = folder / "s.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("path", READY, ids=lambda path: path.stem)
def test_ready_scenarios_say_why_each_input_is_as_it_is(path: Path) -> None:
    inputs = read_scenario(path).inputs
    root, problems = parse_text(path.read_text(), str(path), kind=A_SCENARIO)
    stated = root.plain()
    assert not problems
    written = {f"{group}.{key}" for group in ("query", "energy", "node", "site", "fleet") for key in stated[group]}
    assert set(inputs) == written
    assert all(one.source or one.chosen or one.measured for one in inputs.values())


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        ("seed: 7", "", "s.yaml:1:1: `seed` is missing"),
        ("input_tokens: 100", "input_tokens: -1", "`query.input_tokens` takes a number, 0 to 1e+09; not -1"),
        ("input_tokens: 100", "input_tokens: many", "`query.input_tokens` takes a number, 0 to 1e+09; not 'many'"),
        ("input_tokens: 100", "input_tokens: .nan", "`query.input_tokens` takes a number, 0 to 1e+09; not nan"),
        ("input_tokens: 100", "", "`query.input_tokens` is missing"),
        ("[150, 600]", "[600, 150]", "`query.output_tokens` takes numbers from small to large in `quartiles`"),
        ("[150, 600]", "[0, 600]", "`query.output_tokens` takes positive numbers in `quartiles`"),
        ("[150, 600]", "150", "`query.output_tokens` takes the two quartiles of a log-normal distribution, as in"),
        (
            "quartiles: [150",
            "quartile: [150",
            "`query.output_tokens`: has no key `quartile` (did you mean `quartiles`?)",
        ),
        ("chosen: a guess", "value: 3", "`query.output_tokens`: has `value` and `quartiles`"),
        ("chosen: a guess", "chosen: a, source: b", "`query.output_tokens`: has `source` and `chosen`"),
        ("chosen: a guess", "chosen: 3", "`query.output_tokens` takes one line of text in `chosen`; not 3"),
        ("{uniform: [1, 3], source", "{source", "`energy.output_token_j`: has no number"),
        ("utilisation: 0.5", "utilisation: 0", "`node.utilisation` takes a number, 0.01 to 1; not 0"),
        (
            "utilisation: 0.5",
            "utilisation: {uniform: [0.5, 1.5]}",
            "`node.utilisation` takes a number, 0.01 to 1; not 1.5",
        ),
        ("other_power_ratio: 0.4", "other_power_ratio: {uniform: [-1, 1]}", "takes a number, 0 to 1000; not -1"),
        ("pue: 1.2", "pue: {quartiles: [1.1, 1.2]}", "whose distribution goes down to 0 in `quartiles`"),
        ("idle_power_ratio: 0.2", "idle_power_ratio: {quartiles: [0.1, 0.2]}", "no upper end in `quartiles`"),
        ("query.output_tokens: 15", "site.carbon_g_per_kwh: 0", "no input of a query's energy is called `site.carbon"),
        ("pue: 1.2", "pue: 0.9", "`site.pue` takes a number, 1 to 10; not 0.9"),
        ("pue: 1.2", "pue: {uniform: [0.9, 1.2]}", "`site.pue` takes a number, 1 to 10; not 0.9"),
        ("pue: 1.2", "pue: {measured: {case: a, metric: b}}", "`site.pue`: has no key `measured`"),
        ("output_token_j: {uniform: [1, 3]", "output_token_j: {measured: {case: a}", "takes a case and a metric"),
        ("query.output_tokens: 15", "query.output_token: 15", "did you mean `query.output_tokens`?"),
        (
            "query.output_tokens: 15",
            "query.output_tokens: -2",
            "`variants` takes a number, 0 to 1e+06; not -2 in `long: query.output_tokens`",
        ),
        (
            "query.output_tokens: 15",
            "node.utilisation: 15",
            "`node.utilisation` times 15 takes a number, 0.01 to 1; not 7.5",
        ),
        ("query.output_tokens: 15", "site.pue: 0.5", "`site.pue` times 0.5 takes a number, 1 to 10; not 0.6"),
        (
            "query.output_tokens: 15",
            "fleet.queries_per_day: 2",
            "no input of a query's energy is called `fleet.queries_per_day`",
        ),
        ("  long: {", "  usual: {", "`usual` is the query that no variant changes"),
        ("long: 0.5", "long: 0.6", "s.yaml:22:3: the shares of `half` add up to 1.1 (shares add up to 1)"),
        ("  half: {usual: 0.5, long: 0.5}\n", "  {}\n", "`mixes` takes at least one name (or leave the key out)"),
        ("long: 0.5", "lnog: 0.5", "no variant is called `lnog` (did you mean `long`?)"),
        ("of: query.usual", "of: query.short", "no result is called `query.short`"),
        ("of: query.usual", "of: wh", "`wh` is not a result, such as query.usual, ratio.long or fleet.all"),
        ("quartiles: [0.2, 0.7]", "quartiles: [0.2]", "takes two numbers from small to large"),
        ("fleet:", "flet:", "unknown key `flet` (did you mean `fleet`?)"),
        ("draws: 20000", "draws: 10", "`draws` takes an integer from 1000 to 4000000; not 10"),
        (
            "input_tokens: 100",
            f"input_tokens: 1{400 * '0'}",
            "`query.input_tokens` takes a number, 0 to 1e+09; not 1000",
        ),
        (
            "[150, 600]",
            "[1, 1.0e+300]",
            "s.yaml:6:18: `query.output_tokens` takes a number, 0 to 1e+09; not 1e+300 in `quartiles` (expected: tok",
        ),
        ("[150, 600]", "[1.0e-300, 1]", "takes no number between 0 and 1e-12; not 1e-300 in `quartiles`"),
        (
            "[150, 600]",
            "[1, 1.0e+6]",
            "at most 100 times the lower one; not 1e+06 times in `quartiles` (write uniform",
        ),
        ("input_tokens: 100", "input_tokens: {uniform: [1, 1.0e+300]}", "to 1e+09; not 1e+300 in `uniform`"),
        (
            "input_token_j: 0.1",
            "input_token_j: 1.0e+7",
            "0 to 1e+06; not 10000000.0 (expected: energy of the processors",
        ),
        (
            "pue: 1.2",
            "pue: 120",
            "`site.pue` takes a number, 1 to 10; not 120 (expected: power of the data centre over",
        ),
        ("carbon_g_per_kwh: 300", "carbon_g_per_kwh: 1.0e+5", "electricity, in g/kWh)"),
        ("other_power_ratio: 0.4", "other_power_ratio: 1.0e+4", "takes a number, 0 to 1000; not 10000"),
        ("queries_per_day: 1.0e+6", "queries_per_day: 1.0e+16", "takes a number above 0, up to 1e+15; not 1e+16"),
        ("queries_per_day: 1.0e+6", "queries_per_day: 0", "takes a number above 0, up to 1e+15; not 0 (expected: quer"),
        ("queries_per_day: 1.0e+6", "queries_per_day: {uniform: [0, 9]}", "not 0 in `uniform` (expected: queries that"),
        ("value: 0.3", "value: 0", "`published.0.value` takes a number above 0, up to 1e+15; not 0 (expected: Wh of a"),
        ("value: 0.3", "value: 1.0e+300", "`published.0.value` takes a number above 0, up to 1e+15; not 1e+300"),
        ("[0.2, 0.7]", "[0, 0.7]", "`published.0.quartiles` takes a number above 0"),
        ("[0.2, 0.7]", "[0.5, 0.7]", "s.yaml:24:23: the published value 0.3 is not between its quartiles [0.5, 0.7] ("),
        ("query.output_tokens: 15", "query.output_tokens: 1.0e+300", "0 to 1e+06; not 1e+300 in `long: query.output"),
        ("query.output_tokens: 15", "query.output_tokens: 1.0e-300", "takes no number between 0 and 1e-12"),
        ("utilisation: 0.5", "utilisation: {value: 60}", "not 60 in `value` (shares are from 0 to 1, as in 0.6)"),
        ("utilisation: 0.5", "utilisation: 60", "not 60 (shares are from 0 to 1, as in 0.6)"),
        ("long: 0.5", "long: 50", "takes a number, 0 to 1; not 50 in `half: long` (shares are from 0 to 1, as in 0.6)"),
    ],
)
def test_a_wrong_scenario_is_told_its_place(tmp_path: Path, was: str, now: str, said: str) -> None:
    assert SCENARIO.count(was) == 1
    with pytest.raises(ScenarioError) as caught:
        read_scenario(written(tmp_path, SCENARIO.replace(was, now)))
    assert said in str(caught.value)


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    text = SCENARIO.replace("pue: 1.2", "pue: 0.9").replace("seed: 7", "seed: x")
    with pytest.raises(ScenarioError) as caught:
        read_scenario(written(tmp_path, text))
    assert [problem.line for problem in caught.value.problems] == [2, 15]


def test_without_mixes_there_is_one_fleet_of_usual_queries(tmp_path: Path) -> None:
    text = SCENARIO.replace("mixes:\n  half: {usual: 0.5, long: 0.5}\n", "")
    text += "  - {of: fleet.usual, value: 0.001, source: abstract}\n"
    scenario = read_scenario(written(tmp_path, text))
    projection = simulate(scenario, resolve(scenario, None))
    assert [fleet.name for fleet in projection.fleets] == ["usual"]
    mean_wh = projection.queries[0].mean_wh
    assert projection.fleets[0].energy_gwh == pytest.approx(mean_wh * 1e6 / 1e9, rel=0.02)


def test_a_variant_called_usual_is_one_error(tmp_path: Path) -> None:
    """What mixes and published results mean by its name is unknown until it has another."""
    text = SCENARIO.replace("  long: {", "  usual: {").replace("of: query.usual", "of: ratio.long")
    with pytest.raises(ScenarioError) as caught:
        read_scenario(written(tmp_path, text))
    (problem,) = caught.value.problems
    assert problem.what == "`usual` is the query that no variant changes"


def test_a_query_of_no_tokens_is_refused(tmp_path: Path) -> None:
    text = SCENARIO.replace("input_tokens: 100", "input_tokens: 0").replace(
        "{quartiles: [150, 600], chosen: a guess}", "0"
    )
    with pytest.raises(ScenarioError, match="a query has neither a prompt nor an answer"):
        read_scenario(written(tmp_path, text))
