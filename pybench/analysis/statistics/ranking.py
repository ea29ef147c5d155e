# SPDX-License-Identifier: Apache-2.0
"""Which of a few cases is the fastest, looked at again and again while blocks are added.

The leader is compared with every other case within blocks. A rival is `slower` where the ratio of its time to the
leader's is above 1, and `equal` where the ratio is shown to be within 5 % of 1. Else it is `open`; a ranking without an
open rival is decided. Every pair of cases might be tested at every look, so each test has ALPHA over their number
(`sequential`). A wrong word about any pair, at any look, then has a probability of at most ALPHA, whichever case leads
and whenever one stops. Tests are those of `paired`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pybench.analysis.statistics.estimate import Estimate
from pybench.analysis.statistics.paired import ALPHA, EQUIVALENCE_MARGIN, compare_paired

Standing = Literal["slower", "equal", "open"]
Times = Mapping[str, Mapping[int, float]]  # case -> block -> time, above 0


@dataclass(frozen=True, slots=True)
class Rival:
    """A case against the leader. `ratio`: its time over the leader's, with an interval that holds at all looks."""

    case_id: str
    ratio: Estimate
    standing: Standing


@dataclass(frozen=True, slots=True)
class Ranking:
    """The leader of a group of cases that are alternatives to each other, and its rivals, the fastest first.

    `blocks`: those that every case has; `alpha`: of one test.
    """

    leader: str
    rivals: tuple[Rival, ...]
    blocks: int
    alpha: float

    @property
    def is_decided(self) -> bool:
        return all(rival.standing != "open" for rival in self.rivals)

    @property
    def case_ids(self) -> frozenset[str]:
        return frozenset({self.leader, *(rival.case_id for rival in self.rivals)})

    def as_json(self) -> dict[str, Any]:
        return {
            "leader": self.leader,
            "blocks": self.blocks,
            "alpha_of_a_test": self.alpha,
            "is_decided": self.is_decided,
            "rivals": [
                {"case_id": rival.case_id, "standing": rival.standing, "ratio": rival.ratio.as_json()}
                for rival in self.rivals
            ],
        }


def rank(groups: Sequence[Times], looks: int) -> tuple[Ranking, ...]:
    """A ranking of each group. A group has at least one case, and its cases have at least one block in common.
    `looks`: how many there are at most.

    Raises ValueError for a group that has not, or a time that is not above 0.
    """
    pairs = sum(math.comb(len(group), 2) for group in groups)
    alpha = ALPHA / (looks * max(pairs, 1))
    return tuple(_rank(group, alpha) for group in groups)


def _rank(group: Times, alpha: float) -> Ranking:
    common = set.intersection(*(set(times) for times in group.values())) if group else set()
    if not common:
        raise ValueError("cases without a common block cannot be ranked")
    means = {name: math.fsum(math.log(times[block]) for block in common) for name, times in group.items()}
    leader, *others = sorted(means, key=lambda name: (means[name], name))
    rivals = tuple(_against(group, leader, other, common, alpha) for other in others)
    return Ranking(leader, rivals, len(common), alpha)


def _against(group: Times, leader: str, other: str, common: set[int], alpha: float) -> Rival:
    sides = [{block: group[name][block] for block in common} for name in (other, leader)]
    effect = compare_paired(sides[0], sides[1], "ratio", EQUIVALENCE_MARGIN, confidence=1 - alpha)
    if effect is None:
        raise ValueError("cases without a common block cannot be ranked")
    # One of two wrong words is possible for any true ratio: together they have a probability of at most alpha.
    if effect.p_value is not None and effect.p_value < alpha and effect.estimate.value > 1:
        return Rival(other, effect.estimate, "slower")
    if effect.p_equivalence is not None and effect.p_equivalence < alpha / 2:
        return Rival(other, effect.estimate, "equal")
    return Rival(other, effect.estimate, "open")
