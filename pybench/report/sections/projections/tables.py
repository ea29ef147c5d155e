# SPDX-License-Identifier: Apache-2.0
"""The tables of a projection: queries, fleets, what was published, where the spread is from, and every input."""

from __future__ import annotations

from pybench.catalogue.metrics import METRICS
from pybench.projection import Projection
from pybench.projection.measured import part_of
from pybench.projection.scenario import INPUTS, USUAL, Assumption, PublishedResult
from pybench.projection.simulate import FLEET_PROBABILITY
from pybench.report.numbers import format_plain, significant
from pybench.report.tables import Cell, Column, Table, number_cell, text_cell

_DIGITS = 3  # a projection is no measurement: more digits would promise too much


def projection_tables(projection: Projection) -> list[Table]:
    """All of them; those without rows included."""
    return [
        _queries_table(projection),
        _fleets_table(projection),
        _published_table(projection),
        _shares_table(projection),
        _inputs_table(projection),
    ]


def _queries_table(projection: Projection) -> Table:
    columns = (
        Column("Query", ("query",)),
        Column("Median, Wh", ("median_wh", "lower_quartile_wh", "upper_quartile_wh"), numeric=True),
        Column("Mean, Wh", ("mean_wh",), numeric=True),
        Column("Median, g CO2e", ("median_g",), numeric=True),
        Column("Times the usual median", ("ratio",), numeric=True),
    )
    rows = tuple(
        (
            text_cell(one.name),
            _range_cell(one.median_wh, one.quartiles_wh),
            _rounded_cell(one.mean_wh),
            _rounded_cell(one.median_g),
            _rounded_cell(one.ratio),
        )
        for one in projection.queries
    )
    scenario = projection.scenario
    notes = (
        "Brackets contain the quartiles. They include differences between queries and what is unknown of the fleet.",
        f"{scenario.draws:,} draws with seed {scenario.seed}.",
    )
    return Table("projection-queries", "Energy of a query", columns, rows, notes)


def _fleets_table(projection: Projection) -> Table:
    columns = (
        Column("Fleet", ("fleet",)),
        Column("Its queries", ("mix",)),
        Column("GWh a day", ("energy_gwh", "energy_gwh_lower", "energy_gwh_upper"), numeric=True),
        Column("t CO2e a day", ("carbon_t", "carbon_t_lower", "carbon_t_upper"), numeric=True),
    )
    mixes = {mix.name: mix.numbers for mix in projection.scenario.mixes}
    rows = tuple(
        (
            text_cell(one.name),
            text_cell(", ".join(f"{share:.4g} {query}" for query, share in mixes[one.name].items())),
            _range_cell(one.energy_gwh, one.energy_interval_gwh),
            _range_cell(one.carbon_t, one.carbon_interval_t),
        )
        for one in projection.fleets
    )
    note = (
        f"Brackets contain {FLEET_PROBABILITY:.0%} of the draws. "
        "They do not include differences between queries, which average out."
    )
    return Table("projection-fleets", "Energy of a fleet", columns, rows, (note,))


def _published_table(projection: Projection) -> Table:
    columns = (
        Column("Result", ("result",)),
        Column("Published", ("published", "published_lower", "published_upper"), numeric=True),
        Column("This scenario", ("value", "lower", "upper"), numeric=True),
        Column("Published is", ("position",)),
        Column("Source", ("source",)),
    )
    rows = []
    for one in projection.scenario.published:
        value, span = projection.result(one.of)
        rows.append(
            (
                text_cell(f"{one.of}, {_unit(one.of)}".removesuffix(", ")),
                _published_cell(one),
                _range_cell(value, span),
                text_cell(_position(one.value, value, span)),
                text_cell(one.source),
            )
        )
    return Table("projection-published", "Published results and this scenario's", columns, tuple(rows))


def _published_cell(one: PublishedResult) -> Cell:
    """With the digits that were published."""
    low, high = ("", "") if one.quartiles is None else map(repr, one.quartiles)
    interval = None if one.quartiles is None else f"[{low}, {high}]"
    return Cell(f"{one.value:g}", interval, one.value, csv=(repr(one.value), low, high))


def _unit(result: str) -> str:
    return {"query": "Wh", "fleet": "GWh a day"}.get(result.partition(".")[0], "")


def _position(published: float, ours: float, span: tuple[float, float] | None) -> str:
    if span is None:
        return f"{significant(published / ours, _DIGITS)} times this scenario's"
    return "inside the brackets" if span[0] <= published <= span[1] else "outside the brackets"


def _shares_table(projection: Projection) -> Table:
    columns = (
        Column("Input", ("input",)),
        Column("Variance removed if only this input is known", ("first",), numeric=True),
        Column("Variance left if only this input is unknown", ("total",), numeric=True),
    )
    rows = tuple((text_cell(one.name), _percent_cell(one.first), _percent_cell(one.total)) for one in projection.shares)
    note = f"Sobol indices of the logarithm of the energy of the query `{USUAL}`; one below 0 is noise, shown as 0."
    return Table("projection-shares", "Where the spread of a query comes from", columns, rows, (note,))


def _inputs_table(projection: Projection) -> Table:
    columns = (
        Column("Input", ("input",)),
        Column("Meaning", ("meaning",)),
        Column("Taken to be", ("distribution",)),
        Column("Unit", ("unit",)),
        Column("Why", ("why",)),
    )
    given = projection.scenario.inputs
    rows = tuple(
        (
            text_cell(name),
            text_cell(row.meaning),
            text_cell(str(projection.inputs[name])),
            text_cell(row.unit),
            text_cell(why(given[name])),
        )
        for name, row in INPUTS.items()
    )
    note = "Results partly follow from inputs that were chosen. Quartiles are those of a log-normal distribution."
    return Table("projection-inputs", "Inputs of the scenario", columns, rows, (note,))


def why(assumption: Assumption) -> str:
    """Where an input is from, in words."""
    if assumption.measured is not None:
        metric = METRICS.get(assumption.measured.metric)
        part = None if metric is None else part_of(metric)
        of_part = "" if part is None else f", joules of {part}"
        return f"measured: {assumption.measured.metric} of {assumption.measured.case}{of_part}"
    if assumption.source is not None:
        return f"source: {assumption.source}"
    return "not stated" if assumption.chosen is None else f"chosen: {assumption.chosen}"


def _rounded_cell(value: float) -> Cell:
    return number_cell(value, text=significant(value, _DIGITS))


def _percent_cell(value: float) -> Cell:
    return number_cell(value, text=f"{format_plain(max(round(100 * value), 0))} %")


def _range_cell(value: float, span: tuple[float, float] | None) -> Cell:
    if span is None:
        return Cell(significant(value, _DIGITS), number=value, csv=(repr(value), "", ""))
    interval = f"[{significant(span[0], _DIGITS)}, {significant(span[1], _DIGITS)}]"
    return Cell(significant(value, _DIGITS), interval, value, csv=(repr(value), repr(span[0]), repr(span[1])))
