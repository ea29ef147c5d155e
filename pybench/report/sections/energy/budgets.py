# SPDX-License-Identifier: Apache-2.0
"""Tables of where each joule comes from: one of all cases, and for each case the budget of the run that stands for it.

joules        one row a case: energy, its two uncertainties, what plain methods say, net, tail, idle
budget-N      one run: the energy, each part of its uncertainty, the plain methods, rest, trust, the sensor
"""

from __future__ import annotations

from collections.abc import Sequence

from pybench.analysis.findings.joules import JouleFinding, expanded
from pybench.catalogue.sensors import PLAIN_METHODS
from pybench.report.numbers import DASH, decimals_for, format_fixed, format_plain
from pybench.report.tables import Cell, Column, Table, number_cell, plus_minus_cell, text_cell

# Parts of an uncertainty, as stored by the integrator and the analysis: name -> (label, meaning).
PARTS = {
    "sampling": ("Between samples", "power between the driver's samples, and their noise; the counter limits it"),
    "edges": ("Edges of the window", "power between the last sample and the edge"),
    "sensor_delay": ("Sensor's delay", "effect of the uncertainty of the delay"),
    "sensor_response": ("Sensor's lag", "effect of the uncertainty of the time constant"),
    "counter_delay": ("Counter's delay", "effect of the uncertainty of the delay and phase of the counter's tick"),
    "counter_edges": ("Counter's edges", "ticks and readings next to the edges of the window"),
    "board_state": ("State of the board", "temperature, leakage and clocks differ between windows of the same work"),
    "drift": ("Drift in the window", "the power drifts, so the same work takes a different energy later"),
    "board_gain": ("Gain of the board", "unknown without an external meter; cancels in ratios on one board"),
}
_OVERVIEW = ("counter-difference", "average-trapezoid", "instant-trapezoid")
# Of the sensor's profile: name -> (label, scale, unit).
_SENSOR = {
    "sample_delay_s": ("Delay of a sample", 1e3, "ms"),
    "response_s": ("Lag of a sample (time constant)", 1e3, "ms"),
    "sample_period_s": ("Period of the samples", 1e3, "ms"),
    "counter_tick_s": ("Tick of the counter", 1e3, "ms"),
    "counter_delay_s": ("Delay of the counter", 1e3, "ms"),
}
_SENSOR_TEXTS = {"origin": "Profile", "measured_at": "Measured at", "name": "Board", "driver": "Driver"}
_ORIGINS = {
    "measured": "measured on this board under this driver",
    "trace": "found in a recorded trace",
    "assumed": "ASSUMED: this board was not characterised",
}


# --- all cases -------------------------------------------------------------------------------------------------------


def overview_table(findings: Sequence[JouleFinding], names: Sequence[str], run_link: str) -> Table:
    """One row a case: the run that stands for it."""
    columns = (
        Column("Case", ("case_id",)),
        Column("Block", ("block",), numeric=True),
        Column("Window (s)", ("window_s",), numeric=True),
        Column("Energy (J)", ("energy_j", "absolute_95_j"), numeric=True),
        Column("Within-board (%)", ("within_95_percent",), numeric=True),
        *(Column(f"{PLAIN_METHODS[name].label} (%)", (f"{name}_error_percent",), numeric=True) for name in _OVERVIEW),
        Column("Above idle (J)", ("net_j", "net_absolute_95_j"), numeric=True),
        Column("Tail (J)", ("tail_j", "tail_absolute_95_j"), numeric=True),
        Column("Idle (W)", ("idle_before_w",), numeric=True),
        Column("Valid", ("valid", "reasons")),
    )
    rows = [_overview_row(finding, name, run_link) for finding, name in zip(findings, names, strict=True)]
    notes = (
        "One run of each case: the run with the median energy. ±: half the absolute 95 % interval.",
        "Within-board: half the 95 % interval for ratios on this board.",
        f"{', '.join(PLAIN_METHODS[name].label for name in _OVERVIEW)}: difference of that method from the energy.",
        "Energies above idle and of the tail can be negative.",
    )
    return Table("joules", "Energy of one run of each case", columns, tuple(rows), notes)


