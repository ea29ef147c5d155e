# SPDX-License-Identifier: Apache-2.0
"""Where the time goes: what the kernels of each case do, and its longest nodes.

kernels        one row a case: kernels, and the shares of their time that multiply, move and quantise
longest-nodes  at most ten rows a case: nodes with their kernel, its type, time and share
"""

from __future__ import annotations

from collections.abc import Sequence

from pybench.analysis.findings.kernel_times import KernelTimes, LongNode
from pybench.kernels.profile import Kernel, Profile, Work, time_ratio, total_ms, work_of
from pybench.report.explanation_tables import kernels_text, nodes_text
from pybench.report.labels import case_names
from pybench.report.numbers import format_fixed
from pybench.report.sections.elements import Element, Material, Paragraph, Section, Tables
from pybench.report.tables import Cell, Column, Table, number_cell, text_cell

LEAD = "For each case, the kernels of one profiled iteration. Each run makes its profile outside of every window."
OUTSIDE = (
    "Each run makes its profile after its last window, so no latency and no energy contains it.",
    "Profiling changes times: compare these shares, and not these times with latencies.",
)
ROWS_ON_PAGE = 100  # of the longest nodes: ten cases; the files have all of them
_SHARES: dict[str, Work] = {"Multiplying": "multiplying", "Moving": "moving", "Quantising": "quantising"}
NO_TIMES = "the profile has no times"


def build(material: Material) -> list[Element]:
    tables = kernel_tables(material.kernel_times)
    return [Paragraph(LEAD, "lead"), Tables(lambda: tables, rows_on_page=ROWS_ON_PAGE)] if tables else []


def kernel_tables(found: Sequence[KernelTimes]) -> list[Table]:
    """Both tables; none where no run stored a profile."""
    if not found:
        return []
    names = case_names([times.case for times in found])
    return [_shares_table(found, names), _longest_table(found, names)]


def _shares_table(found: Sequence[KernelTimes], names: Sequence[str]) -> Table:
    columns = (
        Column("Case", ("case_id",)),
        Column("Kernels", ("kernels_count",), numeric=True),
        Column("that multiply", ("multiplying_kernels_count",), numeric=True),
        Column("that move", ("moving_kernels_count",), numeric=True),
        Column("that quantise", ("quantising_kernels_count",), numeric=True),
        Column("Q/DQ nodes", ("qdq_nodes_count",), numeric=True),
        *(Column(f"{label} (% of time)", (f"{work}_time_ratio",), numeric=True) for label, work in _SHARES.items()),
        Column("Made by", ("method",)),
    )
    rows = tuple(_shares_row(times, name) for times, name in zip(found, names, strict=True))
    return Table("kernels", "What the kernels of each case do", columns, rows, OUTSIDE)


def _shares_row(times: KernelTimes, name: str) -> tuple[Cell, ...]:
    profile = times.profile
    counts = [len(profile.running), *(len(work_of(profile, work)) for work in _SHARES.values())]
    return (
        Cell(name, csv=(times.case.id,)),
        *(number_cell(float(count)) for count in counts),
        number_cell(
            None if profile.qdq_nodes is None else float(profile.qdq_nodes),
            note="not told" if profile.qdq_nodes is None else None,
        ),
        *(_ratio_cell(time_ratio(profile, work)) for work in _SHARES.values()),
        text_cell(profile.method),
    )


def _longest_table(found: Sequence[KernelTimes], names: Sequence[str]) -> Table:
    columns = (
        Column("Case", ("case_id",)),
        Column("Nodes", ("nodes",)),
        Column("Kernels", ("kernels",)),
        Column("Profiled (ms)", ("time_ms",), numeric=True),
        Column("of it around (ms)", ("around_ms",), numeric=True),
        Column("Share (%)", ("time_ratio",), numeric=True),
    )
    rows = tuple(
        _longest_row(times.case.id, name, entry, times.profile)
        for times, name in zip(found, names, strict=True)
        for entry in times.longest
    )
    notes = (
        "One run of each case. A kernel may compute several nodes; a dash stands for kernels that name no node.",
        "Around: moves and quantisations that feed these kernels, or are fed by them alone.",
        "`pybench explain DIR CASE CASE` compares two cases node by node.",
    )
    return Table("longest-nodes", "The longest nodes of each case", columns, rows, notes)


def _longest_row(case_id: str, name: str, entry: LongNode, profile: Profile) -> tuple[Cell, ...]:
    return (
        Cell(name, csv=(case_id,)),
        Cell(nodes_text(entry.nodes), csv=(" ".join(entry.nodes),)),
        Cell(_kernels(entry.own), csv=(" ".join(kernel.kernel for kernel in entry.own),)),
        number_cell(entry.time_ms),
        number_cell(total_ms(entry.around)),
        _ratio_cell(entry.time_ms / profile.total_ms),
    )


def _kernels(kernels: Sequence[Kernel]) -> str:
    """Kernels of one name are told once, with their number."""
    if len({kernel.kernel for kernel in kernels}) == 1 and len(kernels) > 1:
        return f"{kernels_text(kernels[:1])} {len(kernels)}×"
    return kernels_text(kernels)


def _ratio_cell(ratio: float | None) -> Cell:
    if ratio is None:
        return number_cell(None, note=NO_TIMES)
    return number_cell(ratio, text=format_fixed(100 * ratio, 1))


SECTION = Section("time", "Where the time goes", build, is_printed=False)
