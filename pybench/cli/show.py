# SPDX-License-Identifier: Apache-2.0
"""How commands print: one JSON printer, one table printer, counts and durations in words."""

from __future__ import annotations

import codecs
import contextlib
import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pybench.campaign.layout import OUTCOMES
from pybench.words import counted

if TYPE_CHECKING:
    from pybench.report.tables import Table

SHORT_ID = 12  # hexadecimal digits of an id that are shown; `--rerun` takes as many as are unique


def print_json(content: Mapping[str, Any]) -> None:
    """Writes one JSON object. Raises ValueError for a number that JSON does not have, such as NaN.

    Where the locale is not UTF-8, other characters than ASCII are escaped, so that none is lost.
    """
    is_utf_8 = codecs.lookup(sys.stdout.encoding or "utf-8").name == "utf-8"
    print(json.dumps(content, indent=1, ensure_ascii=not is_utf_8, allow_nan=False))


def print_tables(tables: list[Table]) -> None:
    """Folds them to the width of a terminal; a file and a pipe get whole lines."""
    from pybench.report.tables import to_text

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    print("\n".join(to_text(table, width) for table in tables if table.rows), end="")


def say(text: str) -> None:
    """Writes to stderr, after what stdout has: both may be one file or pipe, and stdout is buffered there."""
    with contextlib.suppress(BrokenPipeError):  # `main` ends for this
        sys.stdout.flush()
    print(text, file=sys.stderr, flush=True)


def added_sentences(names: Sequence[str]) -> list[str]:
    """What is said of files that somebody added to a fetched publication; nothing of none."""
    if not names:
        return []
    return [f"After publication, {counted(len(names), 'file')} came to this folder, such as {names[0]}."]


def counts_text(outcomes: Mapping[str, int]) -> str:
    """`38 ok, 2 oom, 1 missing`, in the order of `OUTCOMES`."""
    names = [*OUTCOMES, "missing"]
    return ", ".join(f"{outcomes[name]} {name}" for name in names if outcomes.get(name)) or "0 runs"


def duration_text(seconds: float) -> str:
    """`42 s`, `3 min 10 s`, `2 h 05 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
