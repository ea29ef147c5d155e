# SPDX-License-Identifier: Apache-2.0
"""The effect of a comparison over all of its cells: the geometric mean of the paired ratios, and how cells differ.

Every block ran all cells, so the block is the unit: its value is the mean logarithm of all cells' ratios. The interval
of these values is that of single effects (`pybench.analysis.statistics.intervals`). All cells weigh the same.

Heterogeneity: a two-way layout of cells and blocks without replication (Searle, Casella and McCulloch 1992, Variance
Components, ch. 4). Its F test asks whether all cells have one effect; drift of a block is no part of the residual.

The mean is about the cells of the plan, which nobody drew at random. It says nothing about other cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # loads its parts on first use: commands that compute nothing stay quick
from numpy.typing import NDArray

from pybench.analysis.findings.contrasts import ContrastFinding, PairFinding
from pybench.analysis.measurements import Measurements
from pybench.analysis.statistics.elementary import exp, log
from pybench.analysis.statistics.estimate import Estimate, Sample
from pybench.analysis.statistics.intervals import estimate_mean
from pybench.analysis.statistics.sequential import confidence_among, p_among
from pybench.case.contrasts import Contrast
from pybench.case.pairing import Pair
from pybench.catalogue.metrics import Metric

_ROUNDING = 1e-12  # of a logarithm: residuals below it are no spread
NO_COMMON_BLOCK = "no block has values of all cells"


@dataclass(frozen=True, slots=True)
class Heterogeneity:
    """How the effects of cells differ.

    lowest, highest: the smallest and the largest ratio of a cell
    spread: exp of the standard deviation of the cells' logarithms, without the noise of runs: 1 for equal cells
    p_value: of cells that all have one effect; None with fewer than two blocks, or without noise
    is_mixed: whether cells are on both sides of 1: the whole intervals of the two cells named first
    """

    lowest: float
    highest: float
    spread: float | None
    p_value: float | None
    is_mixed: bool = False


@dataclass(frozen=True, slots=True)
class CellsEffect:
    """One metric of one comparison, over its cells.

    pairs: the cells, each a case with its baseline; they differ from the baseline in the same way
    left_out: cells without a ratio
    blocks: those in which every cell has a ratio
    mean: the mean ratio; None where `why_none` says why
    """

    contrast: Contrast
    metric: Metric
    pairs: tuple[Pair, ...]
    left_out: tuple[Pair, ...]
    blocks: tuple[int, ...]
    mean: Estimate | None
    heterogeneity: Heterogeneity | None
    why_none: str | None

    def as_json(self) -> dict[str, Any]:
        found = self.heterogeneity
        return {
            "contrast": self.contrast.title(),
            "metric": self.metric.name,
            "case_ids": [pair.case.id for pair in self.pairs],
            "titles": [pair.case.title() for pair in self.pairs],
            "left_out": [pair.case.id for pair in self.left_out],
            "blocks": list(self.blocks),
            "mean_ratio": None if self.mean is None else self.mean.as_json(),
            "lowest": None if found is None else found.lowest,
            "highest": None if found is None else found.highest,
            "spread_between_cells": None if found is None else found.spread,
            "p_cells_equal": None if found is None else found.p_value,
            "why_none": self.why_none,
        }


def effects_over_cells(contrasts: Sequence[ContrastFinding], measurements: Measurements) -> tuple[CellsEffect, ...]:
    """Every comparison with at least two cells, for the metrics that it judges or names published means of."""
    return tuple(
        effect
        for finding in contrasts
        for members in _groups(finding)
        if len(members) > 1
        for metric in _metrics(finding.contrast, members)
        if (effect := mean_over(metric, finding.contrast, members, measurements)) is not None
    )


def mean_over(
    metric: Metric, contrast: Contrast, members: Sequence[PairFinding], measurements: Measurements
) -> CellsEffect | None:
    """The mean ratio of some cells; None where fewer than two of them have a ratio."""
    ratios = {member.pair: _log_ratios(metric, member, measurements) for member in members}
    known = {pair: values for pair, values in ratios.items() if values}
    if len(known) < 2:
        return None
    left_out = tuple(pair for pair in ratios if pair not in known)
    blocks = tuple(sorted(set.intersection(*(set(values) for values in known.values()))))
    if not blocks:
        return CellsEffect(contrast, metric, tuple(known), left_out, (), None, None, NO_COMMON_BLOCK)
    table = np.array([[values[block] for block in blocks] for values in known.values()])
    by_block = Sample.of(table.mean(axis=0))
    return CellsEffect(
        contrast=contrast,
        metric=metric,
        pairs=tuple(known),
        left_out=left_out,
        blocks=blocks,
        mean=estimate_mean(by_block, confidence_among(measurements.tests)).exp(),
        heterogeneity=heterogeneity_of(table, measurements.tests),
        why_none=None,
    )


def _groups(finding: ContrastFinding) -> list[list[PairFinding]]:
    """Pairs of one workload whose cases differ from their baselines in the same values."""
    groups: dict[tuple[Any, ...], list[PairFinding]] = {}
    for member in finding.pairs:
        case = member.pair.case
        changed = tuple(case.factors().get(name) for name in finding.contrast.baseline)
        groups.setdefault((case.workload, *changed), []).append(member)
    return list(groups.values())


def _metrics(contrast: Contrast, members: Sequence[PairFinding]) -> list[Metric]:
    published = {one.metric for one in contrast.reference if one.over_cells}
    shown = {
        name: effect.metric
        for member in members
        for name, effect in member.effects.items()
        if (effect.declared or name in published) and effect.metric.scale == "ratio" and effect.units is None
    }
    return list(shown.values())


def _log_ratios(metric: Metric, member: PairFinding, measurements: Measurements) -> Mapping[int, float]:
    """Block -> logarithm of the ratio, of the blocks that the comparison uses."""
    effect = member.effects.get(metric.name)
    if effect is None or effect.effect is None:
        return {}
    case, baseline = (measurements.cell(one.id, metric.name).values for one in (member.pair.case, member.pair.baseline))
    blocks = effect.effect.pairing.blocks
    ratios = log(np.array([case[block] / baseline[block] for block in blocks]))
    return dict(zip(blocks, map(float, ratios), strict=True))


def heterogeneity_of(table: NDArray[np.float64], tests: int) -> Heterogeneity:
    """`table`: float64 of shape (cells, blocks), logarithms of ratios. `tests`: as in `Measurements`."""
    means = table.mean(axis=1)
    lowest, highest = exp(float(means.min())), exp(float(means.max()))
    cells, blocks = table.shape
    if blocks < 2:
        return Heterogeneity(lowest, highest, None, None)
    residuals = table - means[:, None] - table.mean(axis=0) + table.mean()
    between = float(means.var(ddof=1))
    if float(np.abs(residuals).max()) <= _ROUNDING:
        return Heterogeneity(lowest, highest, exp(between**0.5), None)
    freedom = cells - 1, (cells - 1) * (blocks - 1)
    noise = float((residuals**2).sum()) / freedom[1]
    component = max(0.0, between - noise / blocks)
    shrunk = _epsilon(residuals) * np.array(freedom)
    p_value = float(scipy.special.fdtrc(*shrunk, blocks * between / noise))
    confidence = confidence_among(tests * cells)  # the lowest and the highest are chosen among all cells
    below, above = (estimate_mean(Sample.of(table[row]), confidence) for row in (means.argmin(), means.argmax()))
    is_mixed = below.upper is not None and above.lower is not None and below.upper < 0 < above.lower
    return Heterogeneity(lowest, highest, exp(component**0.5), p_among(tests, p_value), is_mixed)


def _epsilon(residuals: NDArray[np.float64]) -> float:
    """How far both degrees of freedom of the F test shrink, because cells scatter differently or together: 1 if they do
    not, at least 1 / (cells - 1). Residuals of a two-way layout, of shape (cells, blocks).

    The mean of two estimates, as few blocks make the first too small and the second too large (Stevens 2002, Applied
    Multivariate Statistics for the Social Sciences, ch. 13): that of Greenhouse and Geisser (1959, Psychometrika 24:95)
    and that of Huynh and Feldt (1976, Journal of Educational Statistics 1:69).
    """
    cells, blocks = residuals.shape
    # The covariance of blocks has the same squares as the larger one of cells.
    columns = [residuals[:, block] for block in range(blocks)]
    squares = sum(float((one * other).sum()) ** 2 for one in columns for other in columns)
    total = float((residuals**2).sum())
    small = total * total / ((cells - 1) * squares)
    left = blocks - 1 - (cells - 1) * small
    # Two blocks tell nothing of the scatter: the first estimate is always its least, and the second does not exist.
    large = (blocks * (cells - 1) * small - 2) / ((cells - 1) * left) if left > _ROUNDING else small
    return float(small + min(max(large, small), 1.0)) / 2
