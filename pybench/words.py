# SPDX-License-Identifier: Apache-2.0
"""Words that the command line, the tables and the errors say alike."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """`1 case`, `2 cases`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
