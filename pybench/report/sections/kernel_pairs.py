# SPDX-License-Identifier: Apache-2.0
"""Kernels of two runtimes side by side.

kernel-pairs  a row for each kind of work of each pair of cases that differ in the runtime and its own factors alone
"""

from __future__ import annotations

from collections.abc import Sequence

from pybench.analysis.findings.kernel_pairs import KernelPair, WorkPair, find_kernel_pairs
from pybench.report.explanation import software_text
from pybench.report.labels import case_names
from pybench.report.sections.elements import Element, Material, Paragraph, Section, Sentences, Tables
from pybench.report.sections.kernels import NO_TIMES
from pybench.report.sentences import Sentence
from pybench.report.tables import Cell, Column, Table, number_cell, text_cell

LEAD = (
    "Cases that differ in the runtime and its own factors alone. "
    "The first case of the plan is compared with each of the others, by the profile of one run."
)
NOTES = (
    "One kernel may do the work of several kernels of another runtime: more kernels are not more work.",
    "Profiled times are not latencies. Some runtimes profile layers or operators instead of GPU kernels.",
)
ROWS_ON_PAGE = 60
_SIDES = ("first", "second")


def build(material: Material) -> list[Element]:
    pairs = find_kernel_pairs(material.dataset, material.kernel_times)
    if not pairs:
        return []
    differing = [_software_sentence(pair, _names(pairs)) for pair in pairs if pair.software]
    return [
        Paragraph(LEAD, "lead"),
        *([Sentences(differing)] if differing else []),
        Tables(lambda: [pairs_table(pairs)], rows_on_page=ROWS_ON_PAGE),
    ]


def _software_sentence(pair: KernelPair, names: dict[str, str]) -> Sentence:
    first, second = (names[case.id] for case in pair.cases)
    return Sentence("Different software", software_text(second, first, pair.software), "bad")


def pairs_table(pairs: Sequence[KernelPair]) -> Table:
    """`kernel-pairs`."""
    names = _names(pairs)
    columns = (
        *(Column(f"{side.capitalize()} case", (f"{side}_case_id",)) for side in _SIDES),
        Column("Kernels that", ("work",)),
        *(Column(f"{side.capitalize()}, kernels", (f"{side}_kernels_count",), numeric=True) for side in _SIDES),
        *(Column(f"{side.capitalize()}, ms", (f"{side}_time_ms",), numeric=True) for side in _SIDES),
        Column("Difference, ms", ("difference_ms",), numeric=True),
    )
    rows = tuple(_row(pair, work, names) for pair in pairs for work in pair.works)
    return Table("kernel-pairs", "Kernels of two runtimes side by side", columns, rows, NOTES)


def _names(pairs: Sequence[KernelPair]) -> dict[str, str]:
    """Case id -> what tells the case from the others."""
    cases = list(dict.fromkeys(case for pair in pairs for case in pair.cases))
    return dict(zip((case.id for case in cases), case_names(cases), strict=True))


def _row(pair: KernelPair, work: WorkPair, names: dict[str, str]) -> tuple[Cell, ...]:
    first_ms, second_ms = work.times_ms
    difference_ms = None if first_ms is None or second_ms is None else second_ms - first_ms
    return (
        *(Cell(names[case.id], csv=(case.id,)) for case in pair.cases),
        text_cell(_VERBS[work.work]),
        *(number_cell(float(count)) for count in work.counts),
        *(number_cell(time_ms, note=None if time_ms is not None else NO_TIMES) for time_ms in work.times_ms),
        number_cell(difference_ms, note=None if difference_ms is not None else NO_TIMES),
    )


_VERBS = {"multiplying": "multiply", "moving": "move", "quantising": "quantise", "other": "do other work"}

SECTION = Section("kernel-pairs", "Kernels of two runtimes", build, is_printed=False)
