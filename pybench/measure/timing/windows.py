# SPDX-License-Identifier: Apache-2.0
"""Windows: the measured intervals inside a run. Every metric names the one that it belongs to."""

from __future__ import annotations

from dataclasses import dataclass

from pybench.measure.timing.clock import NANOSECONDS_PER_SECOND


@dataclass(frozen=True, slots=True)
class Window:
    """A closed interval on the raw clock, and the iterations finished in it."""

    name: str
    begin_ns: int
    end_ns: int
    iterations: int

    @property
    def duration_s(self) -> float:
        return (self.end_ns - self.begin_ns) / NANOSECONDS_PER_SECOND


@dataclass(slots=True)
class OpenWindow:
    """What `with session.window(name) as window` gives: the work sets `iterations` before the window closes."""

    name: str
    iterations: int = 0
