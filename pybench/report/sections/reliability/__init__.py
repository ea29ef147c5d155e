# SPDX-License-Identifier: Apache-2.0
"""Reliability: what limits the findings, coverage, validity, cautions and drift."""

from __future__ import annotations

from pybench.report.sections.elements import Element, Material, Pictures, Section, Sentences, Tables
from pybench.report.sections.reliability.boards import board_tables
from pybench.report.sections.reliability.builds import builds_table
from pybench.report.sections.reliability.cautions import cautions_table
from pybench.report.sections.reliability.coverage import coverage_table
from pybench.report.sections.reliability.doubts import doubts
from pybench.report.sections.reliability.exclusions import exclusions_table, validity_table
from pybench.report.sections.reliability.failures import failures_table
from pybench.report.sections.reliability.inputs import fed_table, token_table
from pybench.report.sections.reliability.order import draw_order
from pybench.report.sections.reliability.run_spread import run_spread_table
from pybench.report.sections.reliability.software import software_table


def build(material: Material) -> list[Element]:
    dataset, analysis, coverage = material.dataset, material.analysis, material.coverage
    return [
        Sentences(doubts(dataset, analysis, coverage)),
        Tables(lambda: [token_table(analysis), software_table(analysis.comparability)], is_printed=True),
        Tables(
            lambda: [coverage_table(coverage), validity_table(dataset), failures_table(analysis, material.run_link)]
        ),
        Tables(lambda: [exclusions_table(analysis)], is_printed=True),
        Tables(lambda: board_tables(analysis.board_models, analysis.boards), is_printed=True),
        Tables(lambda: [builds_table(analysis), run_spread_table(analysis.run_spreads), fed_table(dataset)]),
        Tables(lambda: [cautions_table(dataset)], is_printed=True),
        Pictures(lambda: draw_order(dataset, analysis)),
    ]


SECTION = Section("sure", "Reliability", build)
