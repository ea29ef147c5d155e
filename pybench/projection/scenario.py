# SPDX-License-Identifier: Apache-2.0
"""A scenario file: what is assumed of queries, of the servers that answer them, and of the fleet.

`INPUTS` has one row for each quantity with a distribution. docs/user/projections.md explains every key.
Processors are the GPUs of a node, or the part of it whose joules a campaign has measured (`measured`).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, make_dataclass, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

from pybench.document import FileKind, Node, Place, parse_text, read_text
from pybench.document.keys import (
    Form,
    WrongValue,
    described,
    made,
    read_table,
    table,
    tables,
    text,
    whole,
)
from pybench.errors import Problem, ScenarioError
from pybench.projection.distributions import FORMS, Distribution, Range, read_distribution

A_SCENARIO = FileKind("scenario", "docs/user/projections.md has a first one", ScenarioError)
USUAL = "usual"  # the query that no variant changes
SHARES_ABSOLUTE = 1e-6  # by which a mix's shares may miss 1

_LINE = Form(re.compile(r"[^\x00-\x1f]+"), "one line of text")
_OUTPUT = Form(re.compile(r"(query|ratio|fleet)\.[^\s.]+"), "a result, such as query.usual, ratio.long or fleet.all")

_FACTORS = Range(0.0, 1e6, hint="expected: a factor that multiplies an input")
_SHARES = Range(0.0, 1.0)
_PUBLISHED = Range(0.0, 1e15, True, "expected: Wh of a query, a ratio, or GWh a day of a fleet")


@dataclass(frozen=True, slots=True)
class Measured:
    """An input that a campaign has measured.

    case: a title, or the beginning of an id
    metric: in J a token
    place: where the scenario asks for it
    """

    case: str
    metric: str
    place: Place


@dataclass(frozen=True, slots=True)
class Assumption:
    """One input as the scenario has it.

    distribution: None where a campaign has to tell
    measured: what the campaign is asked for
    source: where it is from
    chosen: why it is as it is, where no source says it
    """

    distribution: Distribution | None
    measured: Measured | None = None
    source: str | None = None
    chosen: str | None = None


@dataclass(frozen=True, slots=True)
class ScenarioInput:
    """A row.

    varies_by_query: it differs from query to query; else one unknown value is that of all queries of a fleet
    least, most, is_positive: its `range`
    is_measurable: a campaign can tell it
    counts_for_a_query: the energy of a query depends on it
    """

    name: str
    unit: str
    meaning: str
    varies_by_query: bool
    least: float
    most: float
    is_measurable: bool = False
    counts_for_a_query: bool = True
    is_positive: bool = False

    @property
    def counts_for_a_fleet(self) -> bool:
        """The energy of a fleet depends on it, and not on its mean alone."""
        return not self.varies_by_query and (self.counts_for_a_query or self.name.startswith("fleet."))

    @property
    def range(self) -> Range:
        unit = f", in {self.unit}" if self.unit and self.unit not in self.meaning else ""
        return Range(self.least, self.most, self.is_positive, f"expected: {self.meaning}{unit}")


INPUTS: Mapping[str, ScenarioInput] = {
    row.name: row
    for row in (
        ScenarioInput("query.input_tokens", "tokens", "tokens of a prompt", True, 0.0, 1e9),
        ScenarioInput("query.output_tokens", "tokens", "tokens of an answer", True, 0.0, 1e9),
        ScenarioInput(
            "energy.input_token_j", "J", "energy of the processors for one token of a prompt", False, 0.0, 1e6, True
        ),
        ScenarioInput(
            "energy.output_token_j", "J", "energy of the processors for one token of an answer", False, 0.0, 1e6, True
        ),
        ScenarioInput("node.utilisation", "", "share of the time in which the processors serve", False, 0.01, 1.0),
        ScenarioInput(
            "node.idle_power_ratio", "", "power of idle processors over that of serving ones", False, 0.0, 1.0
        ),
        ScenarioInput(
            "node.other_power_ratio", "", "power of the rest of the node over that of its processors", False, 0.0, 1e3
        ),
        ScenarioInput("site.pue", "", "power of the data centre over that of its computers", False, 1.0, 10.0),
        ScenarioInput(
            "site.carbon_g_per_kwh",
            "g/kWh",
            "CO2 equivalent of the site's electricity",
            False,
            0.0,
            1e4,
            counts_for_a_query=False,
        ),
        ScenarioInput(
            "fleet.queries_per_day",
            "1/day",
            "queries that the fleet answers in a day",
            False,
            0.0,
            1e15,
            counts_for_a_query=False,
            is_positive=True,
        ),
    )
}


# No key of a scenario: what multiplies both energies of a token where a campaign has measured both.
COMMON_GAIN = "energy.common_gain"


@dataclass(frozen=True, slots=True)
class NamedNumbers:
    """A variant with its factors, or a fleet with its shares."""

    name: str
    numbers: Mapping[str, float]


# --- keys -----------------------------------------------------------------------------------------------------------


def _read_assumption(node: Node, row: ScenarioInput) -> Assumption:
    if node.children is None:
        given = Distribution("value", (row.range.read(node),))
        return Assumption(given)
    forms = [*FORMS, *(["measured"] if row.is_measurable else [])]
    known = [*forms, "source", "chosen"]
    for key in node.children:
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            raise WrongValue(
                f"has no key `{key}`", f"did you mean `{near[0]}`?" if near else f"one of {', '.join(known)}"
            )
    written = [key for key in forms if key in node.children]
    if len(written) != 1:
        what = f"has {' and '.join(f'`{key}`' for key in written)}" if written else "has no number"
        raise WrongValue(what, f"write one of {', '.join(forms)}")
    source, chosen = (_remark(node.children.get(key), key) for key in ("source", "chosen"))
    if source is not None and chosen is not None:
        raise WrongValue("has `source` and `chosen`", "what a source says was not chosen here")
    value = node.children[written[0]]
    if written[0] == "measured":
        return Assumption(None, _measured(value), source, chosen)
    try:
        distribution = read_distribution(value, written[0], row.range)
    except WrongValue as misfit:
        raise WrongValue(f"{misfit.what} in `{written[0]}`", misfit.hint) from misfit
    return Assumption(distribution, None, source, chosen)


def _measured(node: Node) -> Measured:
    match node.plain():
        case {"case": str(title), "metric": str(metric), **others} if not others:
            return Measured(title, metric, node.place)
    raise WrongValue(
        "takes a case and a metric in `measured`", "as in measured: {case: TITLE, metric: gpu_energy_per_token_j}"
    )


def _remark(node: Node | None, key: str) -> str | None:
    if node is None:
        return None
    value = node.plain()
    if not isinstance(value, str) or not value.strip():
        raise WrongValue(f"takes one line of text in `{key}`; not {described(value)}")
    return value


def _quartiles(node: Node) -> tuple[float, float]:
    items = [_PUBLISHED.read(item) for item in node.items or ()]
    if len(items) != 2 or items[0] > items[1]:
        raise WrongValue("takes two numbers from small to large, as in `quartiles: [0.18, 0.67]`")
    return items[0], items[1]


def _named_numbers(node: Node, taken: Range) -> tuple[NamedNumbers, ...]:
    if node.children is None:
        raise WrongValue(f"takes a mapping; not {described(node.plain())}")
    if not node.children:
        raise WrongValue("takes at least one name", "or leave the key out")
    found = []
    for name, child in node.children.items():
        if child.children is None:
            raise WrongValue(f"takes a mapping in `{name}`; not {described(child.plain())}")
        if "." in name:
            raise WrongValue(f"has `{name}`", "a name has no dot")
        found.append(
            NamedNumbers(name, {key: _read_in(each, taken, f"{name}: {key}") for key, each in child.children.items()})
        )
    return tuple(found)


def _read_in(node: Node, taken: Range, key: str) -> float:
    try:
        return taken.read(node)
    except WrongValue as misfit:
        raise WrongValue(f"{misfit.what} in `{key}`", misfit.hint) from misfit


# --- the file -------------------------------------------------------------------------------------------------------


def _group(name: str) -> Any:
    """A mapping with an assumption for each row of `INPUTS` whose name begins with the group's, as a dataclass."""
    rows = {row.name.partition(".")[2]: row for row in INPUTS.values() if row.name.startswith(f"{name}.")}
    fields = [(key, Assumption, made(partial(_read_assumption, row=row))) for key, row in rows.items()]
    here = {"__module__": __name__}  # where a pickle looks for it: other processes draw the figure of a report
    return make_dataclass(f"{name.title()}Group", fields, frozen=True, slots=True, kw_only=True, namespace=here)


