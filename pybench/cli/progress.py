# SPDX-License-Identifier: Apache-2.0
"""The line that says how far a campaign is: rewritten in place on a terminal, one line a run elsewhere."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TextIO

from pybench.campaign.recipe import Recipe
from pybench.case import Case, distinct_titles
from pybench.cli.show import counts_text, duration_text
from pybench.runner.outcome import Outcome
from pybench.runner.schedule import PlannedRun
from pybench.words import counted

_ALIKE = ("unsupported", "build_failed")  # follow from the case, and most often alike in all blocks


class Progress:
    """A `runner.Listener` that writes to `stream`.

    cases: of the campaign; the titles of others may be alike
    most: what stands before the number of runs that are to do
    """

    def __init__(self, stream: TextIO, cases: Sequence[Case] = (), most: str = "") -> None:
        self._titles = distinct_titles(cases)
        self._stream = stream
        self._most = most
        self._is_terminal = stream.isatty()
        self._pending = 0
        self._finished = 0
        self._spent_s = 0.0
        self._counts: Counter[str] = Counter()
        self._explained: set[tuple[str, str]] = set()  # case's id, and why
        self._is_open = False

    def begin(self, pending: int, done: Mapping[str, int]) -> None:
        self._pending = pending
        self._counts.update(done)
        if done:
            self._line(
                f"{counts_text(done)} from before; {self._most if pending else ''}{counted(pending, 'run')} to do"
            )

    def preparing(self, recipe: Recipe) -> None:
        self._line(f"making {recipe.title()}", stays=not self._is_terminal)

    def note(self, text: str) -> None:
        """Something worth a line of its own."""
        self._line(text)

    def running(self, planned: PlannedRun) -> None:
        if self._is_terminal:
            self._line(f"{self._state()}  {self._title(planned.case)}, block {planned.block}", stays=False)

    def finished(self, planned: PlannedRun, outcome: Outcome, wall_s: float) -> None:
        self._finished += 1
        self._counts[outcome.name] += 1
        self._spent_s += wall_s
        text = f"{self._state()}  {outcome.name} {wall_s:.1f} s  {self._title(planned.case)}, block {planned.block}"
        if self._is_news(planned, outcome):
            self._line(f"{text}: {outcome.why}")
        elif not self._is_terminal:
            self._line(text)

    def _title(self, case: Case) -> str:
        return self._titles.get(case.id) or case.title()

    def _is_news(self, planned: PlannedRun, outcome: Outcome) -> bool:
        """Whether to say why: of every failure, but once a case of what all blocks have in common."""
        if outcome.name not in _ALIKE:
            return outcome.name != "ok"
        said = (planned.case.id, outcome.why)
        is_first = said not in self._explained
        self._explained.add(said)
        return is_first

    def skipped(self) -> None:
        """Another runner does, or did, one of the runs that were to do here."""
        self._pending -= 1

    def stopping(self) -> None:
        self._line("stopping after the current run; interrupt again to stop it now")

    def close(self) -> None:
        """Leaves the terminal on a fresh line."""
        if self._is_open:
            self._write("\r\x1b[K")
            self._is_open = False

    def _state(self) -> str:
        return f"[{self._finished}/{self._pending}] {counts_text(self._counts)}, {self._most}{self._remaining()} left"

    def _remaining(self) -> str:
        """Mean over the runs of this call, times what is left; randomised order makes that fair after one block."""
        if not self._finished:
            return "?"
        return duration_text(self._spent_s / self._finished * (self._pending - self._finished))

    def _line(self, text: str, stays: bool = True) -> None:
        if self._is_terminal:
            width = shutil.get_terminal_size().columns
            self._write("\r\x1b[K" + (text if stays else text[: width - 1]) + ("\n" if stays else ""))
            self._is_open = not stays
        else:
            self._write(text + "\n")

    def _write(self, text: str) -> None:
        """Nobody may be reading any more (`| head`, a terminal that was closed): the campaign goes on.

        What could not be written stays in the stream's buffer. Python would try again at its end, and exit with 120.
        """
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), self._stream.fileno())
