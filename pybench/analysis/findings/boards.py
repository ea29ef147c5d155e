# SPDX-License-Identifier: Apache-2.0
"""Whether an effect is the same on each of the boards, and on each model of board, that a campaign used.

A block runs on one board, so a pair of runs shares it. A ratio of two cases still differs from board to board where one
case meets a limit of the board, such as its power, and the other does not. The interval of an effect is then that of
the mean over these blocks: it may exclude what each of the boards gives, and says nothing of other boards.
The p value is of equal means of the blocks' differences by board, which are differences of logarithms for a ratio.
Boards need not scatter alike (Brown and Forsythe 1974, Technometrics 16:129, with the degrees of freedom of Mehrotra
1997, Communications in Statistics - Simulation 26:1139); of two boards it is Welch's.
For models of boards, each board counts once, with the mean of its blocks: blocks of one board are no sample of its
model (Montgomery 2017, Design and Analysis of Experiments, ch. 14, nested designs).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy  # loads its parts on first use: commands that compute nothing stay quick

from pybench.analysis.findings.contrasts import ContrastFinding, PairFinding
from pybench.analysis.measurements import Measurements
from pybench.analysis.statistics.elementary import log
from pybench.analysis.statistics.estimate import Estimate, Sample
from pybench.analysis.statistics.intervals import estimate_mean
from pybench.analysis.statistics.paired import ALPHA, Scale, compare_paired, holm
from pybench.analysis.statistics.sequential import confidence_among, p_among
from pybench.case.pairing import Pair
from pybench.catalogue.metrics import Metric
from pybench.dataset.software import BOARD, Software

_ROUNDING = 1e-12  # of the values (of 1 for logarithms): spread below it is none


@dataclass(frozen=True, slots=True)
class BoardEffects:
    """One declared effect, board by board, or model by model.

    inverse: whether the effect is the baseline over the case, as a speed-up is
    by_board: the board's UUID -> the effect in its blocks; or a model's name -> that of its boards, each counted once
    p_value: of equal effects; None where a board has one block (a model one board), or nothing scatters
    p_adjusted: after Holm, over all of these effects of the campaign
    of_models: whether `by_board` has models
    """

    pair: Pair
    metric: Metric
    inverse: bool
    by_board: Mapping[str, Estimate]
    p_value: float | None
    p_adjusted: float | None = None
    of_models: bool = False

    @property
    def differs(self) -> bool:
        return self.p_adjusted is not None and self.p_adjusted < ALPHA

    def as_json(self) -> dict[str, Any]:
        return {
            "case_id": self.pair.case.id,
            "baseline_id": self.pair.baseline.id,
            "metric": self.metric.name,
            "scale": self.metric.scale,
            "inverse": self.inverse,
            "boards": {board: estimate.as_json() for board, estimate in self.by_board.items()},
            "p_value": self.p_value,
            "p_adjusted": self.p_adjusted,
        }


def compare_boards(
    contrasts: Sequence[ContrastFinding],
    measurements: Measurements,
    software: Mapping[str, Mapping[int, Software]],
    *,
    by_model: bool = False,
) -> tuple[BoardEffects, ...]:
    """Every declared effect over blocks that ran on two boards or more; `by_model`: on boards of two models or more.

    `software`: case id -> block -> of its run.
    """
    found = []
    for contrast in contrasts:
        inverse = {criterion.metric for criterion in contrast.contrast.accept if criterion.inverse}
        for pair in contrast.pairs:
            for name, effect in pair.effects.items():
                if effect.declared and effect.effect is not None and effect.units is None:
                    ran_with = software.get(pair.pair.case.id, {})
                    one = _by_group(pair, name, measurements, ran_with, inverse=name in inverse, by_model=by_model)
                    found += [] if one is None else [one]
    adjusted = holm([one.p_value for one in found])
    return tuple(replace(one, p_adjusted=p) for one, p in zip(found, adjusted, strict=True))


def _by_group(
    pair: PairFinding,
    name: str,
    measurements: Measurements,
    ran_with: Mapping[int, Software],
    *,
    inverse: bool,
    by_model: bool,
) -> BoardEffects | None:
    """None where all blocks are of one group, a board or a model, or where a run does not say on which it ran."""
    found = pair.effects[name]
    assert found.effect is not None
    groups = _blocks_of_groups(found.effect.pairing.blocks, ran_with, by_model=by_model)
    if groups is None or len(groups) < 2:
        return None
    sides = [measurements.cell(case.id, name).values for case in (pair.pair.case, pair.pair.baseline)]
    is_ratio = found.effect.scale == "ratio"

    def differences(blocks: Sequence[int]) -> np.ndarray[Any, Any]:
        case, baseline = (np.array([side[block] for block in blocks]) for side in sides)
        return log(case) - log(baseline) if is_ratio else case - baseline

    of_boards = [[differences(blocks) for blocks in boards.values()] for boards in groups.values()]
    if by_model:
        replicates = [np.array([board.mean() for board in boards]) for boards in of_boards]
        means = [estimate_mean(Sample.of(one), confidence_among(measurements.tests)) for one in replicates]
        estimates = [one.exp() if is_ratio else one for one in means]
    else:
        replicates = [np.concatenate(boards) for boards in of_boards]
        estimates = [_over_blocks(boards, sides, found.effect.scale, measurements.tests) for boards in groups.values()]
    p_value = p_of_equal_means(replicates)
    shared = None if p_value is None else p_among(measurements.tests, p_value)
    by_group = {
        group: estimate.inverse() if inverse else estimate for group, estimate in zip(groups, estimates, strict=True)
    }
    return BoardEffects(pair.pair, found.metric, inverse, by_group, shared, of_models=by_model)


def _over_blocks(
    boards: Mapping[str, Sequence[int]], sides: Sequence[Mapping[int, float]], scale: Scale, tests: int
) -> Estimate:
    own = sorted(block for blocks in boards.values() for block in blocks)
    first, second = ({block: side[block] for block in own} for side in sides)
    effect = compare_paired(first, second, scale, tests=tests)
    assert effect is not None  # each block has both sides
    return effect.estimate


def _blocks_of_groups(
    blocks: Sequence[int], ran_with: Mapping[int, Software], *, by_model: bool
) -> dict[str, dict[str, list[int]]] | None:
    """Group -> board -> its blocks; None where a run does not say its board."""
    groups: dict[str, dict[str, list[int]]] = {}
    for block in blocks:
        ran = ran_with.get(block)
        board = None if ran is None else ran.facts.get(BOARD)
        group = ran.board_model if ran is not None and by_model else board
        if board is None or group is None:
            return None
        groups.setdefault(group, {}).setdefault(board, []).append(block)
    return groups


def p_of_equal_means(groups: Sequence[np.ndarray[Any, Any]]) -> float | None:
    """Of groups of float64 values; None where one has a single value, or nothing scatters."""
    if min(len(group) for group in groups) < 2:
        return None
    every = np.concatenate(groups)
    shares = np.array([len(group) / len(every) for group in groups])
    between = sum(len(group) * float((group.mean() - every.mean()) ** 2) for group in groups)
    variances = np.array([group.var(ddof=1) for group in groups])
    within = (1 - shares) * variances  # of each group, as `between` has it where means are equal
    rounding = (_ROUNDING * max(1.0, float(np.abs(every).max()))) ** 2 * len(every)
    if within.sum() <= rounding:  # values that are counted, such as bytes
        return None if between <= rounding else 0.0
    square = float(within.sum()) ** 2
    numerator = square / float((variances**2 * (1 - 2 * shares)).sum() + (shares * variances).sum() ** 2)
    denominator = square / sum(float(own) ** 2 / (len(group) - 1) for own, group in zip(within, groups, strict=True))
    return float(scipy.special.fdtrc(numerator, denominator, between / float(within.sum())))
