# SPDX-License-Identifier: Apache-2.0
"""What was made before the runs: each artefact, how long it took, what it cost, and what was found in it."""

from __future__ import annotations

from pybench.catalogue.kinds import KINDS
from pybench.catalogue.units import MEGA
from pybench.dataset import ArtefactRecord, Dataset
from pybench.report.tables import Cell, Column, Table, number_cell, text_cell

_ORDER = tuple(KINDS)
_NOTES = (
    "Time: for a TensorRT engine from the start of parsing to the engine, otherwise of the whole process.",
    "GPU energy: energy of the board in that time.",
)
_FOUND = ("precision_realised", "trained_on", "weights")  # labels that say what an artefact is, the first that is there


def artefacts_table(dataset: Dataset) -> Table:
    """One row an artefact, in the order in which they build on each other."""
    made = sorted(dataset.artefacts, key=_place)
    columns = (
        Column("Artefact", ("kind",)),
        Column("Of", ("parameters",)),
        Column("Outcome", ("outcome",)),
        Column("Time, s", ("seconds",), numeric=True),
        Column("GPU energy, J", ("gpu_energy_j",), numeric=True),
        Column("Size, MB", ("mb",), numeric=True),
        Column("Content", ("found",)),
    )
    rows = tuple(_row(artefact) for artefact in made)
    return Table("artefacts", "Artefacts made before the runs", columns, rows, _NOTES if rows else ())


def _place(artefact: ArtefactRecord) -> tuple[int, str]:
    known = artefact.kind in _ORDER
    return (_ORDER.index(artefact.kind) if known else len(_ORDER), _parameters(artefact))


def _row(artefact: ArtefactRecord) -> tuple[Cell, ...]:
    seconds = _value(artefact, "build_s")
    size, joules = _value(artefact, "model_bytes"), _value(artefact, "gpu_energy_j")
    good = artefact.outcome == "ok"
    return (
        text_cell(artefact.kind),
        text_cell(_parameters(artefact)),
        text_cell(artefact.outcome, tone="good" if good else "bad", note=artefact.detail),
        number_cell(artefact.duration_s if seconds is None else seconds),
        number_cell(joules, note=None if joules is not None else "no GPU was measured"),
        number_cell(None if size is None else size / MEGA),
        text_cell(_found(artefact), tone="bad" if artefact.precision is False else None),
    )


def _parameters(artefact: ArtefactRecord) -> str:
    """`resnet50, precision fp16, batch 32`: what is neither absent nor a hash."""
    shown = {name: value for name, value in artefact.parameters.items() if value is not None and "sha256" not in name}
    model = str(shown.pop("model", ""))
    return ", ".join([model, *(f"{name.replace('_', ' ')} {value}" for name, value in shown.items())])


def _found(artefact: ArtefactRecord) -> str | None:
    return next((str(artefact.labels[name]) for name in _FOUND if name in artefact.labels), None)


def _value(artefact: ArtefactRecord, metric: str) -> float | None:
    value: float | None = artefact.metrics.get(metric, {}).get("value")
    return value
