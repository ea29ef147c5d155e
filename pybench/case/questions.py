# SPDX-License-Identifier: Apache-2.0
"""What blocks of runs can decide: the comparisons of a plan whose interval gets narrower with each block.

A question is one bound of `accept` on one pair of cases. Where a comparison has no bounds, the headline of the workload
is asked about: is there a change? Cases that run in a few blocks only (accuracies) ask nothing here, because their
interval is over the units of their data.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pybench.case.case import Case
from pybench.case.contrasts import Contrast, Criterion
from pybench.case.pairing import Pair, pairs
from pybench.case.yields import metrics_of


def questions_about(pair: Pair, contrast: Contrast) -> list[Criterion | None]:
    """What a comparison asks of one of its pairs: bounds, or (None) whether there is a change of the headline."""
    if pair.case.workload_row.most_runs is not None:
        return []
    if contrast.accept:
        possible = metrics_of(pair.case)
        return [criterion for criterion in contrast.accept if criterion.metric in possible]
    return [] if pair.headline is None else [None]


def count_questions(cases: Sequence[Case], contrasts: Iterable[Contrast]) -> int:
    """Of a whole plan. `contrasts`: with a criterion for each bound of latency."""
    return sum(len(questions_about(pair, contrast)) for contrast in contrasts for pair in pairs(cases, contrast))
