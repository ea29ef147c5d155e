# SPDX-License-Identifier: Apache-2.0
"""Where the error of a quantised model comes from: its nodes, ranked, and its pairs of Q/DQ.

sensitivity         one row a node: the loss with it alone quantised, and with all but it
calibration-errors  one row a case: rounding and clipping over its tensors
tensor-errors       one row a pair of Q/DQ: rounding and clipping of its tensor
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import polars as pl

from pybench.dataset.sensitivity import Sensitivity, read_sensitivities
from pybench.report.canvas import (
    BLUE,
    GREY,
    VERMILION,
    WIDTH_INCH,
    Picture,
    label_rows,
    picture,
    plain_log_ticks,
    spans_widely,
)
from pybench.report.labels import case_names
from pybench.report.sections.elements import Element, Material, Paragraph, Pictures, Section, Sentences, Tables
from pybench.report.sentences import Sentence
from pybench.report.tables import Cell, Column, Table, number_cell, text_cell

LEAD = (
    "For each case, the graph is run with only one node quantised, and with all nodes but one. The relative error "
    "compares the outputs with those in FP32, on samples that chose no range."
)
ROWS_ON_PAGE = 60
_MOST_FIGURES = 6
_MOST_ROWS = 20  # of a figure; the table has all nodes
_NOTES = (
    "Ranked by the error with only this node quantised. Errors do not add up: they differ in direction, too.",
    "A node is quantised when it reads its inputs through pairs of Q/DQ.",
    "`other operators`: all that read pairs and do not multiply, such as sums and pools.",
)
_PAIR_NOTES = (
    "Root mean squares over all values of a tensor, relative to that of the tensor.",
    "Rounding: of values inside the range of the codes. Clipping: of values outside, which become the last code.",
    "The squares of rounding and clipping add up to the square of the pair's whole error.",
)


def build(material: Material) -> list[Element]:
    found = read_sensitivities(material.dataset)
    if not found:
        return []
    names = case_names([one.case for one in found])
    return [
        Paragraph(LEAD, "lead"),
        Sentences([_sentence(one, name) for one, name in zip(found, names, strict=True)]),
        Pictures(
            lambda: [
                partial(_draw, n, *pair) for n, pair in enumerate(list(zip(found, names, strict=True))[:_MOST_FIGURES])
            ]
        ),
        Tables(lambda: [nodes_table(found, names)], is_printed=True, rows_on_page=ROWS_ON_PAGE),
        Tables(lambda: [cases_table(found, names), tensors_table(found, names)], rows_on_page=ROWS_ON_PAGE),
    ]


# --- tables ----------------------------------------------------------------------------------------------------------


def nodes_table(found: Sequence[Sensitivity], names: Sequence[str]) -> Table:
    """One row for each node of each case, the worst first. Top-1 only where a case has labels."""
    has_labels = any(one.whole["top1_percent"] is not None for one in found)
    measures = {
        "relative_error": "Relative error",
        "top1_agreement_ratio": "Top-1 agreement",
        **({"top1_percent": "Top-1 (%)"} if has_labels else {}),
    }
    columns = [Column("Case", ("case_id",)), Column("Node", ("node",)), Column("Operator", ("operator",))]
    for kind, words in (("only", "only this"), ("all_but", "all but this")):
        columns += [
            Column(f"{title}, {words}", (f"{kind}_{measure}",), numeric=True) for measure, title in measures.items()
        ]
    rows = []
    for one, name in zip(found, names, strict=True):
        for row in one.nodes.iter_rows(named=True):
            numbers = [row[f"{kind}_{measure}"] for kind in ("only", "all_but") for measure in measures]
            head = Cell(name, csv=(one.case.id,)), text_cell(row["node"]), text_cell(row["operator"])
            rows.append((*head, *map(_number, numbers)))
    return Table("sensitivity", "What each node costs", tuple(columns), tuple(rows), _NOTES)


def cases_table(found: Sequence[Sensitivity], names: Sequence[str]) -> Table:
    """One row a case: what its calibration did to its activations, and its scales to its weights."""
    columns = (
        Column("Case", ("case_id",)),
        Column("Activations", ("activations_count",), numeric=True),
        Column("Rounding", ("activations_rounding_ratio",), numeric=True),
        Column("Clipping", ("activations_clipping_ratio",), numeric=True),
        Column("Most clipped", ("most_clipped_tensor",)),
        Column("its clipping", ("most_clipped_ratio",), numeric=True),
        Column("Weights", ("weights_count",), numeric=True),
        Column("Rounding of weights", ("weights_rounding_ratio",), numeric=True),
    )
    rows = []
    for one, name in zip(found, names, strict=True):
        activations, weights = (one.tensors.filter(pl.col("is_weight") == value) for value in (0, 1))
        clipped = activations.filter(pl.col("clipping_ratio") > 0).sort("clipping_ratio", descending=True)
        worst: dict[str, Any] = clipped.row(0, named=True) if clipped.height else {}
        rows.append(
            (
                Cell(name, csv=(one.case.id,)),
                number_cell(float(activations.height)),
                _number(_typical(activations, "rounding_ratio")),
                _number(_typical(activations, "clipping_ratio")),
                text_cell(worst.get("tensor"), note=None if worst else "nothing is clipped"),
                _number(worst.get("clipping_ratio")),
                number_cell(float(weights.height)),
                _number(_typical(weights, "rounding_ratio")),
            )
        )
    notes = (*_PAIR_NOTES, "Rounding and clipping here are root mean squares over the tensors of a case.")
    return Table("calibration-errors", "Rounding and clipping of each case", columns, tuple(rows), notes)


def tensors_table(found: Sequence[Sensitivity], names: Sequence[str]) -> Table:
    """One row for each pair of each case."""
    columns = (
        Column("Case", ("case_id",)),
        Column("Tensor", ("tensor",)),
        Column("Kind", ("kind",)),
        Column("Scales", ("scales",), numeric=True),
        Column("RMS", ("rms",), numeric=True),
        Column("Rounding", ("rounding_ratio",), numeric=True),
        Column("Clipping", ("clipping_ratio",), numeric=True),
        Column("Clipped values (%)", ("clipped_percent",), numeric=True),
    )
    rows = tuple(
        (
            Cell(name, csv=(one.case.id,)),
            text_cell(row["tensor"]),
            text_cell("weight" if row["is_weight"] else "activation"),
            number_cell(float(row["scales"])),
            *(_number(row[field]) for field in ("rms", "rounding_ratio", "clipping_ratio")),
            number_cell(100 * row["clipped_ratio"]),
        )
        for one, name in zip(found, names, strict=True)
        for row in one.tensors.iter_rows(named=True)
    )
    return Table("tensor-errors", "Rounding and clipping of each tensor", columns, rows, _PAIR_NOTES)


def _typical(tensors: pl.DataFrame, column: str) -> float | None:
    """Root mean square over tensors; None without any."""
    squares = tensors[column].drop_nulls() ** 2
    return float(squares.mean()) ** 0.5 if squares.len() else None  # type: ignore[arg-type]


def _number(value: float | None) -> Cell:
    return number_cell(value, note="no finite number" if value is None else None)


# --- words and figures -----------------------------------------------------------------------------------------------


def _sentence(one: Sensitivity, name: str) -> Sentence:
    nodes = one.nodes.filter(pl.col("operator").fill_null("") != "")  # without `other operators`
    if nodes.is_empty():
        return Sentence(name, "no node that multiplies is quantised.", "neutral")
    worst = nodes.row(0, named=True)
    error, whole = worst["only_relative_error"], one.whole["relative_error"]
    samples = f"{one.whole['samples']} samples"
    if error is None or whole is None:
        what = "all nodes" if whole is None else f"only {worst['node']}"
        return Sentence(name, f"with {what} quantised, outputs have no finite error on {samples}.", "bad")
    return Sentence(
        name,
        f"with all nodes quantised, outputs have a relative error of {whole:.2g} on {samples}; "
        f"the largest of one node alone is {error:.2g}, of {worst['node']}.",
        "neutral",
    )


def _draw(number: int, one: Sensitivity, name: str) -> Picture:
    import matplotlib.pyplot as plt

    rows = one.nodes.drop_nulls(["only_relative_error", "all_but_relative_error"]).head(_MOST_ROWS)
    figure, axes = plt.subplots(figsize=(WIDTH_INCH, 1.0 + 0.22 * rows.height))
    places = list(range(rows.height))
    only, all_but = rows["only_relative_error"].to_list(), rows["all_but_relative_error"].to_list()
    look: dict[str, Any] = {"linestyle": "none", "markersize": 5, "markeredgecolor": "white", "markeredgewidth": 0.6}
    axes.plot(only, places, marker="o", color=VERMILION, label="only this node", **look)
    axes.plot(all_but, places, marker="s", color=BLUE, label="all but this node", **look)
    whole = one.whole["relative_error"]
    if whole is not None:
        axes.axvline(whole, color=GREY, linewidth=0.8, linestyle=":", label="all nodes")
    label_rows(axes, rows["node"].to_list())
    if spans_widely([*only, *all_but]):
        plain_log_ticks(axes)
    else:
        axes.set_xlim(left=0)
    axes.set_xlabel("Relative error of the outputs")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    rest = one.nodes.height - rows.height
    caption = f"{name}: nodes ranked by the error of each alone." + (f" {rest} more are in the table." if rest else "")
    return picture(f"sensitivity-{number + 1}", "What each node costs", caption, figure)


SECTION = Section("sensitivity", "Where the error comes from", build)
