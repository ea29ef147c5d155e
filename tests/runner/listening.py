# SPDX-License-Identifier: Apache-2.0
"""A listener for runners in tests. Imports nothing heavy: runners that are killed at random moments start with it."""

from __future__ import annotations

from typing import Any


class Quiet:
    """A listener that remembers."""

    def __init__(self) -> None:
        self.outcomes: list[tuple[str, int, str]] = []
        self.pending = 0
        self.done: dict[str, int] = {}
        self.notes: list[str] = []

    def begin(self, pending: int, done: Any) -> None:
        self.pending = pending
        self.done = dict(done)

    def preparing(self, recipe: Any) -> None:
        return

    def running(self, planned: Any) -> None:
        return

    def finished(self, planned: Any, outcome: Any, wall_s: float) -> None:
        self.outcomes.append((planned.case.id, planned.block, outcome.name))

    def skipped(self) -> None:
        self.pending -= 1

    def stopping(self) -> None:
        return

    def note(self, text: str) -> None:
        self.notes.append(text)
