# SPDX-License-Identifier: Apache-2.0
"""The tables of an explanation: both times of both cases, kinds of work, and nodes with the kernels of both sides."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from pybench.analysis.findings.explanation import LATENCY, MEDIAN, Explanation, WorkShare
from pybench.analysis.findings.kernel_rows import KernelRow
from pybench.kernels.engine_layers import NARROW
from pybench.kernels.profile import Kernel, total_ms
from pybench.report.explanation import WORK_WORDS
from pybench.report.numbers import DASH, format_fixed
from pybench.report.tables import Cell, Column, Table, estimate_cell, estimate_fields, number_cell, text_cell
from pybench.words import counted

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
        Column("Unprofiled mean, ms", estimate_fields(LATENCY), numeric=True),
        Column("median, ms", estimate_fields(MEDIAN), numeric=True),
        Column("Profiled iteration, ms", ("profiled_iteration_ms",), numeric=True),
        Column("Profiled kernels, ms", ("profiled_ms",), numeric=True),
        Column("Kernels", ("kernels_count",), numeric=True),
        Column("Q/DQ nodes", ("qdq_nodes_count",), numeric=True),
    )
    rows = tuple(
        (
            text_cell(side.name),
            estimate_cell(side.estimates.get(LATENCY), why_none=side.why_none),
            estimate_cell(side.estimates.get(MEDIAN)),
            number_cell(side.profile.iteration_ms, note=None if side.profile.iteration_ms else "not told"),
            number_cell(side.profile.total_ms if side.profile.has_times else None),
            number_cell(float(len(side.profile.running))),
            number_cell(None if side.profile.qdq_nodes is None else float(side.profile.qdq_nodes), note=None),
        )
        for side in explanation.sides
    )
    methods = dict.fromkeys(f"{side.name}: {side.profile.method}." for side in explanation.sides)
    means = "Unprofiled: geometric means over repetitions with 95 % intervals, as in a report."
    return Table("explain-times", "Times of an iteration", columns, rows, (means, *methods))


def _work_table(explanation: Explanation) -> Table:
    names = [side.name for side in explanation.sides]
    columns = (
        Column("Kernels that", ("work",)),
        *(Column(f"{name}, kernels", (f"kernels_count_{number}",), numeric=True) for number, name in enumerate(names)),
        *_time_columns(explanation),
    )
    decimals = _decimals(explanation)
    rows = tuple(_work_row(share, decimals) for share in explanation.shares)
    return Table("explain-work", "What kernels do", columns, rows)


def _work_row(share: WorkShare, decimals: int | None) -> tuple[Cell, ...]:
    return (
        text_cell(WORK_WORDS[share.work, share.constants]),
        *(number_cell(float(count)) for count in share.counts),
        *_time_cells(share.times_ms, decimals),
    )


def _rows_table(explanation: Explanation, most: int | None) -> Table:
    names = [side.name for side in explanation.sides]
    columns = (
        Column("Nodes", ("nodes",)),
        *_time_columns(explanation),
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
    decimals = _decimals(explanation)
    rows = [_row(row, decimals) for row in shown]
    if len(shown) < len(found):
        rows.append(_summed(f"{len(found) - len(shown)} more rows", _others(found[len(shown) :]), decimals))
    rows.append(_summed(NOT_ASSIGNED, explanation.rows.unassigned, decimals))
    order = "the costliest first" if explanation.has_times else "in the order of execution"
    notes = ("Around them: moves, reformats and quantisations that feed these kernels, or are fed by them alone.",)
    return Table("explain-rows", f"ONNX nodes, {order}", columns, tuple(rows), notes)


def _others(rows: Sequence[KernelRow]) -> tuple[tuple[Kernel, ...], tuple[Kernel, ...]]:
    first, second = (
        tuple(kernel for row in rows for kernel in (*row.sides[side].own, *row.sides[side].around)) for side in (0, 1)
    )
    return first, second


def _row(row: KernelRow, decimals: int | None) -> tuple[Cell, ...]:
    texts = [text for side in row.sides for text in (kernels_text(side.own), _around(side.around))]
    return (
        Cell(nodes_text(row.nodes), csv=(" ".join(row.nodes),)),
        *_time_cells((row.sides[0].time_ms, row.sides[1].time_ms), decimals),
        *map(text_cell, texts),
    )


def _summed(
    name: str, kernels: tuple[tuple[Kernel, ...], tuple[Kernel, ...]], decimals: int | None
) -> tuple[Cell, ...]:
    texts = [text for side in kernels for text in (counted(len(side), "kernel"), None)]
    times = (total_ms(kernels[0]), total_ms(kernels[1]))
    return (text_cell(name), *_time_cells(times, decimals), *map(text_cell, texts))


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
    if kernel.work == "quantising":
        verb = "dequantises" if _first(kernel.inputs) in _CODES else "quantises"
        if kernel.of_constants:
            return f"{verb} constants"
        return f"{verb} {_first(kernel.inputs)} to {_first(kernel.outputs)}"
    if kernel.of_constants:
        return "moves constants"
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


def _decimals(explanation: Explanation) -> int | None:
    """Decimals of all times; None: there are no times, and no columns of them."""
    longest = max(side.profile.total_ms for side in explanation.sides)
    if not explanation.has_times or longest <= 0:
        return None
    return max(_DIGITS - 1 - math.floor(math.log10(longest)), 0)


def _time_columns(explanation: Explanation) -> tuple[Column, ...]:
    """The difference, then the time of each side."""
    if _decimals(explanation) is None:
        return ()
    of_sides = [
        Column(f"{side.name}, ms", (f"time_{number}_ms",), numeric=True)
        for number, side in enumerate(explanation.sides)
    ]
    return (Column("Difference, ms", ("excess_ms",), numeric=True), *of_sides)


def _time_cells(times_ms: tuple[float, float], decimals: int | None) -> list[Cell]:
    if decimals is None:
        return []
    texts = [format_fixed(value, decimals) for value in (times_ms[0] - times_ms[1], *times_ms)]
    texts[0] = f"+{texts[0]}" if times_ms[0] > times_ms[1] else texts[0]
    values = (times_ms[0] - times_ms[1], *times_ms)
    return [number_cell(value, text=text) for value, text in zip(values, texts, strict=True)]
