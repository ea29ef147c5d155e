# SPDX-License-Identifier: Apache-2.0
"""Which pairs of runs may be compared: same board and CPU, same software (docs/method/statistics.md).

A pair is one block of two cases. It is compared when the board, CPU, driver, image, pybench, Python, and the version of
every package that both sides loaded are equal. A package that one side loaded follows from the declared
factor, so it is listed and does not count. A fact that a side does not state is unknown: it is named and does not
count, because runs of an older pybench would otherwise compare with nothing.

Where the two cases are of different environments, another image and other versions of Python and of packages are what
the factor brought. They are listed and do not count, as long as each side had the same ones in all blocks.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pybench.case import Case
from pybench.case.contrasts import Contrast
from pybench.case.pairing import Pair, pairs
from pybench.dataset import Dataset
from pybench.dataset.software import PROCESSOR, Software


class Comparability(StrEnum):
    COMPARABLE = "comparable"
    IN_PART = "comparable in part"
    NOT_COMPARABLE = "not comparable"


@dataclass(frozen=True, slots=True, order=True)
class SoftwareDifference:
    """A fact or package whose values differ. Several values of one side are joined by a comma."""

    name: str
    baseline: str
    candidate: str

    def text(self) -> str:
        return f"{self.name} {self.baseline} against {self.candidate}"

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "baseline": self.baseline, "case": self.candidate}


@dataclass(frozen=True, slots=True)
class PairComparability:
    """What a case and its baseline ran with, block by block."""

    blocks: frozenset[int]
    """Blocks in which both sides are `ok`."""
    excluded: Mapping[int, tuple[SoftwareDifference, ...]]
    """Those of them in which the two runs differ, with what differs."""
    only_candidate: tuple[str, ...]
    """Packages that no run of the baseline loaded."""
    only_baseline: tuple[str, ...]
    """Packages that no run of the case loaded."""
    unstated: tuple[str, ...]
    """Facts that one side states and the other does not."""
    brought: tuple[SoftwareDifference, ...] = ()
    """What differs because the two cases are of different environments."""

    @property
    def status(self) -> Comparability:
        if not self.excluded:
            return Comparability.COMPARABLE
        return Comparability.IN_PART if self.blocks - self.excluded.keys() else Comparability.NOT_COMPARABLE

    @property
    def differences(self) -> dict[SoftwareDifference, int]:
        """What differs -> in how many blocks, the most frequent first."""
        found = Counter(one for differences in self.excluded.values() for one in differences)
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))

    def why(self) -> str:
        """What keeps the two sides, or some of their blocks, from being compared, in words."""
        named = "; ".join(one.text() for one in self.differences)
        if self.status is Comparability.NOT_COMPARABLE:
            return f"{self.status.value}: the software of the two sides differs in every block ({named})"
        return f"the two runs differ in {len(self.excluded)} of {len(self.blocks)} blocks, which are excluded: {named}"

    def kept(self, values: Mapping[int, float]) -> dict[int, float]:
        """Block -> value, without the blocks that are left out."""
        return {block: value for block, value in values.items() if block not in self.excluded}

    def as_json(self) -> dict[str, Any]:
        return {
            "status": self.status.value,
            "blocks_excluded": sorted(self.excluded),
            "differences": [{**one.as_json(), "blocks": count} for one, count in self.differences.items()],
            "packages_of_case_only": list(self.only_candidate),
            "packages_of_baseline_only": list(self.only_baseline),
            "unstated": list(self.unstated),
            **({"brought_by_environment": [one.as_json() for one in self.brought]} if self.brought else {}),
        }


class SoftwareComparisons:
    """Compares what cases of one campaign ran with, and remembers it, so that a report names all that was left out.

    `software`: case id -> block -> what its `ok` run ran with."""

    def __init__(self, software: Mapping[str, Mapping[int, Software]]) -> None:
        self._software = software
        self._found: dict[Pair, PairComparability] = {}

    def between(self, case: Case, baseline: Case) -> PairComparability:
        """Every block in which runs of both cases are `ok`."""
        pair = Pair(case, baseline)
        if pair not in self._found:
            sides = self._software.get(case.id, {}), self._software.get(baseline.id, {})
            self._found[pair] = _compare(*sides, is_across=case.environment != baseline.environment)
        return self._found[pair]

    def declared(self, cases: Sequence[Case], contrasts: Sequence[Contrast]) -> dict[Pair, PairComparability]:
        """Every pair of cases that the plan compares."""
        return {
            pair: self.between(pair.case, pair.baseline) for contrast in contrasts for pair in pairs(cases, contrast)
        }

    def differing_blocks(self, cases: Sequence[Case]) -> frozenset[int]:
        """Blocks in which any two of several cases may not be compared."""
        found = (self.between(case, earlier) for earlier, case in itertools.combinations(cases, 2))
        return frozenset(block for one in found for block in one.excluded)

    def excluded(self) -> dict[Pair, PairComparability]:
        """The pairs compared so far that lost blocks, each once, whichever side was named first."""
        found: dict[frozenset[Case], tuple[Pair, PairComparability]] = {}
        for pair, one in self._found.items():
            if one.excluded:
                found.setdefault(frozenset((pair.case, pair.baseline)), (pair, one))
        return dict(found.values())


def _compare(
    first: Mapping[int, Software], second: Mapping[int, Software], *, is_across: bool = False
) -> PairComparability:
    """`is_across`: the two are of different environments."""
    both = sorted(first.keys() & second.keys())
    ran = {block: (id(first[block]), id(second[block])) for block in both}
    distinct = {ran[block]: (first[block], second[block]) for block in both}  # few: runs share what they ran with
    began = distinct[ran[both[0]]] if is_across and both else None
    differences = {pair: _differences(*sides, began) for pair, sides in distinct.items()}
    excluded = {block: found for block in both if (found := differences[ran[block]])}
    sides = [{name for pair in distinct.values() for name in pair[side].packages} for side in (0, 1)]
    unstated = {name for one, other in distinct.values() for name in one.facts.keys() ^ other.facts.keys()}
    return PairComparability(
        frozenset(both),
        excluded,
        tuple(sorted(sides[0] - sides[1])),
        tuple(sorted(sides[1] - sides[0])),
        tuple(sorted(unstated)),
        () if began is None else _differing_values(began[0].of_environment, began[1].of_environment),
    )


def software_json(found: Mapping[Pair, PairComparability]) -> list[dict[str, Any]]:
    """Every comparison of a campaign with its status."""
    return [{"case_id": pair.case.id, "baseline_id": pair.baseline.id, **one.as_json()} for pair, one in found.items()]


def describe_exclusions(found: Iterable[PairComparability]) -> str | None:
    """What was left out of the comparisons of a campaign, in a sentence; None where nothing was."""
    broken = [one for one in found if one.excluded]
    if not broken:
        return None
    blocks = sum(len(one.excluded) for one in broken)
    lost = sum(one.status is Comparability.NOT_COMPARABLE for one in broken)
    names = sorted({difference.name for one in broken for difference in one.differences})
    none_left = f" {lost} of these comparisons {_are(lost)} not comparable: no pair is left." if lost else ""
    pairs = "1 pair" if blocks == 1 else f"{blocks} pairs"
    return (
        f"{pairs} of runs in {_comparisons(len(broken))} {_are(blocks)} excluded, because "
        f"{'its' if blocks == 1 else 'their'} two runs differ in {', '.join(names)}.{none_left}"
    )


def describe_unstated(found: Iterable[PairComparability]) -> str | None:
    """Facts that one side of a comparison does not state, in a sentence; None where there are none."""
    counts = Counter(name for one in found for name in one.unstated)
    if not counts:
        return None
    named = ", ".join(f"{name} ({_comparisons(count)})" for name, count in sorted(counts.items()))
    return f"{named}: known for one side only, so a difference cannot be excluded."


def _comparisons(number: int) -> str:
    return "1 comparison" if number == 1 else f"{number} comparisons"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def differences_between(before: Dataset, after: Dataset) -> tuple[SoftwareDifference, ...]:
    """What the `ok` runs of two campaigns have different values of; `before` is the baseline. Packages that one
    campaign did not load are not here. What an environment of a plan brought is compared with what the one of the same
    name brought."""
    first, second = (_of_campaign(side) for side in (before, after))
    return _differing(first, second)


def differences_of_cases(dataset: Dataset, case: Case, baseline: Case) -> tuple[SoftwareDifference, ...]:
    """What the `ok` runs of two cases have different values of, whatever their blocks."""
    first, second = (_of_runs(dataset.software.get(one.id, {}).values()) for one in (baseline, case))
    return _differing(first, second)


def _differing(first: Mapping[str, set[str]], second: Mapping[str, set[str]]) -> tuple[SoftwareDifference, ...]:
    return tuple(
        SoftwareDifference(name, ", ".join(sorted(first[name])), ", ".join(sorted(second[name])))
        for name in first
        if name in second and first[name] != second[name]
    )


def board_models(dataset: Dataset, case_id: str) -> frozenset[str]:
    """Names of the GPUs that the `ok` runs of a case used."""
    runs = dataset.software.get(case_id, {}).values()
    return frozenset(run.board_model for run in runs if run.board_model is not None)


def processor_models(dataset: Dataset, case_id: str) -> frozenset[str]:
    """Names of the CPUs that the `ok` runs of a case without any GPU used."""
    runs = dataset.software.get(case_id, {}).values()
    return frozenset(run.facts[PROCESSOR] for run in runs if run.board_model is None and PROCESSOR in run.facts)


def _of_campaign(dataset: Dataset) -> dict[str, set[str]]:
    """Fact or package -> its values; in an environment of the plan, `NAME in ENVIRONMENT`."""
    environments = {case.id: case.environment for case in dataset.plan.cases}
    runs: dict[str | None, list[Software]] = {}
    for case_id, found in dataset.software.items():
        runs.setdefault(environments.get(case_id), []).extend(found.values())
    merged: dict[str, set[str]] = {}
    for environment, inside in runs.items():
        brought = {name for run in inside for name in run.of_environment} if environment is not None else ()
        for name, values in _of_runs(inside).items():
            merged.setdefault(f"{name} in {environment}" if name in brought else name, set()).update(values)
    return merged


def _of_runs(runs: Iterable[Software]) -> dict[str, set[str]]:
    """Fact or package -> its values."""
    found: dict[str, set[str]] = {}
    for run in runs:
        model = {"GPU model": run.board_model} if run.board_model else {}
        for name, value in {**model, **run.facts, **run.packages}.items():
            found.setdefault(name, set()).add(value)
    return found


def _differences(
    candidate: Software, baseline: Software, began: tuple[Software, Software] | None
) -> tuple[SoftwareDifference, ...]:
    """What keeps two runs from being compared. `began`: what both sides had in their first common block, where the two
    are of different environments."""
    of_machine = _differing_values(candidate.of_machine, baseline.of_machine)
    if began is None:
        return of_machine + _differing_values(candidate.of_environment, baseline.of_environment)
    changed = (
        _differing_values(now.of_environment, before.of_environment)
        for now, before in zip((candidate, baseline), began, strict=True)
    )
    return of_machine + tuple(itertools.chain(*changed))


def _differing_values(new: Mapping[str, str], old: Mapping[str, str]) -> tuple[SoftwareDifference, ...]:
    """Of what both state."""
    return tuple(
        SoftwareDifference(name, old[name], new[name]) for name in new if name in old and new[name] != old[name]
    )
