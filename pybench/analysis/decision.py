# SPDX-License-Identifier: Apache-2.0
"""Whether the blocks so far decide what a plan asks (`pybench.case.questions`).

Every question at every look is one test of a family, and all intervals of the family hold together with 95 %. So a
wrong word about any question has a probability of at most 5 %, whenever the campaign stops. A bound is decided where
the whole interval keeps it or breaks it. A headline without a bound is decided where its interval excludes "no change",
or is within the margin of equivalence.

Two things do not wait for blocks: a question without a number (its case cannot run, say), and an interval over the
units of the data of each run. docs/method/statistics.md, "Stopping when decided".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pybench.analysis.comparability import SoftwareComparisons
from pybench.analysis.findings.cases import CaseFinding, describe_cases
from pybench.analysis.findings.contrasts import PairFinding, compare_contrasts
from pybench.analysis.findings.verdicts import Verdict, judge_case, judge_criterion
from pybench.analysis.measurements import collect
from pybench.analysis.statistics.paired import Effect
from pybench.analysis.units import collect_units
from pybench.case.contrasts import Contrast, Criterion
from pybench.case.questions import count_questions, questions_about
from pybench.dataset import Dataset
from pybench.words import counted


@dataclass(frozen=True, slots=True)
class Decision:
    """How many questions are decided, how many are open, and how many are not waited for."""

    decided: int
    open: int
    not_by_blocks: int

    @property
    def is_decided(self) -> bool:
        """Without any number nothing is."""
        return self.decided > 0 and self.open == 0

    @property
    def text(self) -> str:
        """`3 of 4 questions decided, 1 not waited for`."""
        rest = f", {self.not_by_blocks} not waited for" if self.not_by_blocks else ""
        return f"{self.decided} of {counted(self.decided + self.open, 'question')} decided{rest}"


def decide(dataset: Dataset, contrasts: Sequence[Contrast]) -> Decision:
    """Looks at all questions. `dataset`: of a plan that has a rule; `contrasts`: those that it declares."""
    questions = max(count_questions(dataset.plan.cases, contrasts), 1)
    measurements, software = collect(dataset, questions), SoftwareComparisons(dataset.software)
    units = collect_units(dataset, measurements)
    compared = compare_contrasts(dataset, measurements, units, contrasts, software)
    cases = {case.case.id: case for case in describe_cases(dataset, measurements, units)}
    answers = [
        _is_decided(criterion, pair, cases)
        for finding in compared
        for pair in finding.pairs
        for criterion in questions_about(pair.pair, finding.contrast)
    ]
    return Decision(answers.count(True), answers.count(False), answers.count(None))


def _is_decided(criterion: Criterion | None, pair: PairFinding, cases: Mapping[str, CaseFinding]) -> bool | None:
    """One question; None: more blocks cannot decide it."""
    case = cases[pair.pair.case.id]
    effect = pair.effects.get(str(pair.pair.headline) if criterion is None else criterion.metric)
    over_units = effect is not None and effect.units is not None
    if criterion is None:
        if effect is None or effect.effect is None:
            return None
        return _is_told(effect.effect) or (None if over_units else False)
    if criterion.kind == "absolute":
        judgement = judge_case(criterion, pair.pair, case)
        over_units = criterion.metric in case.metrics and case.metrics[criterion.metric].over_units
    else:
        judgement = judge_criterion(criterion, pair)
    if judgement.verdict is not Verdict.UNDECIDED:
        return True
    return None if judgement.estimate is None or over_units else False


def _is_told(effect: Effect) -> bool:
    """Whether there is a change, or none that matters."""
    lower, upper = effect.estimate.lower, effect.estimate.upper
    if lower is None or upper is None:
        return False
    none, least, most = (1.0, 1 / (1 + effect.margin), 1 + effect.margin)
    if effect.scale == "difference":
        none, least, most = 0.0, -effect.margin, effect.margin
    return not lower <= none <= upper or (least <= lower and upper <= most)
