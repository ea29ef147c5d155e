# SPDX-License-Identifier: Apache-2.0
"""Which case is compared with which: each with the baseline that equals it elsewhere, speeds with their accuracies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from pybench.case import Case
from pybench.case.contrasts import Contrast
from pybench.case.data import content_of, data_of
from pybench.case.factors import factor_names, followers_of
from pybench.case.yields import metrics_of
from pybench.catalogue.workloads import Workload
from pybench.errors import UsageError


@dataclass(frozen=True, slots=True)
class Pair:
    """A case and the case that it is compared with."""

    case: Case
    baseline: Case

    @property
    def ids(self) -> tuple[str, str]:
        return self.case.id, self.baseline.id

    @property
    def headline(self) -> str | None:
        """The metric that the pair is judged by where a plan does not say."""
        if not self.differs_in_size:
            return self.case.headline
        yielded = metrics_of(self.case)
        return next((name for name in self.case.workload_row.rates if name in yielded), self.case.headline)

    @property
    def differs_in_size(self) -> bool:
        """Whether one iteration has more samples than one of the other side, so that their latencies are of unequal
        work. Where requests arrive by themselves, a latency is what a user waits for, whatever the batch."""
        return self.case.batch != self.baseline.batch and self.case.arrivals == self.baseline.arrivals == "closed"


@dataclass(frozen=True, slots=True)
class SpeedWithAccuracy:
    """A speed with the accuracies of the same answers; `speed` is None where only those are."""

    speed: Pair | None
    accuracy: tuple[Pair, ...]


def pairs(cases: Sequence[Case], contrast: Contrast) -> tuple[Pair, ...]:
    """Every case that `where` selects and that is no baseline itself, with its baseline, in the order of `cases`.

    A case without a baseline is left out. A factor that follows from the baseline's (a calibration from `precision`)
    may differ when it is idle in one of the two. UsageError when several baselines fit one case.
    """
    followers = _followers(contrast)
    free = followers | set(contrast.baseline)
    must_agree = followers - {"checkpoint"} if "model" in contrast.baseline else followers
    baselines: dict[tuple[object, ...], list[Case]] = {}
    for case in cases:
        if _is_baseline(case, contrast):
            baselines.setdefault(_match_key(case, free), []).append(case)
    found: list[Pair] = []
    for case in cases:
        if _is_baseline(case, contrast) or not contrast.selects(case):
            continue
        candidates = [other for other in baselines.get(_match_key(case, free), []) if agree(case, other, must_agree)]
        if len(candidates) > 1:
            raise _ambiguous(case, candidates)
        found.extend(Pair(case, other) for other in candidates)
    return tuple(found)


def agree(case: Case, other: Case, names: Iterable[str]) -> bool:
    """Whether two cases have equal values of these factors, without those that are idle in one of the two."""
    return all(case.value(name) == other.value(name) for name in set(names) - case.idle - other.idle)


def joined(found: Sequence[Pair]) -> tuple[SpeedWithAccuracy, ...]:
    """The pairs of one contrast: those of a workload joined with those of the workload that judges its outputs, on the
    `join_key` of case and baseline.

    A speed without accuracies stands alone. An accuracy that no speed takes comes last, alone. Pairs of workloads that
    neither judge nor are judged are not here.
    """
    accuracies: dict[tuple[object, ...], list[Pair]] = {}
    for pair in found:
        if pair.case.workload_row.judges is not None:
            accuracies.setdefault(_key_of_pair(pair), []).append(pair)
    speeds = [(_key_of_pair(pair), pair) for pair in found if is_judged(pair.case)]
    taken = {key for key, _ in speeds}
    alone = [SpeedWithAccuracy(None, tuple(members)) for key, members in accuracies.items() if key not in taken]
    return tuple(SpeedWithAccuracy(pair, tuple(accuracies.get(key, ()))) for key, pair in speeds) + tuple(alone)


def join_key(case: Case) -> tuple[object, ...]:
    """What a speed and the accuracies that belong to it have in common: the factors that change answers, and the
    content of the files that these name.

    An accuracy is seen as a case of the workload that it judges. What is idle there tells no speeds apart: where the
    weights are random, one speed belongs to every training.
    """
    return case.remembered("join_key", _join_key)


def _join_key(case: Case) -> tuple[object, ...]:
    judged = case.workload_row.judges
    seen = case if judged is None else case.with_factors(workload=judged)
    idle, contents = seen.idle, dict(seen.sources)
    key: list[object] = [seen.workload]
    for name, factor in seen.own_factors().items():
        if not factor.answers or name in idle:
            continue
        if name not in ("images", "data"):
            key.append((name, seen.value(name), contents.get(name)))
        elif "calibration_images" not in idle:  # elsewhere samples judge, or are inputs
            key.append((name, data_of(seen), content_of(seen)))
    return tuple(key)


def partner_of(case: Case) -> Workload | None:
    """The workload that the case's is joined with: the one whose outputs it judges, or the one that judges its own."""
    row, catalogue = case.workload_row, case.catalogue
    return catalogue.judge_of(row) if row.judges is None else catalogue.workloads[row.judges]


def is_judged(case: Case) -> bool:
    """Whether there is a workload that judges the outputs of the case's."""
    return case.catalogue.judge_of(case.workload_row) is not None


def _is_baseline(case: Case, contrast: Contrast) -> bool:
    return all(_has(case, factor, value) for factor, value in contrast.baseline.items())


def _has(case: Case, factor: str, value: object) -> bool:
    """An option that a case does not have is none of its values."""
    return factor in case.own_factors() and bool(case.value(factor) == value)


def _followers(contrast: Contrast) -> set[str]:
    names = {"checkpoint"} if "model" in contrast.baseline else set()
    return names.union(*(followers_of(name) for name in contrast.baseline)) - set(contrast.baseline)


def _match_key(case: Case, free: Set[str]) -> tuple[object, ...]:
    """What a case has in common with its baseline: all that is not free to differ."""
    sources = tuple(source for source in case.sources if source[0] not in free)
    return (*((name, value) for name, value in case.factors().items() if name not in free), sources)


def _ambiguous(case: Case, candidates: Sequence[Case]) -> UsageError:
    names = factor_names(candidates)
    varying = [name for name in names if len({one.factors().get(name) for one in candidates}) > 1]
    return UsageError(
        f"{len(candidates)} cases fit the baseline of `{case.title()}`: they differ in {', '.join(varying)}",
        hint=f"name {'its value' if len(varying) == 1 else 'their values'} in `baseline`",
    )


def _key_of_pair(pair: Pair) -> tuple[object, ...]:
    return join_key(pair.case), join_key(pair.baseline)
