# SPDX-License-Identifier: Apache-2.0
"""What tests read of a page: its sections, and the files of its tables, which LaTeX takes."""

from __future__ import annotations

import csv
import shutil
import subprocess
from pathlib import Path

import pytest


def rows_of(page: Path, table: str) -> list[dict[str, str]]:
    """The rows of a table's CSV file: column -> text."""
    with (page.parent / "tables" / f"{table}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def section(page: Path, name: str) -> str:
    """The HTML of the section with this id; empty where the page has none."""
    return page.read_text().partition(f'<section id="{name}"')[2].partition("</section>")[0]


def compile_latex(body: str, folder: Path) -> None:
    """Tables in a document. Skips the test where there is no LaTeX."""
    compiler = shutil.which("pdflatex")
    if compiler is None:
        pytest.skip("pdflatex is not installed: tables were not compiled")
    head, end = r"\documentclass{article}\usepackage{booktabs}\begin{document}", r"\end{document}"
    (folder / "t.tex").write_text(head + body + end)
    command = [compiler, "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stdout[-2000:]
