# SPDX-License-Identifier: Apache-2.0
"""What tests read of a page: its sections, and the files of its tables."""

from __future__ import annotations

import csv
from pathlib import Path


def rows_of(page: Path, table: str) -> list[dict[str, str]]:
    """The rows of a table's CSV file: column -> text."""
    with (page.parent / "tables" / f"{table}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def section(page: Path, name: str) -> str:
    """The HTML of the section with this id; empty where the page has none."""
    return page.read_text().partition(f'<section id="{name}"')[2].partition("</section>")[0]
