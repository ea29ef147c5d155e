# SPDX-License-Identifier: Apache-2.0
"""The tables of a projection: queries, fleets, what was published, where the spread is from, and every input."""

from __future__ import annotations

from collections.abc import Mapping

from pybench.catalogue.catalogue import Catalogue
from pybench.projection import Projection
from pybench.projection.measured import part_of
from pybench.projection.scenario import COMMON_GAIN, INPUTS, USUAL, Assumption, PublishedResult
from pybench.projection.simulate import FLEET_PROBABILITY, InputShare
from pybench.report.numbers import format_plain, significant
from pybench.report.tables import Cell, Column, Table, number_cell, text_cell
from pybench.words import counted

_DIGITS = 3  # a projection is no measurement: more digits would promise too much
_SHARE_COLUMNS = (
    Column("Variance removed if only this input is known", ("first",), numeric=True),
    Column("Variance left if only this input is unknown", ("total",), numeric=True),
)


def projection_tables(projection: Projection, catalogue: Catalogue) -> list[Table]:
    """All of them; those without rows included. `catalogue`: of the campaign that inputs are measured by."""
    return [
        _queries_table(projection),
        _fleets_table(projection),
        _published_table(projection),
        _shares_table(projection),
        _fleet_shares_table(projection),
        _inputs_table(projection, catalogue),
    ]


def _queries_table(projection: Projection) -> Table:
    columns = (
        Column("Query", ("query",)),
        Column("Median [quartiles], Wh", ("median_wh", "lower_quartile_wh", "upper_quartile_wh"), numeric=True),
        Column("Mean, Wh", ("mean_wh",), numeric=True),
        Column("Median [quartiles], g CO2e", ("median_g", "lower_quartile_g", "upper_quartile_g"), numeric=True),
        Column("Times the usual median", ("ratio",), numeric=True),
    )
    rows = tuple(
        (
            text_cell(one.name),
            _range_cell(one.median_wh, one.quartiles_wh),
            _rounded_cell(one.mean_wh),
            _range_cell(one.median_g, one.quartiles_g),
            _rounded_cell(one.ratio),
        )
        for one in projection.queries
    )
    scenario = projection.scenario
    notes = (
        "Brackets contain the quartiles. They include differences between queries and what is unknown of the fleet.",
        "A ratio of two medians is one number for all draws, so it has no quartiles.",
        f"{scenario.draws:,} draws with seed {scenario.seed}.",
    )
    return Table("projection-queries", "Energy of a query", columns, rows, notes)


def _fleets_table(projection: Projection) -> Table:
    columns = (
        Column("Fleet", ("fleet",)),
        Column("Its queries", ("mix",)),
        Column(
            f"Median [{FLEET_PROBABILITY:.0%}], GWh a day",
            ("energy_gwh_median", "energy_gwh_lower_95", "energy_gwh_upper_95"),
            numeric=True,
        ),
        Column(
            f"Median [{FLEET_PROBABILITY:.0%}], t CO2e a day",
            ("carbon_t_median", "carbon_t_lower_95", "carbon_t_upper_95"),
            numeric=True,
        ),
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
        f"Medians of the draws; brackets contain the central {FLEET_PROBABILITY:.0%} of the draws, not the quartiles. "
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
    notes = (
        f"Brackets of this scenario contain quartiles of a query, and {FLEET_PROBABILITY:.0%} of the draws of a fleet.",
        "The wider the brackets, the less a value inside them confirms.",
    )
    return Table("projection-published", "Published results and this scenario's", columns, tuple(rows), notes)


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
    position = "inside" if span[0] <= published <= span[1] else "outside"
    return f"{position} the brackets, whose ends are a factor of {significant(span[1] / span[0], 2)} apart"


def _shares_table(projection: Projection) -> Table:
    columns = (Column("Input", ("input",)), *_SHARE_COLUMNS)
    rows = tuple((text_cell(one.name), *_share_cells(one)) for one in projection.shares)
    note = f"Sobol indices of the logarithm of the energy of the query `{USUAL}`; one below 0 is noise, shown as 0."
    return Table("projection-shares", "Where the spread of a query comes from", columns, rows, (note,))


def _fleet_shares_table(projection: Projection) -> Table:
    columns = (Column("Fleet", ("fleet",)), Column("Input", ("input",)), *_SHARE_COLUMNS)
    rows = tuple(
        (text_cell(fleet.name), text_cell(one.name), *_share_cells(one))
        for fleet in projection.fleets
        for one in fleet.shares
    )
    note = "Sobol indices of the logarithm of the energy of a day. Tokens are not among the inputs: they average out."
    return Table("projection-fleet-shares", "Where the spread of a fleet comes from", columns, rows, (note,))


def _share_cells(share: InputShare) -> tuple[Cell, Cell]:
    return _percent_cell(share.first), _percent_cell(share.total)


def _inputs_table(projection: Projection, catalogue: Catalogue) -> Table:
    columns = (
        Column("Input", ("input",)),
        Column("Meaning", ("meaning",)),
        Column("Taken to be", ("distribution",)),
        Column("Unit", ("unit",)),
        Column("Why", ("why",)),
    )
    given = projection.scenario.inputs
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            text_cell(name),
            text_cell(row.meaning),
            text_cell(str(projection.inputs[name])),
            text_cell(row.unit),
            text_cell(why(given[name], catalogue)),
        )
        for name, row in INPUTS.items()
    )
    if COMMON_GAIN in projection.inputs:
        meaning, taken = "true over measured joules, of both energies alike", str(projection.inputs[COMMON_GAIN])
        words = (COMMON_GAIN, meaning, taken, "", "measured: both have this uncertainty in common")
        rows = (*rows, tuple(map(text_cell, words)))
    return Table("projection-inputs", "Inputs of the scenario", columns, rows, tuple(_input_notes(given)))


def _input_notes(given: Mapping[str, Assumption]) -> list[str]:
    untold = sum(one.measured is None and one.source is None and one.chosen is None for one in given.values())
    notes = [f"Without a source and a reason: {counted(untold, 'input')}."] if untold else []
    if any(one.chosen is not None for one in given.values()):
        notes.append("Results partly follow from inputs that were chosen.")
    if any(one.distribution is not None and one.distribution.form == "quartiles" for one in given.values()):
        notes.append("Quartiles are those of a log-normal distribution.")
    return notes


def why(assumption: Assumption, catalogue: Catalogue) -> str:
    """Where an input is from, in words."""
    if assumption.measured is not None:
        metric = catalogue.metrics.get(assumption.measured.metric)
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
