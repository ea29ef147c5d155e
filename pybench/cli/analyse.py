# SPDX-License-Identifier: Apache-2.0
"""`pybench analyse`."""

from __future__ import annotations

from pybench.cli.options import DirectoryArgument, JsonOption
from pybench.cli.show import print_json, print_tables
from pybench.cli.stopping import stopping_json


def analyse(directory: DirectoryArgument, as_json: JsonOption = False) -> None:
    """Print each case, each comparison and each verdict."""
    from pybench.analysis import analyse as analyse_dataset
    from pybench.dataset import load
    from pybench.dataset.coverage import measure
    from pybench.processes import all_cores
    from pybench.report.sections import build_sections
    from pybench.report.sections.elements import Material

    with all_cores() as processes:
        dataset = load(directory, processes=processes)
        analysis, coverage = analyse_dataset(dataset, processes), measure(dataset)
    if as_json:
        stopping = stopping_json(dataset.plan.repetitions)
        print_json({**analysis.as_json(), "coverage": coverage.as_json(), **stopping})
        return
    sections = list(build_sections(Material(dataset, analysis, coverage, "runs"), printed=True))
    print(f"{analysis.name}\n")
    for section in sections:
        lines = [line for element in section.elements for line in element.lines]
        if lines:
            print("\n".join([section.section.title, *lines]) + "\n")
    print_tables([table for section in sections for element in section.elements for table in element.printed_tables])
