# SPDX-License-Identifier: Apache-2.0
"""The sections of the report, in their order. A new section is a module here and a row in `ORDER`.

The module, or the folder where one file is too small, defines `SECTION`.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from pybench.report.sections.elements import BuiltSection, Material, Section

ORDER = (
    "findings",
    "cell_effects",
    "cell_differences",
    "references",
    "curves",
    "operating_points",
    "architectures",
    "solvers",
    "caches",
    "service_levels",
    "frontier",
    "fits",
    "training_memory",
    "protocols",
    "reliability",
    "kernels",
    "kernel_pairs",
    "sensitivity",
    "kept_nodes",
    "energy",
    "projections",
    "results",
)


def build_sections(material: Material, *, printed: bool = False) -> Iterator[BuiltSection]:
    """Every section that has something to show, each when it is asked for; `printed`: only those that a terminal
    shows."""
    listed: list[Section] = [import_module(f"{__name__}.{name}").SECTION for name in ORDER]
    for section in listed:
        if (section.is_printed or not printed) and (elements := section.build(material)):
            yield BuiltSection(section, elements)
