# SPDX-License-Identifier: Apache-2.0
"""`pybench analyse`."""

from __future__ import annotations

from pybench.cli.options import DirectoryArgument, JsonOption
from pybench.cli.show import print_json, print_tables


def analyse(directory: DirectoryArgument, as_json: JsonOption = False) -> None:
    """Print each case, each comparison and each verdict."""
    from pybench.analysis import analyse as analyse_dataset
    from pybench.dataset import load
    from pybench.dataset.coverage import measure
    from pybench.report.sections.findings import describe
    from pybench.report.sections.findings.contrast_tables import contrast_tables
    from pybench.report.sections.protocols import protocol_sections
    from pybench.report.sections.reliability import cautions_table, software_table, token_table
    from pybench.report.sections.results.cases import exclusions_table, workload_tables

    dataset = load(directory)
    analysis, coverage = analyse_dataset(dataset), measure(dataset)
    if as_json:
        print_json({**analysis.as_json(), "coverage": coverage.as_json()})
        return
    findings = describe(dataset, analysis, coverage)
    print(f"{analysis.name}: {findings.headline}\n")
    for title, sentences in findings.groups:
        print("\n".join([title, *(f"  {one.plain}" for one in sentences)]) + "\n")
    sections = protocol_sections(analysis)
    for section in sections:
        print(
            "\n".join([f"Results by protocol {section.name}", *(f"  {one.plain}" for one in section.sentences)]) + "\n"
        )
    print("\n".join(["Reliability", *(f"  {one.plain}" for one in findings.doubts)]) + "\n")
    tables = [*workload_tables(analysis, "runs"), *contrast_tables(analysis)]
    tables += [table for section in sections for table in section.tables]
    print_tables(
        [
            *tables,
            token_table(analysis),
            software_table(analysis.comparability),
            exclusions_table(analysis),
            cautions_table(dataset),
        ]
    )
