# SPDX-License-Identifier: Apache-2.0
"""A case, and what follows from rows for one case or two.

A `Contrast` names baseline cases by factor values (`{precision: fp32}`): every other case is compared with the case
that has those values and equals it in all other factors. Each `Criterion` bounds one comparison of one metric.
Speed is measured by `infer`, accuracy by `accuracy`: `joined` brings them together.

    factor      what a factor is
    factors     the closed list of factors, and their values
    case        one value of each factor, and the case's id
    data        what a case is calibrated and judged on, and its task
    repetitions how often a campaign runs each case, and when it stops
    questions   what blocks of runs can decide
    idle        factors that change nothing about a case
    service_levels  the bounds of latency that are asked about
    yields      the metrics that a case can have
    contrasts   what a plan declares, read and stored
    references  published values that it names next to its bounds
    curves      what it draws over which factor
    executing   whether the rows of its runtime let it run
    affinity    the CPUs that it asks for, and whether they are there
    quantising  what puts int8, int4 or fp8 into a graph
    pairing     which case is compared with which

Cases are compared here, not runs: estimates, intervals and verdicts are `pybench.analysis`.
"""

from pybench.case.case import Case, case_from_json, case_to_json, catalogue_of, distinct_titles
from pybench.case.repetitions import Repetitions

__all__ = ["Case", "Repetitions", "case_from_json", "case_to_json", "catalogue_of", "distinct_titles"]
