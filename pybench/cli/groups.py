# SPDX-License-Identifier: Apache-2.0
"""Groups of commands whose help shows every summary whole. Click alone cuts a summary where its line ends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import typer

MOST_CHARACTERS = 200  # of a summary, which may take several lines


class WholeSummaries(typer.core.TyperGroup):
    """Lists its commands in the order in which they were added."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # Typer's own copy of Click has no public name
        write_commands(formatter, "Commands", self.commands.values())


def write_commands(formatter: Any, title: str, commands: Iterable[Any]) -> None:
    """One section of a help: name and whole summary of each command."""
    with formatter.section(title):
        formatter.write_dl([(each.name, each.get_short_help_str(limit=MOST_CHARACTERS)) for each in commands])
