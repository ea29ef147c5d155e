# SPDX-License-Identifier: Apache-2.0
"""Tables and paragraphs of Markdown, and who wrote them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

ROWS_SAY = "<!-- Made of rows by `make documents`. Change the rows, not this text. -->"


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = (titles, ["---"] * len(titles), *rows)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def joined(parts: Iterable[str]) -> str:
    """Paragraphs, without blanks at the ends of lines."""
    return "\n\n".join("\n".join(line.rstrip() for line in part.strip().splitlines()) for part in parts) + "\n"
