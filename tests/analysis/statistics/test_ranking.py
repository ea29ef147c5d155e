# SPDX-License-Identifier: Apache-2.0
"""The fastest of a few cases: what is decided, and how often a wrong word is said however often one looks."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pybench.analysis.statistics.paired import ALPHA
from pybench.analysis.statistics.ranking import Ranking, Times
from pybench.analysis.statistics.ranking import rank as rank_at_looks
from pybench.quick.rounds import LOOKS


def times(ratio: float, blocks: int, spread: float = 0.01, seed: int = 0, **more: float) -> dict[str, dict[int, float]]:
    """`fast`, `other` and `more` with noise that is the block's own, and some of each run's."""
    generator = np.random.default_rng(seed)
    shared = generator.normal(0, 0.1, blocks)
    means = {"fast": 1.0, "other": ratio, **more}
    return {
        name: {block + 1: mean * math.exp(shared[block] + generator.normal(0, spread)) for block in range(blocks)}
        for name, mean in means.items()
    }


def rank(groups: list[Times]) -> tuple[Ranking, ...]:
    return rank_at_looks(groups, len(LOOKS))


def test_a_case_that_is_slower_is_decided_in_the_first_look() -> None:
    (ranking,) = rank([times(1.6, 3)])
    assert ranking.leader == "fast"
    (rival,) = ranking.rivals
    assert (rival.case_id, rival.standing) == ("other", "slower")
    assert rival.ratio.lower is not None
    assert 1 < rival.ratio.lower < 1.6 < (rival.ratio.upper or 0)
    assert ranking.is_decided


def test_cases_within_the_margin_are_equal_once_that_is_shown() -> None:
    (early,), (late,) = rank([times(1.001, 3, spread=0.02)]), rank([times(1.001, 20, spread=0.02)])
    assert early.rivals[0].standing == "open"
    assert not early.is_decided
    assert late.rivals[0].standing == "equal"


def test_more_alternatives_ask_for_more_evidence() -> None:
    (two,) = rank([times(1.6, 3)])
    (three,) = rank([times(1.6, 3, third=2.0)])
    assert two.alpha == pytest.approx(ALPHA / len(LOOKS))
    assert three.alpha == pytest.approx(ALPHA / (3 * len(LOOKS)))
    first, second = rank([times(1.6, 3), times(1.6, 3, seed=1)])
    assert first.alpha == second.alpha == pytest.approx(ALPHA / (2 * len(LOOKS)))


def test_only_blocks_that_every_case_has_count() -> None:
    group = times(1.6, 5)
    del group["other"][2]
    (ranking,) = rank([group])
    assert ranking.blocks == 4


def test_one_case_leads_alone() -> None:
    (ranking,) = rank([{"only": {1: 1.0}}])
    assert (ranking.leader, ranking.rivals, ranking.is_decided) == ("only", (), True)


def test_cases_without_a_common_block_are_refused() -> None:
    with pytest.raises(ValueError, match="common block"):
        rank([{"a": {1: 1.0}, "b": {2: 1.0}}])


def looked(group: Times) -> tuple[str, str]:
    """(leader, standing of its rival) at the first look that decides, else at the last."""
    for look in LOOKS:
        (ranking,) = rank([{name: {b: t for b, t in each.items() if b <= look} for name, each in group.items()}])
        if ranking.is_decided:
            break
    return ranking.leader, ranking.rivals[0].standing


@pytest.mark.parametrize("ratio", [1.0, 1.06])
def test_wrong_words_are_rare_however_often_one_looks(ratio: float) -> None:
    """Nothing differs: `slower` is wrong. One is 6 % slower: `equal` is wrong, and so is the other leading."""
    campaigns = 400
    said = [looked(times(ratio, LOOKS[-1], spread=0.02, seed=seed)) for seed in range(campaigns)]
    if ratio == 1.0:
        wrong = sum(standing == "slower" for _, standing in said)
    else:
        wrong = sum(standing == "equal" or (standing == "slower" and leader == "other") for leader, standing in said)
    assert wrong <= ALPHA * campaigns
    assert sum(standing != "open" for _, standing in said) > campaigns / 4  # and words are said
