# SPDX-License-Identifier: Apache-2.0
"""Acceptance criteria: what a plan asks of its cases against their baseline, and which cases are compared with which.

A `Contrast` names baseline cases by factor values (`{precision: fp32}`): every other case is compared with the case
that has those values and equals it in all other factors. Each `Criterion` bounds one comparison of one metric; the list
of them, `CRITERIA`, is closed. Speed is measured by `infer`, accuracy by `accuracy`: `joined` brings them together.

    kinds       the closed list
    contrasts   what a plan declares, read and stored
    idle        factors that change nothing about a case
    pairing     which case is compared with which
    yields      the metrics that a case can have

Cases are compared here, not runs: estimates, intervals and verdicts are `pybench.analysis`.
"""

from pybench.criteria.contrasts import Contrast, Criterion, from_json, parse, to_json
from pybench.criteria.idle import idle_factors
from pybench.criteria.kinds import CRITERIA, threshold_problem
from pybench.criteria.pairing import Pair, joined, pairs, partner_of
from pybench.criteria.yields import metrics_of

__all__ = [
    "CRITERIA",
    "Contrast",
    "Criterion",
    "Pair",
    "from_json",
    "idle_factors",
    "joined",
    "metrics_of",
    "pairs",
    "parse",
    "partner_of",
    "threshold_problem",
    "to_json",
]
