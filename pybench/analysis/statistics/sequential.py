# SPDX-License-Identifier: Apache-2.0
"""Tests and intervals that share one level, because a campaign is looked at while its blocks are added.

A test at 0.05 that is repeated after every block finds a difference sooner or later, even where there is none. So each
of m tests has 0.05 over m, and each of m intervals misses with that probability (Bonferroni). All of them then hold
together with 95 %, however they depend on each other, at whichever of them one stops. The looks are fixed beforehand
(`pybench.case.repetitions`); what is asked at each look multiplies their number.
docs/decisions/031-stopping.md has the alternatives, and bench/intervals/stopping.py the simulated errors.
"""

from __future__ import annotations

from pybench.analysis.statistics.estimate import CONFIDENCE


def confidence_among(tests: int, together: float = CONFIDENCE) -> float:
    """The confidence of each of `tests` intervals that hold `together`, 0 to 1."""
    return 1 - (1 - together) / tests


def p_among(tests: int, p_value: float) -> float:
    """The p value of one of `tests`, below 0.05 where the interval of `confidence_among` excludes what is tested."""
    return min(1.0, tests * p_value)
