# SPDX-License-Identifier: Apache-2.0
"""Best operating point: the power limit with the least energy in each setting, how sure that is, and what it costs.

operating-points  one row a setting and limit: energy, speed, energy-delay product, and how often the limit wins
limits-WORKLOAD-PER   energy and speed over the limit, a line for each setting; PER: token, sample or gb
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pybench.analysis.findings.operating_point import LimitPoint, OperatingPoint
from pybench.analysis.statistics.bootstrap import RESAMPLES
from pybench.catalogue.metrics import Metric
from pybench.report.canvas import Drawing, Picture
from pybench.report.curves import Line, Panel, draw_curves
from pybench.report.labels import case_names, metric_title
from pybench.report.numbers import DisplayUnit, display_unit, format_fixed
from pybench.report.sections.elements import Element, Material, Paragraph, Pictures, Section, Sentences, Tables
from pybench.report.sentences import Sentence, estimate_text
from pybench.report.tables import UNITY, Cell, Column, Table, estimate_cell, estimate_fields, number_cell, text_cell

_LEAD = "In each setting, the power limit with the least energy: how sure it is, and what it costs in speed."
_AS_IS = "the board as it is"
_ONE_BLOCK = "one block: nothing to resample"
_REFERENCE = "the limit that the others are compared with"
_WORDS = {"token": "token", "sample": "sample", "gb": "GB"}  # what an energy is for


def build(material: Material) -> list[Element]:
    found = material.analysis.operating_points
    if not found:
        return []
    names = _setting_names(found)
    return [
        Paragraph(_LEAD, "lead"),
        Sentences([_sentence(one, name) for one, name in zip(found, names, strict=True)]),
        Pictures(lambda: draw_limits(found)),
        Tables(lambda: [limits_table(found, names)], is_printed=True),
    ]


def _setting_names(found: Sequence[OperatingPoint]) -> list[str]:
    """Each among the others, without the limit."""
    return case_names([one.setting.with_factors(power_limit_w=None) for one in found])


# --- sentences -------------------------------------------------------------------------------------------------------


def _sentence(found: OperatingPoint, name: str) -> Sentence:
    best, balanced = found.best, found.best_energy_delay
    if best is None or balanced is None:
        reasons = "; ".join(f"{limit_text(case.power_limit_w)}: {why}" for case, why in found.left_out)
        return Sentence(name, f"no two limits can be compared ({reasons}).", "neutral")
    unit = display_unit(found.energy.unit, [best.energy.value])
    energy = f"{estimate_text(best.energy.scaled(1 / unit.scale), signed=False, ratio=False)} {unit.name}"
    parts = [f"{limit_text(best.limit_w)} has the least energy for a {_per(found)}, {energy}{_share(best.wins_ratio)}"]
    if best.relative_speed is not None and best.relative_energy is not None:
        energy, speed = (
            estimate_text(one, signed=False, ratio=True) for one in (best.relative_energy, best.relative_speed)
        )
        parts.append(f"against {_reference_text(found)} its energy is {energy} and its speed {speed}")
    product = f"{limit_text(balanced.limit_w)} has the least energy-delay product{_share(balanced.delay_wins_ratio)}"
    return Sentence(name, f"{'; '.join([*parts, product])}.", "neutral")


def limit_text(limit_w: int | None) -> str:
    """`400 W`, or what null stands for."""
    return _AS_IS if limit_w is None else f"{limit_w} W"


def _share(ratio: float | None) -> str:
    return "" if ratio is None else f" (in {_percent(ratio)} % of resamples)"


def _percent(ratio: float) -> str:
    """Whole percents; a share that is not certain is never printed as 100 or 0."""
    text = format_fixed(100 * ratio, 0)
    if text in ("100", "0") and ratio not in (1.0, 0.0):
        return "> 99" if ratio > 0.5 else "< 1"
    return text


def _reference_text(found: OperatingPoint) -> str:
    return limit_text(None if found.reference is None else found.reference.power_limit_w)


def _per(found: OperatingPoint) -> str:
    return _WORDS[found.energy.per or "sample"]


# --- table -----------------------------------------------------------------------------------------------------------


def limits_table(found: Sequence[OperatingPoint], names: Sequence[str]) -> Table:
    """One row a setting and limit, the limits that could not be compared among them."""
    energies = _units(found)
    columns = (
        Column("Setting", ("setting",)),
        Column("Limit (W)", ("power_limit_w", "case_id"), numeric=True),
        Column(_energy_title(found, energies), ("energy_metric", *estimate_fields("energy")), numeric=True),
        Column("Energy ratio", estimate_fields("energy_ratio"), numeric=True),
        Column("Speed ratio", estimate_fields("speed_ratio"), numeric=True),
        Column("Wins (%)", ("wins_ratio",), numeric=True),
        Column("Energy-delay (µJ s)", estimate_fields("energy_delay_j_s"), numeric=True),
        Column("Wins by it (%)", ("energy_delay_wins_ratio",), numeric=True),
        Column("Blocks", ("blocks",), numeric=True),
    )
    rows = []
    for one, name in zip(found, names, strict=True):
        rows += [_row(one, point, name, energies[one.energy]) for point in one.points]
        rows += [_left_out(case.power_limit_w, case.id, why, name, len(columns)) for case, why in one.left_out]
    notes = (
        "Ratios are to the reference, which has none: the board as it is, or else the highest limit.",
        f"Wins: share of {RESAMPLES} bootstrap resamples of the blocks in which the limit has the least energy.",
        "Energy-delay: energy times time, both for one token, sample or GB.",
    )
    return Table("operating-points", "Energy and speed at each power limit", columns, tuple(rows), notes)


def _units(found: Sequence[OperatingPoint]) -> dict[Metric, DisplayUnit]:
    """One unit for all settings; several metrics share a column, and with it the unit that they are stored in."""
    metrics = list(dict.fromkeys(one.energy for one in found))
    if len(metrics) > 1:
        return dict.fromkeys(metrics, UNITY)
    values = [point.energy.value for one in found for point in one.points]
    return {metric: display_unit(metric.unit, values) for metric in metrics}


def _energy_title(found: Sequence[OperatingPoint], units: dict[Metric, DisplayUnit]) -> str:
    metrics = list(dict.fromkeys(one.energy for one in found))
    if len(metrics) == 1:
        return metric_title(metrics[0], units[metrics[0]])
    return "GPU energy for one token, sample or GB (J)"


def _row(found: OperatingPoint, point: LimitPoint, name: str, unit: DisplayUnit) -> tuple[Cell, ...]:
    energy = estimate_cell(point.energy, unit=unit, tone="good" if point is found.best else None)
    product = estimate_cell(
        point.energy_delay, unit=DisplayUnit(1e-6, "µJ s"), tone="good" if point is found.best_energy_delay else None
    )
    return (
        text_cell(name),
        _limit_cell(point.limit_w, point.case.id),
        Cell(
            energy.text,
            energy.interval,
            energy.number,
            energy.note,
            tone=energy.tone,
            csv=(found.energy.name, *energy.csv),
        ),
        *(estimate_cell(ratio, why_none=_REFERENCE) for ratio in (point.relative_energy, point.relative_speed)),
        _wins_cell(point.wins_ratio),
        product,
        _wins_cell(point.delay_wins_ratio),
        number_cell(float(len(found.blocks)), text=str(len(found.blocks))),
    )


def _left_out(limit_w: int | None, case_id: str, why: str, name: str, columns: int) -> tuple[Cell, ...]:
    return (
        text_cell(name),
        _limit_cell(limit_w, case_id),
        estimate_cell(None, why_none=why),
        *[number_cell(None)] * (columns - 3),
    )


def _limit_cell(limit_w: int | None, case_id: str) -> Cell:
    if limit_w is None:
        return Cell("as it is", csv=("", case_id))
    return Cell(str(limit_w), number=float(limit_w), csv=(str(limit_w), case_id))


def _wins_cell(ratio: float | None) -> Cell:
    return number_cell(
        ratio, text=None if ratio is None else _percent(ratio), note=_ONE_BLOCK if ratio is None else None
    )


# --- figure ----------------------------------------------------------------------------------------------------------


def draw_limits(found: Sequence[OperatingPoint]) -> list[Drawing]:
    """One figure a workload and kind of energy: energy and speed over the limit, a line for each setting."""
    groups: dict[tuple[str, str], list[OperatingPoint]] = {}
    for one in found:
        if len(_placed(one)) > 1:
            groups.setdefault((one.setting.workload, one.energy.per or ""), []).append(one)
    return [partial(_draw, f"limits-{workload}-{per}", members) for (workload, per), members in groups.items()]


def _draw(name: str, members: Sequence[OperatingPoint]) -> Picture:
    first = members[0]
    energy = display_unit(first.energy.unit, [point.energy.value for one in members for point in one.points])
    speed = display_unit(first.speed.unit, [point.speed.value for one in members for point in one.points])
    names = _setting_names(members) if len(members) > 1 else [""]
    lines = [
        [_line(one, text, quantity, unit) for one, text in zip(members, names, strict=True)]
        for quantity, unit in (("energy", energy), ("speed", speed))
    ]
    panels = [Panel(metric_title(first.energy, energy), lines[0]), Panel(_speed_title(first.speed, speed), lines[1])]
    unplaced = any(len(_placed(one)) < len(one.points) for one in members)
    caption = (
        f"{first.energy.label} and {first.speed.label} over the power limit of the board, with 95 % intervals. "
        "A ring marks the least energy. Between the points nothing was measured."
        + (" The board as it is has no place here, because its runs do not tell its limit." if unplaced else "")
    )
    return draw_curves(name, f"{first.setting.workload_row.label}: power limits", caption, "Power limit (W)", panels)


def _placed(found: OperatingPoint) -> list[tuple[float, LimitPoint]]:
    """The limits whose watts are known, ascending."""
    places = [(point.seen_w if point.limit_w is None else float(point.limit_w), point) for point in found.points]
    return sorted(((place, point) for place, point in places if place is not None), key=lambda one: one[0])


def _line(found: OperatingPoint, name: str, quantity: str, unit: DisplayUnit) -> Line:
    placed = _placed(found)
    points = [
        (place, (point.energy if quantity == "energy" else point.speed).scaled(1 / unit.scale))
        for place, point in placed
    ]
    marked = [number for number, (_, point) in enumerate(placed) if point is found.best]
    return Line(name, points, marked)


def _speed_title(metric: Metric, unit: DisplayUnit) -> str:
    return f"{metric.label} ({unit.name})" if unit.name.startswith("×") else metric_title(metric, unit)


SECTION = Section("limits", "Best operating point", build)