def _overview_row(finding: JouleFinding, name: str, run_link: str) -> tuple[Cell, ...]:
    window = finding.window
    folder = finding.board.directory
    within = finding.share(expanded(window.u_within_j))
    link = f"{run_link}/{folder.case_id}/{folder.path.parent.name}/{folder.path.name}/"
    return (
        Cell(name, csv=(finding.case.id,)),
        Cell(str(finding.block), number=finding.block, href=link, csv=(str(finding.block),)),
        number_cell(window.end_s - window.begin_s, text=f"{window.end_s - window.begin_s:.3f}"),
        plus_minus_cell(window.energy_j, expanded(window.u_absolute_j), note=_why(finding)),
        _percent_cell(within, signed=False),
        *(_percent_cell(finding.plain_error(method), signed=True) for method in _OVERVIEW),
        plus_minus_cell(window.net_j, expanded(finding.u_net_absolute_j)),
        plus_minus_cell(window.tail_j, expanded(finding.u_tail_absolute_j)),
        _power_cell(window.idle_before_w),
        _valid_cell(finding),
    )


def _valid_cell(finding: JouleFinding) -> Cell:
    window = finding.window
    text, tone = ("valid", "good") if window.valid else ("invalid", "bad")
    reasons = "; ".join(map(str, window.reasons))
    return Cell(text, tone=tone, note=reasons or None, csv=(str(window.valid).lower(), reasons))


def _why(finding: JouleFinding) -> str | None:
    return "; ".join(map(str, finding.window.reasons)) if finding.window.energy_j is None else None


# --- one run ---------------------------------------------------------------------------------------------------------


def budget_table(number: int, name: str, finding: JouleFinding) -> Table:
    """Everything about the energy of one run, from the joule down to the sensor."""
    columns = (
        Column("What", ("what",)),
        Column("Value", ("value", "unit"), numeric=True),
        Column("Of the energy (%)", ("share_percent",), numeric=True),
        Column("Meaning", ("meaning",)),
    )
    rows = (
        *_energy_rows(finding),
        *_part_rows(finding),
        *_method_rows(finding),
        *_rest_rows(finding),
        *_trust_rows(finding),
        *_sensor_rows(finding),
    )
    notes = (
        "u: standard uncertainty. The squares of the parts add up to the square of the whole.",
        "Other methods: their energy for the same window, and its difference from the energy above in percent.",
    )
    return Table(f"budget-{number}", f"Energy budget: {name}, block {finding.block}", columns, rows, notes)


_Row = tuple[Cell, ...]


def _energy_rows(finding: JouleFinding) -> list[_Row]:
    window = finding.window
    within_j, absolute_j = expanded(window.u_within_j), expanded(window.u_absolute_j)
    length_s = window.end_s - window.begin_s
    return [
        _row(
            "Energy",
            window.energy_j,
            "J",
            finding.share(window.energy_j),
            f"of the {window.scope}; method {window.method}; window {window.window}: {length_s:.4g} s, "
            f"{window.iterations:,} iterations",
            half=within_j,
        ),
        _row("± within-board, 95 %", within_j, "J", finding.share(within_j), "for ratios on this board"),
        _row("± absolute, 95 %", absolute_j, "J", finding.share(absolute_j), "includes the unknown gain of the board"),
    ]


def _part_rows(finding: JouleFinding) -> list[_Row]:
    rows = []
    for part in finding.parts:
        label, meaning = PARTS.get(part.name, (part.name.replace("_", " "), ""))
        rows.append(_row(f"u: {label[0].lower()}{label[1:]}", part.u_j, "J", finding.share(part.u_j), meaning))
    return rows


def _method_rows(finding: JouleFinding) -> list[_Row]:
    rows = []
    # The methods of other tools first, in their order; one that this version does not know keeps its stored name.
    for method in dict.fromkeys((*PLAIN_METHODS, *finding.window.plain_j)):
        if method in finding.window.plain_j:
            row = PLAIN_METHODS.get(method)
            label, meaning = (row.label, row.meaning) if row else (method, "")
            value_j, error = finding.window.plain_j[method], finding.plain_error(method)
            cells = _row(label, value_j, "J", error, meaning, half=expanded(finding.window.u_within_j), signed=True)
            rows.append(cells)
    return rows


