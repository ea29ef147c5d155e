# SPDX-License-Identifier: Apache-2.0
"""How much of the variance lies between builds of one engine."""

from __future__ import annotations

from pybench.analysis import Analysis
from pybench.analysis.findings.build_variance import BuildVariance
from pybench.report.labels import case_text, varying_factors
from pybench.report.tables import Cell, Column, Table, estimate_cell, estimate_fields, number_cell, p_cell


def builds_table(analysis: Analysis) -> Table:
    """How much of the variance lies between builds of one engine, metric by metric."""
    engines = [finding.cases[0] for finding in analysis.builds]
    names = [name for name in varying_factors(engines) if name != "build"]
    columns = (
        Column("Engine", ("engine_build_1",)),
        Column("Metric", ("metric",)),
        Column("Builds", ("builds",), numeric=True),
        Column("Blocks", ("blocks", "blocks_left_out"), numeric=True),
        Column("SD between builds", ("sd_between_builds",), numeric=True),
        Column("SD of runs in a block", ("sd_residual",), numeric=True),
        Column("Share between builds", estimate_fields("share_between_builds"), numeric=True),
        Column("p (builds equal)", ("p_value",), numeric=True),
    )
    rows = tuple(
        (
            Cell(
                case_text(finding.cases[0], names) or "all",
                csv=(finding.cases[0].id,),
                cases=tuple(case.id for case in finding.cases),
            ),
            Cell(finding.metric.label, csv=(finding.metric.name,)),
            number_cell(len(finding.cases)),
            _blocks_cell(finding),
            _deviation_cell(finding.between, finding.is_relative),
            _deviation_cell(finding.residual, finding.is_relative),
            estimate_cell(finding.share),
            p_cell(finding.p_value),
        )
        for finding in analysis.builds
    )
    notes = (
        "Model: random effects of build and block, from blocks with runs of all builds.",
        "Percentages are standard deviations of logarithms. Drift common to a block is in neither of them.",
        "With few builds the share is uncertain, and its interval is wide.",
    )
    return Table("builds", "Variance between builds and of runs in a block", columns, rows, notes)


def _blocks_cell(finding: BuildVariance) -> Cell:
    left_out = finding.blocks_left_out
    note = f"{left_out} blocks excluded, because a build has no value or other software" if left_out else None
    return Cell(str(finding.blocks), number=float(finding.blocks), note=note, csv=(str(finding.blocks), str(left_out)))


def _deviation_cell(value: float, is_relative: bool) -> Cell:
    return number_cell(value, text=f"{100 * value:.2g} %" if is_relative else f"{value:.2g}")
