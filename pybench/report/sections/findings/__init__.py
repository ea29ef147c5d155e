# SPDX-License-Identifier: Apache-2.0
"""Findings: verdicts and effects in sentences, figures and tables; without criteria, what was measured."""

from __future__ import annotations

from pybench.analysis.findings.planes import find_planes
from pybench.report.sections.elements import Element, Material, Paragraph, Pictures, Section, Sentences, Tables
from pybench.report.sections.findings.accuracies import accuracy_tables
from pybench.report.sections.findings.contrast_tables import judged_tables
from pybench.report.sections.findings.forest import draw_forests
from pybench.report.sections.findings.paths import draw_paths
from pybench.report.sections.findings.plane import draw_planes, front_tables
from pybench.report.sections.findings.sentences import headline, sentence_groups
from pybench.report.sections.results.headlines import draw_headlines


def build(material: Material) -> list[Element]:
    analysis = material.analysis
    planes = find_planes(analysis.cases)
    groups = [Sentences(sentences, title) for title, sentences in sentence_groups(analysis)]
    return [
        Paragraph(headline(material.dataset, analysis, material.coverage), "headline"),
        *groups,
        Pictures(lambda: [*draw_paths(analysis), *draw_forests(analysis), *draw_planes(planes)]),
        # Without a comparison the plain picture of each workload is the finding.
        *([] if analysis.contrasts else [Pictures(lambda: draw_headlines(analysis))]),
        Tables(lambda: [*accuracy_tables(analysis), *front_tables(planes), *judged_tables(analysis)], is_printed=True),
    ]


SECTION = Section("found", "Findings", build)