QueryGroup, EnergyGroup, NodeGroup, SiteGroup, FleetGroup = map(_group, ("query", "energy", "node", "site", "fleet"))


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedResult:
    """What a paper says of a result. `of`: `query.NAME` in Wh, `ratio.NAME`, or `fleet.NAME` in GWh a day."""

    of: str = text(_OUTPUT)
    value: float = made(_PUBLISHED.read)
    quartiles: tuple[float, float] | None = made(_quartiles, None)
    source: str = text(_LINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetScenario:
    """The whole file.

    variants: each with factors of inputs by their names; `usual` is the query without any
    mixes: fleets, each with shares of its queries by variant; without any, one fleet of usual queries
    file: where it is from, for errors; no key of it
    """

    name: str = text(_LINE)
    source: str | None = text(_LINE, None)
    seed: int = whole(0, 2**32 - 1)
    draws: int = whole(1_000, 4_000_000, default=100_000)
    query: Any = table(QueryGroup)
    energy: Any = table(EnergyGroup)
    node: Any = table(NodeGroup)
    site: Any = table(SiteGroup)
    fleet: Any = table(FleetGroup)
    variants: tuple[NamedNumbers, ...] = made(partial(_named_numbers, taken=_FACTORS), ())
    mixes: tuple[NamedNumbers, ...] = made(partial(_named_numbers, taken=_SHARES), (NamedNumbers(USUAL, {USUAL: 1.0}),))
    published: tuple[PublishedResult, ...] = tables(PublishedResult)
    file: str = ""

    @property
    def inputs(self) -> dict[str, Assumption]:
        """By the names of `INPUTS`, in their order."""
        return {name: attrgetter(name)(self) for name in INPUTS}


def read_scenario(path: Path) -> FleetScenario:
    """Reads and judges a scenario. Raises ScenarioError with every problem, each with its file, line and column."""
    root, found = parse_text(read_text(path, A_SCENARIO), str(path), kind=A_SCENARIO)
    problems = list(found)
    scenario: FleetScenario | None = read_table(FleetScenario, root, problems)
    if scenario is not None:
        problems += _clashes(scenario, root)
    if problems or scenario is None:
        raise ScenarioError(str(path), problems)
    return replace(scenario, file=str(path))


# --- keys together --------------------------------------------------------------------------------------------------


def _clashes(scenario: FleetScenario, root: Node) -> list[Problem]:
    """What is wrong with several keys together. A variant that is called `usual` hides what other keys mean."""
    if any(variant.name == USUAL for variant in scenario.variants):
        place = root.key_place(("variants", USUAL))
        return [place.problem(f"`{USUAL}` is the query that no variant changes", "give this variant another name")]
    found = []
    tokens = [scenario.inputs[name].distribution for name in ("query.input_tokens", "query.output_tokens")]
    if all(one is not None and max(one.numbers) == 0 for one in tokens):
        found.append(root.key_place(("query",)).problem("a query has neither a prompt nor an answer"))
    scaled = [row.name for row in INPUTS.values() if row.counts_for_a_query]
    for variant in scenario.variants:
        for name, factor in variant.numbers.items():
            path = ("variants", variant.name, name)
            if name not in scaled:
                found.append(_unknown(root, path, name, scaled, "input of a query's energy"))
            else:
                found += _out_of_range(root, path, scenario.inputs[name], factor)
    queries = [USUAL, *(variant.name for variant in scenario.variants)]
    for mix in scenario.mixes:
        found += [
            _unknown(root, ("mixes", mix.name, name), name, queries, "variant")
            for name in mix.numbers
            if name not in queries
        ]
        total = sum(mix.numbers.values())
        if abs(total - 1) > SHARES_ABSOLUTE:
            place = root.key_place(("mixes", mix.name))
            found.append(place.problem(f"the shares of `{mix.name}` add up to {total:g}", "shares add up to 1"))
    results = result_names(scenario)
    for i, one in enumerate(scenario.published):
        if one.of not in results:
            found.append(_unknown(root, ("published", i, "of"), one.of, results, "result"))
        if one.quartiles is not None and not one.quartiles[0] <= one.value <= one.quartiles[1]:
            low, high = one.quartiles
            what = f"the published value {one.value:g} is not between its quartiles [{low:g}, {high:g}]"
            hint = "the value is a median; check the three numbers"
            found.append(root.key_place(("published", i, "value")).problem(what, hint))
    return found


def _out_of_range(root: Node, path: tuple[str, ...], assumption: Assumption, factor: float) -> list[Problem]:
    """The problem of a factor by which an input leaves its range; nothing is known of one that a campaign measures."""
    row, given = INPUTS[path[-1]], assumption.distribution
    if given is None:
        return []
    try:
        given.times(factor).check(row.range)
    except WrongValue as error:
        return [
            root.key_place(path).problem(f"`{path[-1]}` times {factor:g} {error}", "give a factor within its range")
        ]
    return []


def result_names(scenario: FleetScenario) -> list[str]:
    """What `published` may name, in the order of the tables."""
    variants = [variant.name for variant in scenario.variants]
    queries = [f"query.{name}" for name in (USUAL, *variants)]
    return [*queries, *(f"ratio.{name}" for name in variants), *(f"fleet.{mix.name}" for mix in scenario.mixes)]


def _unknown(root: Node, path: tuple[str | int, ...], name: str, known: list[str], kind: str) -> Problem:
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean `{near[0]}`?" if near else f"one of {', '.join(known)}"
    return root.key_place(path).problem(f"no {kind} is called `{name}`", hint)
