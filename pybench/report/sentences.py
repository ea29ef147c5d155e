# SPDX-License-Identifier: Apache-2.0
"""Sentences of a report, without markup, and the numbers and lists in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pybench.analysis.statistics.estimate import Estimate
from pybench.report.numbers import format_estimate


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of the page.

    lead: the words set in bold before the text
    tone: good, bad or neutral
    verdict: a word before the text; None: there is none
    """

    lead: str
    text: str
    tone: str
    verdict: str | None = None

    @property
    def plain(self) -> str:
        return ": ".join(part for part in (self.lead, self.verdict, self.text) if part)


def estimate_text(estimate: Estimate, *, signed: bool, ratio: bool) -> str:
    """`4.22× [4.19, 4.25]`: a ratio has the sign of multiplication."""
    value, interval = format_estimate(estimate, signed=signed)
    return f"{value}{'×' if ratio else ''}" + (f" {interval}" if interval else "")


def list_text(parts: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}" if parts else "none"
