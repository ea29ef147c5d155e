# SPDX-License-Identifier: Apache-2.0
"""Which nodes a search keeps in FP32, and what that makes of the error.

kept-nodes          one row a search: how many nodes stay, the error before and after
kept-node-errors    one row a node of a search: the error with it alone quantised
"""

from __future__ import annotations

from collections.abc import Sequence

from pybench.campaign.recipe import Recipe
from pybench.dataset.kept_nodes import KeptNodes, read_kept_nodes
from pybench.report.sections.elements import Element, Material, Paragraph, Section, Sentences, Tables
from pybench.report.sentences import Sentence
from pybench.report.tables import Cell, Column, Table, number_cell, text_cell

LEAD = (
    "A search keeps as few nodes in FP32 as it finds until the signal error is within `keep_error_max`. "
    "It compares outputs with those in FP32 on the samples that chose the ranges{}."
)
ROWS_ON_PAGE = 60
_NAMED = 3  # kept nodes in a cell; the table of nodes has all
_NOTES = (
    "Signal error: norm of the difference from FP32, over the norm of what the inputs change in the outputs.",
    "Files tried: each was quantised and run. Time: of the whole search.",
    "Each kept node was also tried quantised, and the bound was not met then; another set may still be smaller.",
)
_NODE_NOTES = (
    "The signal error with this node quantised and all others in FP32.",
    "A node stands also for operators behind it that the quantiser rounds by themselves, and for those of its weight.",
)


def build(material: Material) -> list[Element]:
    found = read_kept_nodes(material.dataset)
    if not found:
        return []
    names, held_out = [_name(one) for one in found], all(one.found["held_out"] for one in found)
    return [
        Paragraph(LEAD.format(", so accuracy is judged on others" if held_out else ""), "lead"),
        Sentences([_sentence(one, name) for one, name in zip(found, names, strict=True)]),
        Tables(lambda: [searches_table(found, names)], is_printed=True),
        Tables(lambda: [nodes_table(found, names)], rows_on_page=ROWS_ON_PAGE),
    ]


def searches_table(found: Sequence[KeptNodes], names: Sequence[str]) -> Table:
    """One row a search."""
    columns = (
        Column("Search", ("search", "artefact")),
        Column("Bound", ("keep_error_max",), numeric=True),
        Column("Kept", ("kept_count",), numeric=True),
        Column("of nodes", ("nodes_count",), numeric=True),
        Column("Nodes in FP32", ("kept",)),
        Column("Error, none kept", ("before_signal_error",), numeric=True),
        Column("Error", ("signal_error",), numeric=True),
        Column("Top-1 agreement, none kept", ("before_top1_agreement_ratio",), numeric=True),
        Column("Top-1 agreement", ("top1_agreement_ratio",), numeric=True),
        Column("Samples", ("samples_count",), numeric=True),
        Column("Files tried", ("trials_count",), numeric=True),
        Column("Time, s", ("seconds",), numeric=True),
    )
    rows = []
    for one, name in zip(found, names, strict=True):
        kept, before, after = one.found["kept"], one.found["before"], one.found["after"]
        rows.append(
            (
                Cell(name, csv=(name, one.making.digest), cases=one.cases or None),
                number_cell(one.making.parameters["keep_error_max"]),
                number_cell(float(len(kept))),
                number_cell(float(one.found["units"])),
                Cell(_folded(kept), csv=(" ".join(kept),)),
                _error(before["signal_error"]),
                _error(after["signal_error"]),
                number_cell(before["top1_agreement_ratio"]),
                number_cell(after["top1_agreement_ratio"]),
                number_cell(float(one.found["samples"])),
                number_cell(float(one.found["trials"])),
                number_cell(one.making.duration_s),
            )
        )
    return Table("kept-nodes", "What a search kept in FP32", columns, tuple(rows), _NOTES)


def nodes_table(found: Sequence[KeptNodes], names: Sequence[str]) -> Table:
    """One row a node of each search, the largest error first."""
    columns = (
        Column("Search", ("search",)),
        Column("Node", ("node",)),
        Column("In FP32", ("is_kept",)),
        Column("Error, only this quantised", ("signal_error",), numeric=True),
    )
    rows = tuple(
        (
            Cell(name, csv=(name,), cases=one.cases or None),
            text_cell(node),
            text_cell("yes" if node in one.found["kept"] else "no"),
            _error(error),
        )
        for one, name in zip(found, names, strict=True)
        for node, error in one.found["alone"].items()
    )
    return Table("kept-node-errors", "What each node costs alone", columns, rows, _NODE_NOTES if rows else ())


def _name(one: KeptNodes) -> str:
    """`mobilenet-v2 int8 pybench calibration_images=20 keep_error_max=0.05`: as while it is made, without the kind."""
    kind = one.making.kind
    return Recipe(kind, tuple(one.making.parameters.items())).title().removeprefix(f"{kind} ")


def _sentence(one: KeptNodes, name: str) -> Sentence:
    before, after = one.found["before"]["signal_error"], one.found["after"]["signal_error"]
    kept, units = one.found["kept"], one.found["units"]
    if not kept:
        return Sentence(name, f"nothing has to stay in FP32: the signal error is {before:.2g}.", "good")
    was = "no number" if before is None else f"{before:.2g}"
    stay = "stays" if len(kept) == 1 else "stay"
    text = f"{len(kept)} of {units} nodes {stay} in FP32, and the signal error is {after:.2g} instead of {was}."
    return Sentence(name, text, "neutral")


def _folded(kept: Sequence[str]) -> str:
    rest = len(kept) - _NAMED
    return ", ".join([*kept[:_NAMED], *([f"and {rest} more"] if rest > 0 else [])]) or "none"


def _error(value: float | None) -> Cell:
    return number_cell(value, note="no finite number" if value is None else None)


SECTION = Section("kept-nodes", "What has to stay in FP32", build)
