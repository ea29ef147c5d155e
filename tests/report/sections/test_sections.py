# SPDX-License-Identifier: Apache-2.0
"""The recipe of a section of the report, a module and its name in `ORDER`: nothing else is to be changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybench.cli import main
from pybench.dataset import load
from pybench.report import sections, write_report
from tests.support.campaigns import CampaignBuilder, typical_cases

MODULE = """
from pybench.report.sections.elements import Paragraph, Section, Sentences, Tables
from pybench.report.sentences import Sentence
from pybench.report.tables import Column, Table, text_cell


def build(material):
    cases = [case.case.title() for case in material.analysis.cases if case.case.precision == "int8"]
    table = Table("narrow", "Narrow cases", (Column("Case", ("case",)),), tuple((text_cell(one),) for one in cases))
    sentence = Sentence("Narrow", f"{len(cases)} cases are int8.", "neutral")
    return [Paragraph("For the test.", "lead"), Sentences([sentence]), Tables(lambda: [table], is_printed=True)]


SECTION = Section("narrow", "Narrow precisions", build)
"""


def test_a_module_and_a_row_make_a_section(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "narrow.py").write_text(MODULE)
    monkeypatch.setattr(sections, "__path__", [*sections.__path__, str(tmp_path)])
    monkeypatch.setattr(sections, "ORDER", (*sections.ORDER[:1], "narrow", *sections.ORDER[1:]))
    builder = CampaignBuilder(tmp_path / "c", typical_cases(), repetitions=1)
    for case in builder.cases:
        builder.run(case, 1, {"latency_mean_ms": 1.0})
    page = write_report(load(builder.path))
    text = page.read_text()
    assert '<a href="#found">Findings</a><a href="#narrow">Narrow precisions</a>' in text
    assert '<section id="narrow">\n<h2>Narrow precisions</h2>\n<p class="lead">For the test.</p>' in text
    assert (page.parent / "tables" / "narrow.csv").read_text().startswith("case\n")
    assert main(["analyse", str(builder.path)]) == 0
    printed = capsys.readouterr().out
    assert "Narrow precisions\n  Narrow: 4 cases are int8.\n" in printed
    assert "\nNarrow cases\n" in printed


def test_every_module_is_in_the_order() -> None:
    folder = Path(str(sections.__file__)).parent
    names = {path.stem for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    assert set(sections.ORDER) == names - {"__init__", "elements"}
