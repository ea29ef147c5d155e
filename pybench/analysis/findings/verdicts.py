# SPDX-License-Identifier: Apache-2.0
"""From intervals to verdicts: accepted, rejected or undecided, for each criterion and for all of them together.

A criterion is accepted when the whole interval keeps the bound, rejected when the whole interval breaks it, undecided
otherwise. All criteria of a case have to be accepted together, which is an intersection-union test (Berger 1982,
Technometrics 24:295): it keeps the level of one interval without a correction for their number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pybench.analysis.findings.cases import CaseFinding
from pybench.analysis.findings.contrasts import ContrastFinding, PairFinding
from pybench.analysis.measurements import NO_SUCH_NUMBER
from pybench.analysis.statistics.estimate import Estimate
from pybench.analysis.statistics.planning import blocks_to_decide
from pybench.case import Case
from pybench.case.contrasts import Criterion
from pybench.case.pairing import Pair, joined, partner_of
from pybench.case.yields import metrics_of
from pybench.catalogue.precisions import quantised_type
from pybench.catalogue.workloads import Workload


class Verdict(StrEnum):
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Judgement:
    """One criterion on one pair.

    pair: None where the plan has no case to pair with
    estimate: the number that the threshold bounds; None: there is none
    why: what keeps it undecided; None where it is decided
    blocks_to_decide: with which it may be decided; None where that is not known, or nothing is open
    """

    criterion: Criterion
    pair: Pair | None
    estimate: Estimate | None
    verdict: Verdict
    why: str | None
    blocks_to_decide: int | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "criterion": self.criterion.name,
            "metric": self.criterion.metric,
            "sense": self.criterion.sense,
            "threshold": self.criterion.threshold,
            "case_id": None if self.pair is None else self.pair.case.id,
            "estimate": None if self.estimate is None else self.estimate.as_json(),
            "verdict": self.verdict.value,
            "why": self.why,
            "blocks_to_decide": self.blocks_to_decide,
        }


@dataclass(frozen=True, slots=True)
class CaseVerdict:
    """All criteria of a contrast on one case, its accuracies joined. `verdict` is None where the contrast judges
    nothing."""

    subject: Pair
    partners: tuple[Pair, ...]
    judgements: tuple[Judgement, ...]
    verdict: Verdict | None

    @property
    def is_measured(self) -> bool:
        """Whether there is a number behind the verdict. Without one it is undecided for good, not for want of runs."""
        return self.verdict is None or any(judgement.estimate is not None for judgement in self.judgements)

    def as_json(self) -> dict[str, Any]:
        return {
            "case_id": self.subject.case.id,
            "title": self.subject.case.title(),
            "baseline_id": self.subject.baseline.id,
            "accuracy_case_ids": [pair.case.id for pair in self.partners],
            "verdict": None if self.verdict is None else self.verdict.value,
            "judgements": [judgement.as_json() for judgement in self.judgements],
        }


def judge(finding: ContrastFinding, cases: Mapping[str, CaseFinding]) -> tuple[CaseVerdict, ...]:
    """The verdicts of one contrast: infer joined with accuracy first, then the other workloads. `cases`: by id, what
    each yields by itself."""
    by_case = {pair.pair.case.id: pair for pair in finding.pairs}
    found = [pair.pair for pair in finding.pairs]
    groups: list[tuple[Pair, tuple[Pair, ...]]] = []
    for group in joined(found):
        members = group.accuracy if group.speed is None else (group.speed, *group.accuracy)
        groups.append((members[0], members[1:]))
    groups += [(pair, ()) for pair in found if partner_of(pair.case) is None]
    return tuple(
        _judge_group(subject, partners, finding.contrast.accept, by_case, cases) for subject, partners in groups
    )


def _judge_group(
    subject: Pair,
    partners: tuple[Pair, ...],
    criteria: Sequence[Criterion],
    by_case: Mapping[str, PairFinding],
    cases: Mapping[str, CaseFinding],
) -> CaseVerdict:
    judgements: list[Judgement] = []
    for criterion in criteria:
        concerned = [pair for pair in (subject, *partners) if criterion.metric in metrics_of(pair.case)]
        for pair in concerned:
            if criterion.kind == "absolute":
                judgements.append(judge_case(criterion, pair, cases[pair.case.id]))
            else:
                judgements.append(judge_criterion(criterion, by_case[pair.case.id]))
        partner = partner_of(subject.case)
        if not concerned and partner is not None and criterion.metric in _of_the_partner(subject.case, partner):
            what = "model, runtime and precision"
            if quantised_type(subject.case.precision) is not None:
                what = "model, runtime, precision and calibration"
            why = f"the plan has no {partner.name} case of this {what}"
            judgements.append(Judgement(criterion, None, None, Verdict.UNDECIDED, why))
    return CaseVerdict(subject, partners, tuple(judgements), combine([judgement.verdict for judgement in judgements]))


def judge_criterion(criterion: Criterion, finding: PairFinding) -> Judgement:
    """One criterion by the interval of the effect that it bounds."""
    effect = finding.effects.get(criterion.metric)
    if effect is None or effect.effect is None:
        why = "not measured" if effect is None else effect.why_none
        return Judgement(criterion, finding.pair, None, Verdict.UNDECIDED, why)
    estimate = effect.effect.estimate.inverse() if criterion.inverse else effect.effect.estimate
    return _by_interval(criterion, finding.pair, estimate)


def judge_case(criterion: Criterion, pair: Pair, case: CaseFinding) -> Judgement:
    """One criterion by the interval of the case's own metric."""
    found = case.metrics.get(criterion.metric)
    if found is None or found.estimate is None:
        absent = NO_SUCH_NUMBER if case.metrics else "not measured"
        why = absent if found is None else found.why_none
        return Judgement(criterion, pair, None, Verdict.UNDECIDED, why)
    return _by_interval(criterion, pair, found.estimate)


def _by_interval(criterion: Criterion, pair: Pair, estimate: Estimate) -> Judgement:
    if estimate.lower is None or estimate.upper is None:
        return Judgement(criterion, pair, estimate, Verdict.UNDECIDED, estimate.why_no_interval)
    kept = [criterion.holds(bound) for bound in (estimate.lower, estimate.upper)]
    if all(kept):
        return Judgement(criterion, pair, estimate, Verdict.ACCEPTED, None)
    if not any(kept):
        return Judgement(criterion, pair, estimate, Verdict.REJECTED, None)
    is_ratio = criterion.kind == "ratio" or (criterion.kind == "absolute" and criterion.row.mean == "geometric")
    needed = blocks_to_decide(estimate, criterion.threshold, is_ratio=is_ratio)
    return Judgement(criterion, pair, estimate, Verdict.UNDECIDED, "the interval includes the threshold", needed)


def combine(verdicts: Sequence[Verdict]) -> Verdict | None:
    """All together: one rejection rejects, one doubt leaves it undecided, nothing judged is None."""
    for verdict in (Verdict.REJECTED, Verdict.UNDECIDED, Verdict.ACCEPTED):
        if verdict in verdicts:
            return verdict
    return None


def _of_the_partner(case: Case, partner: Workload) -> frozenset[str]:
    """What the workload that is joined with the case's would yield; nothing where it does not take the model."""
    return metrics_of(case.with_factors(workload=partner.name)) if partner.accepts(case.model_row) else frozenset()