def _rest_rows(finding: JouleFinding) -> list[_Row]:
    window = finding.window
    net_j, tail_j = expanded(finding.u_net_absolute_j), expanded(finding.u_tail_absolute_j)
    tail = "energy above idle from the end of the window"
    if window.tail_end_s is not None:
        tail += f" to the idle window, {window.tail_end_s - window.end_s:.3g} s later"
    rows = [
        _row("Idle power before", window.idle_before_w, "W", None, "with the model loaded, before any work"),
        _row("Idle power after", window.idle_after_w, "W", None, "at rest again, after the work"),
    ]
    if window.net_j is not None:
        rows.append(
            _row(
                "Energy above idle",
                window.net_j,
                "J",
                finding.share(window.net_j),
                "the energy minus the idle energy of the window; can be negative",
                half=net_j,
            )
        )
    if window.tail_j is not None:
        rows.append(
            _row("Tail", window.tail_j, "J", finding.share(window.tail_j), f"{tail}; can be negative", half=tail_j)
        )
    return rows


def _trust_rows(finding: JouleFinding) -> list[_Row]:
    valid = _valid_cell(finding)
    rows = [_text_row("Valid", "yes" if finding.window.valid else "NO", "", tone=valid.tone)]
    for reason in finding.window.reasons:
        rows.append(_text_row("Reason", reason.stored_code.replace("_", " "), reason.detail))
    return rows


def _sensor_rows(finding: JouleFinding) -> list[_Row]:
    sensor = finding.board.sensor
    rows = []
    for key, label in _SENSOR_TEXTS.items():
        if sensor.get(key) is not None:
            text = str(sensor[key])
            assumed = key == "origin" and text == "assumed"
            rows.append(
                _text_row(
                    label, text, _ORIGINS.get(text, "") if key == "origin" else "", tone="bad" if assumed else None
                )
            )
    for key, (label, scale, unit) in _SENSOR.items():
        value = sensor.get(key)
        if isinstance(value, int | float):
            u = sensor.get(f"u_{key}")
            meaning = f"standard uncertainty {format_plain(u * scale)} {unit}" if isinstance(u, int | float) else ""
            rows.append(_row(label, value * scale, unit, None, meaning))
    return rows


# --- cells -----------------------------------------------------------------------------------------------------------


def _row(
    what: str,
    value: float | None,
    unit: str,
    share: float | None,
    meaning: str,
    *,
    half: float | None = None,
    signed: bool = False,
) -> _Row:
    """`half`: of an interval, which says how many digits the value deserves; a budget shows one more, so that
    differences between its rows can be followed."""
    if value is None:
        shown = Cell(DASH, csv=("", unit))
    else:
        text = format_fixed(value, decimals_for(half) + 1) if half else _short(value)
        shown = Cell(f"{text} {unit}", number=value, csv=(repr(value), unit))
    return text_cell(what), shown, _percent_cell(share, signed=signed), _plain_cell(meaning)


def _text_row(what: str, text: str, meaning: str, *, tone: str | None = None) -> _Row:
    return text_cell(what), Cell(text, tone=tone, csv=(text, "")), _plain_cell(""), _plain_cell(meaning)


def _percent_cell(share: float | None, *, signed: bool) -> Cell:
    if share is None:
        return _plain_cell("")
    percent = 100 * share
    text = format_fixed(percent, 2 if abs(percent) < 10 else 1)
    return number_cell(percent, text=f"+{text}" if signed and percent > 0 else text)


def _plain_cell(text: str) -> Cell:
    """Without a dash for the empty text: there is nothing to say, and nothing is missing."""
    return Cell(text, csv=(text,))


def _power_cell(power_w: float | None) -> Cell:
    return number_cell(power_w, text=None if power_w is None else f"{power_w:.1f}")


def _short(value: float) -> str:
    """Three significant digits, as for an uncertainty or a property of a sensor."""
    return format_fixed(value, decimals_for(abs(value)) + 1) if value else "0"
