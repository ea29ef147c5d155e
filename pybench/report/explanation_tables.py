# SPDX-License-Identifier: Apache-2.0
"""The tables of an explanation: both times of both cases, kinds of work, and nodes with the kernels of both sides."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from pybench.analysis.explanation import Explanation, WorkShare
from pybench.analysis.kernel_rows import KernelRow
from pybench.kernels.engine_layers import NARROW
from pybench.kernels.profile import Kernel, total_ms
from pybench.report.explanation import WORK_WORDS
from pybench.report.numbers import DASH, format_fixed
from pybench.report.tables import Cell, Column, Table, number_cell, text_cell

NOT_ASSIGNED = "not assigned"
_CODES = NARROW | {"uint8"}
_LONGEST = 40  # characters of a node's or kernel's name that are shown
_DIGITS = 4  # significant digits of the longest time, which give the decimals of all


def explanation_tables(explanation: Explanation, rows: int | None = None) -> list[Table]:
    """`rows`: how many rows of nodes are shown at most; the others are summed in one. None: all."""
    return [_times_table(explanation), _work_table(explanation), _rows_table(explanation, rows)]


def _times_table(explanation: Explanation) -> Table:
    columns = (
        Column("Case", ("case",)),
        Column("Unprofiled, ms", ("latency_mean_ms",), numeric=True),
        Column("Profiled iteration, ms", ("profiled_iteration_ms",), numeric=True),
        Column("Profiled kernels, ms", ("profiled_ms",), numeric=True),
        Column("Kernels", ("kernels_count",), numeric=True),
        Column("Q/DQ nodes", ("qdq_nodes_count",), numeric=True),
    )
    rows = tuple(
        (
            text_cell(side.name),
            number_cell(side.latency_ms, note=side.why_none),
            number_cell(side.profile.iteration_ms, note=None if side.profile.iteration_ms else "not told"),
            number_cell(side.profile.total_ms if side.profile.has_times else None),
            number_cell(float(len(side.profile.running))),
            number_cell(None if side.profile.qdq_nodes is None else float(side.profile.qdq_nodes), note=None),
        )
        for side in explanation.sides
    )
    methods = dict.fromkeys(f"{side.name}: {side.profile.method}." for side in explanation.sides)
    return Table("explain-times", "Times of an iteration", columns, rows, tuple(methods))


def _work_table(explanation: Explanation) -> Table:
    names = [side.name for side in explanation.sides]
    columns = (
        Column("Kernels that", ("work",)),
        *(Column(f"{name}, kernels", (f"kernels_count_{number}",), numeric=True) for number, name in enumerate(names)),
        *(Column(f"{name}, ms", (f"time_{number}_ms",), numeric=True) for number, name in enumerate(names)),
        Column("Difference, ms", ("excess_ms",), numeric=True),
    )
    decimals = _decimals(explanation)
    rows = tuple(_work_row(share, explanation.has_times, decimals) for share in explanation.shares)
    return Table("explain-work", "What kernels do", columns, rows)


def _work_row(share: WorkShare, has_times: bool, decimals: int) -> tuple[Cell, ...]:
    times = (*share.times_ms, share.excess_ms) if has_times else (None,) * 3
    return (
        text_cell(WORK_WORDS[share.work, share.constants]),
        *(number_cell(float(count)) for count in share.counts),
        *(_time_cell(value, decimals, signed=place == 2) for place, value in enumerate(times)),
    )


def _rows_table(explanation: Explanation, most: int | None) -> Table:
    names = [side.name for side in explanation.sides]
    columns = (
        Column("Nodes", ("nodes",)),
        Column("Difference, ms", ("excess_ms",), numeric=True),
        *(Column(f"{name}, ms", (f"time_{number}_ms",), numeric=True) for number, name in enumerate(names)),
        *(
            column
            for number, name in enumerate(names)
            for column in (
                Column(f"{name}: kernels", (f"kernels_{number}",)),
                Column("around them", (f"around_{number}",)),
            )
        ),
    )
    found = explanation.rows.rows
    shown = found if most is None else found[:most]
    decimals, has_times = _decimals(explanation), explanation.has_times
    rows = [_row(row, has_times, decimals) for row in shown]
    if len(shown) < len(found):
        rows.append(_summed(f"{len(found) - len(shown)} more rows", _others(found[len(shown) :]), has_times, decimals))
    rows.append(_summed(NOT_ASSIGNED, explanation.rows.unassigned, has_times, decimals))
    order = "the costliest first" if has_times else "in the order of execution"
    notes = ("Around them: moves, reformats and quantisations that feed these kernels, or are fed by them alone.",)
    return Table("explain-rows", f"ONNX nodes, {order}", columns, tuple(rows), notes)


def _others(rows: Sequence[KernelRow]) -> tuple[tuple[Kernel, ...], tuple[Kernel, ...]]:
    first, second = (
        tuple(kernel for row in rows for kernel in (*row.sides[side].own, *row.sides[side].around)) for side in (0, 1)
    )
    return first, second


def _row(row: KernelRow, has_times: bool, decimals: int) -> tuple[Cell, ...]:
    excess = row.excess_ms if has_times else None
    times = [side.time_ms if has_times else None for side in row.sides]
    sides = [
        cell for side in row.sides for cell in (text_cell(kernels_text(side.own)), text_cell(_around(side.around)))
    ]
    return (
        Cell(nodes_text(row.nodes), csv=(" ".join(row.nodes),)),
        _time_cell(excess, decimals, signed=True),
        *(_time_cell(time, decimals) for time in times),
        *sides,
    )


def _summed(
    name: str, kernels: tuple[tuple[Kernel, ...], tuple[Kernel, ...]], has_times: bool, decimals: int
) -> tuple[Cell, ...]:
    times = [total_ms(side) if has_times else None for side in kernels]
    excess = None if times[0] is None or times[1] is None else times[0] - times[1]
    sides = [cell for side in kernels for cell in (text_cell(_counted(len(side))), text_cell(None))]
    return (
        text_cell(name),
        _time_cell(excess, decimals, signed=True),
        *(_time_cell(time, decimals) for time in times),
        *sides,
    )


def _counted(number: int) -> str:
    return f"{number} kernel" if number == 1 else f"{number} kernels"


def kernels_text(kernels: Sequence[Kernel]) -> str:
    """`QLinearConv in int8, QLinearAdd`."""
    return ", ".join(_kernel(kernel) for kernel in kernels)


def _kernel(kernel: Kernel) -> str:
    """`QLinearConv in int8`."""
    name = _short(kernel.kernel)
    return name if kernel.computes_in is None else f"{name} in {kernel.computes_in}"


def _around(kernels: Sequence[Kernel]) -> str:
    """`moves constants 2×, quantises fp32 to int8`."""
    counts = Counter(_does(kernel) for kernel in kernels)
    return ", ".join(words if count == 1 else f"{words} {count}×" for words, count in counts.items())


def _does(kernel: Kernel) -> str:
    if kernel.moves_constants:
        return "moves constants"
    if kernel.work == "quantising":
        verb = "dequantises" if _first(kernel.inputs) in _CODES else "quantises"
        return f"{verb} {_first(kernel.inputs)} to {_first(kernel.outputs)}"
    if _first(kernel.inputs) != _first(kernel.outputs):
        return f"casts {_first(kernel.inputs)} to {_first(kernel.outputs)}"
    return f"moves {_first(kernel.inputs)}" if kernel.work == "moving" else _kernel(kernel)


def _first(types: Sequence[str | None]) -> str:
    return (types[0] if types else None) or "?"


def nodes_text(nodes: Sequence[str]) -> str:
    """`conv1 and 2 more`; a dash for none."""
    if not nodes:
        return DASH
    first = _short(nodes[0])
    return first if len(nodes) == 1 else f"{first} and {len(nodes) - 1} more"


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _decimals(explanation: Explanation) -> int:
    longest = max(side.profile.total_ms for side in explanation.sides)
    return max(_DIGITS - 1 - math.floor(math.log10(longest)), 0) if longest > 0 else 0


def _time_cell(value: float | None, decimals: int, *, signed: bool = False) -> Cell:
    if value is None:
        return number_cell(None)
    text = format_fixed(value, decimals)
    return number_cell(value, text=f"+{text}" if signed and value > 0 else text)
