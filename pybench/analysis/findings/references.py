# SPDX-License-Identifier: Apache-2.0
"""Published values next to this campaign's: how they relate, and never a pass or a fail.

A ratio or difference is compared whatever it was measured on. The value itself of a time, energy or memory is compared
only on the device that it was published for, where the source names one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pybench.analysis.comparability import board_models, processor_models
from pybench.analysis.findings.cases import CaseFinding
from pybench.analysis.findings.cell_effects import mean_over
from pybench.analysis.findings.contrasts import ContrastFinding, PairFinding
from pybench.analysis.measurements import Measurements
from pybench.analysis.statistics.estimate import Estimate
from pybench.case import Case
from pybench.case.contrasts import Contrast
from pybench.case.references import Reference
from pybench.case.yields import metrics_of
from pybench.dataset import Dataset

_MAKERS = frozenset({"nvidia", "geforce", "amd", "intel", "gpu"})  # words of a device that sources leave out
_VARIANTS = frozenset({"ti", "super", "laptop", "mobile", "max", "q", "d"})  # with one of them it is another device
TOO_FEW_CELLS = "fewer than two cells have a ratio"


class Relation(StrEnum):
    """How a published value relates to the interval here."""

    CONTAINED = "interval contains it"
    SAME_SIDE = "same side of 1"
    NEITHER = "neither"
    NOT_COMPARABLE = "not comparable"


@dataclass(frozen=True, slots=True)
class ReferenceFinding:
    """One published value with the number here that it is about.

    cases: the case, or all cells of a mean over cells
    baseline: what the case is compared with; None for the value of a metric itself
    ours: the number here with its interval
    why: what keeps the two from being compared; None where they are
    """

    contrast: Contrast
    reference: Reference
    cases: tuple[Case, ...]
    baseline: Case | None
    ours: Estimate | None
    relation: Relation
    why: str | None

    @property
    def words(self) -> str:
        """The relation; of a difference the sides are those of 0."""
        of_zero = self.relation is Relation.SAME_SIDE and self.reference.kind == "difference"
        return "same side of 0" if of_zero else self.relation.value

    def as_json(self) -> dict[str, Any]:
        return {
            "contrast": self.contrast.title(),
            **self.reference.as_json(),
            "case_ids": [case.id for case in self.cases],
            "baseline_id": None if self.baseline is None else self.baseline.id,
            "ours": None if self.ours is None else self.ours.as_json(),
            "relation": self.words,
            "why": self.why,
        }


def find_references(
    dataset: Dataset, cases: Sequence[CaseFinding], contrasts: Sequence[ContrastFinding], measurements: Measurements
) -> tuple[ReferenceFinding, ...]:
    """Every published value with each case that it was published for and that yields its metric, in the order of the
    plan."""
    by_id = {case.case.id: case for case in cases}
    found: list[ReferenceFinding] = []
    for contrast in contrasts:
        for reference in contrast.contrast.reference:
            members = [pair for pair in contrast.pairs if _is_meant(reference, pair.pair.case)]
            if reference.kind == "absolute":
                both = [case for pair in contrast.pairs for case in (pair.pair.case, pair.pair.baseline)]
                meant = [case for case in dict.fromkeys(both) if _is_meant(reference, case)]
                found += [_absolute(reference, contrast.contrast, by_id[case.id], dataset) for case in meant]
            elif reference.over_cells:
                found.append(_over_cells(reference, contrast.contrast, members, measurements))
            else:
                found += [_relative(reference, contrast.contrast, member) for member in members]
    return tuple(found)


def _is_meant(reference: Reference, case: Case) -> bool:
    """Whether the value was published for such a case, and the case can have a number of its metric."""
    return reference.selects(case) and reference.metric in metrics_of(case)


def relate(reference: Reference, ours: Estimate) -> tuple[Relation, str | None]:
    """How a published value relates to a number here, and why it does not."""
    if ours.lower is None or ours.upper is None:
        return Relation.NOT_COMPARABLE, ours.why_no_interval
    if ours.lower <= reference.value <= ours.upper:
        return Relation.CONTAINED, None
    null = {"ratio": 1.0, "difference": 0.0, "absolute": None}[reference.kind]
    if null is not None and (min(reference.value, ours.lower) > null or max(reference.value, ours.upper) < null):
        return Relation.SAME_SIDE, None
    return Relation.NEITHER, None


def _relative(reference: Reference, contrast: Contrast, member: PairFinding) -> ReferenceFinding:
    pair = member.pair
    effect = member.effects.get(reference.metric)
    if effect is None or effect.effect is None:
        why = "not measured" if effect is None else effect.why_none
        return ReferenceFinding(contrast, reference, (pair.case,), pair.baseline, None, Relation.NOT_COMPARABLE, why)
    estimate = effect.effect.estimate
    ours = estimate.inverse() if reference.inverse else estimate
    return ReferenceFinding(contrast, reference, (pair.case,), pair.baseline, ours, *relate(reference, ours))


def _over_cells(
    reference: Reference, contrast: Contrast, members: Sequence[PairFinding], measurements: Measurements
) -> ReferenceFinding:
    cases = tuple(member.pair.case for member in members)
    effect = mean_over(reference.row, contrast, members, measurements)
    if effect is None or effect.mean is None:
        why = TOO_FEW_CELLS if effect is None else effect.why_none
        return ReferenceFinding(contrast, reference, cases, None, None, Relation.NOT_COMPARABLE, why)
    ours = effect.mean.inverse() if reference.inverse else effect.mean
    return ReferenceFinding(
        contrast, reference, tuple(pair.case for pair in effect.pairs), None, ours, *relate(reference, ours)
    )


def _absolute(reference: Reference, contrast: Contrast, case: CaseFinding, dataset: Dataset) -> ReferenceFinding:
    finding = case.metrics.get(reference.metric)
    ours = None if finding is None else finding.estimate
    if finding is None or ours is None:
        why = "not measured" if finding is None else finding.why_none
        return ReferenceFinding(contrast, reference, (case.case,), None, None, Relation.NOT_COMPARABLE, why)
    if finding.absolute_95 is not None:  # of the number itself: it includes the unknown gain of the board
        half = finding.absolute_95
        ours = Estimate(ours.value, ours.value - half, ours.value + half, ours.n, ours.method, ours.confidence)
    models = board_models(dataset, case.case.id) or processor_models(dataset, case.case.id)
    why = _other_device(reference, models)
    if why is not None:
        return ReferenceFinding(contrast, reference, (case.case,), None, ours, Relation.NOT_COMPARABLE, why)
    return ReferenceFinding(contrast, reference, (case.case,), None, ours, *relate(reference, ours))


def _other_device(reference: Reference, models: frozenset[str]) -> str | None:
    """What speaks against one device for both; an accuracy depends on no device."""
    if reference.device is None or reference.row.rests_on == "accuracy":
        return None
    wanted = _words(reference.device)
    if models and all(_is_named(wanted, _words(model)) for model in models):
        return None
    here = ", ".join(sorted(models)) or "no GPU"
    return f"published on {reference.device}, measured here on {here}"


def _is_named(wanted: frozenset[str], measured: frozenset[str]) -> bool:
    """Whether a source's words name a device. A word of a variant that the source lacks makes it another one."""
    return bool(wanted) and wanted <= measured and not (measured - wanted) & _VARIANTS


def _words(device: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z0-9]+", device.lower())) - _MAKERS
