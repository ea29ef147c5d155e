# SPDX-License-Identifier: Apache-2.0
"""The files of `packages/` as CONTRIBUTING.md quotes them: `python -m tests.plugins.quotes` writes them there again."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "CONTRIBUTING.md"
_QUOTE = re.compile(r"`(tests/plugins/packages/[^`]+)`:\n\n```(\w+)\n(.*?)```\n", re.DOTALL)


def quoted(text: str) -> dict[str, str]:
    """Path -> what the page quotes of it."""
    return {path: content for path, _, content in _QUOTE.findall(text)}


def written(path: str) -> str:
    """A file without its first line, which names the licence."""
    return (ROOT / path).read_text().split("\n", 1)[1]


def renewed(text: str) -> str:
    """The page with every quote as its file is."""
    return _QUOTE.sub(lambda found: f"`{found[1]}`:\n\n```{found[2]}\n{written(found[1])}```\n", text)


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text()))
