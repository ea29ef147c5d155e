# SPDX-License-Identifier: Apache-2.0
"""Networks in a solver's place: speed-up for each batch, errors, and where a speed-up is that of a slow baseline.

solver-speedups  one row a network and batch: time for a sample, speed-up against each solver, L1 and L-infinity errors
"""

from __future__ import annotations

from collections.abc import Sequence

from pybench.analysis.findings.cases import CaseFinding
from pybench.analysis.findings.solvers import TIME, SolverSpeedup
from pybench.catalogue.runtimes import SOLVERS
from pybench.report.labels import case_names
from pybench.report.sections.elements import Element, Material, Paragraph, Section, Sentences, Tables
from pybench.report.sentences import Sentence, estimate_text, list_text
from pybench.report.tables import Cell, Column, Table, estimate_cell, estimate_fields, number_cell, text_cell

_WORDS = {"faster": "faster", "slow_baseline": "slow baseline", "slower": "slower", "open": "undecided"}
_TONES = {"faster": "good", "slow_baseline": "bad", "slower": "bad", "open": "neutral"}
_NOT_MEASURED = "the plan has no valid run of this solver at this batch"
_NOT_JUDGED = "the plan has no accuracy case of these outputs"
_US_PER_MS = 1e3


def build(material: Material) -> list[Element]:
    found = material.analysis.solver_speedups
    if not found:
        return []
    lead = (
        f"A network is faster only if it is faster than {SOLVERS[0]}. "
        "A speed-up against another solver alone says that this solver is slow."
    )
    names = case_names([one.case for one in found])
    return [
        Paragraph(lead, "lead"),
        Sentences([_sentence(one, name) for one, name in zip(found, names, strict=True)]),
        Tables(lambda: [speedup_table(material, found, names)], is_printed=True),
    ]


def _sentence(found: SolverSpeedup, name: str) -> Sentence:
    parts = [
        f"{estimate_text(one, signed=False, ratio=True)} against {solver}" for solver, one in found.speedups.items()
    ]
    said = f"speed-up {list_text(parts)}"
    if found.verdict == "slow_baseline":
        said += (
            f". The speed-up against {list_text(found.beaten)} comes from a slow baseline: "
            f"the network is not shown to be faster than {list_text(found.unbeaten)}"
        )
    return Sentence(name, f"{said}.", _TONES[found.verdict], _WORDS[found.verdict])


def speedup_table(material: Material, found: Sequence[SolverSpeedup], names: Sequence[str]) -> Table:
    """One row a network and batch."""
    columns = (
        Column("Network", ("case", "case_id")),
        Column("Batch", ("batch",), numeric=True),
        Column("Time for a sample (µs)", estimate_fields("sample_us"), numeric=True),
        *(Column(f"Speed-up against {name}", estimate_fields(f"speedup_{name}"), numeric=True) for name in SOLVERS),
        Column("L1 error", ("l1_error",), numeric=True),
        Column("L∞ error", ("linf_error",), numeric=True),
        Column("Verdict", ("verdict",)),
    )
    times = {one.case.id: one for one in material.analysis.cases}
    rows = [
        (
            Cell(name, csv=(name, one.case.id)),
            number_cell(float(one.case.batch), text=str(one.case.batch)),
            _time_cell(times[one.case.id]),
            *(estimate_cell(one.speedups.get(solver), why_none=_NOT_MEASURED) for solver in SOLVERS),
            _error_cell(one.l1),
            _error_cell(one.linf),
            text_cell(_WORDS[one.verdict], tone=_TONES[one.verdict]),
        )
        for one, name in zip(found, names, strict=True)
    ]
    notes = (
        "Speed-up: time of the solver over that of the network at the same batch, paired within blocks.",
        "Slow baseline: faster than one solver, and not shown to be faster than another. Solvers have one thread.",
        "Errors are against float64, in the units of the data.",
    )
    return Table("solver-speedups", "Networks in place of a solver", columns, tuple(rows), notes)


def _time_cell(found: CaseFinding) -> Cell:
    estimate = found.metrics[TIME].estimate
    return estimate_cell(None if estimate is None else estimate.scaled(_US_PER_MS / found.case.batch))


def _error_cell(error: float | None) -> Cell:
    return number_cell(
        error, text=None if error is None else f"{error:.2e}", note=_NOT_JUDGED if error is None else None
    )


SECTION = Section("solvers", "Networks in place of a solver", build)
