# SPDX-License-Identifier: Apache-2.0
"""Results by the named protocols that the plan requests: sentences, tables, and what each protocol cannot answer."""

from __future__ import annotations

from pybench.analysis.protocols.protocol import ProtocolFinding
from pybench.report.sections.elements import Element, Heading, Items, Material, Paragraph, Section, Sentences, Tables
from pybench.report.sections.protocols.sample_tables import protocol_tables
from pybench.report.sections.protocols.sentences import protocol_sentences
from pybench.report.sections.protocols.table_one import trade_off_tables
from pybench.report.tables import Table


def build(material: Material) -> list[Element]:
    return [element for finding in material.analysis.protocols for element in _elements(finding)]


def _elements(finding: ProtocolFinding) -> list[Element]:
    return [
        Heading(finding.protocol.name),
        Paragraph(f"{finding.protocol.meaning}.", "lead"),
        Sentences(tuple(protocol_sentences(finding))),
        Tables(lambda: _tables(finding), is_printed=True),
        Items("Limits of this protocol", finding.protocol.threats),
    ]


def _tables(finding: ProtocolFinding) -> list[Table]:
    return [*trade_off_tables(finding), *(table for table in protocol_tables(finding) if table.rows)]


SECTION = Section("protocol", "Results by protocol", build)
