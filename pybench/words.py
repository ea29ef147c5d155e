# SPDX-License-Identifier: Apache-2.0
"""Words that the command line, the tables and the errors say alike."""

from __future__ import annotations

from pathlib import Path


def counted(number: int, noun: str) -> str:
    """`1 case`, `2 cases`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def is_utf_8(path: Path) -> bool:
    """Whether a path, from the root, is text: the libraries that open files take no other, and JSON has none."""
    try:
        str(path.absolute()).encode()
    except UnicodeEncodeError:
        return False
    return True
