# SPDX-License-Identifier: Apache-2.0
"""Units that are alike within groups, such as windows of text of one file: how much less they say than they count.

Resampling whole groups instead of units gives the variance of a mean; for a ratio of sums it has a closed form, the
linearised one (Cochran 1977, Sampling Techniques, ch. 2.11 and 6). Shares are then treated as Rao and Scott do (1992,
Biometrics 48:577): counts are divided by the design effect. The methods for independent units (`proportions`) then take
these counts, so that they are the special case of groups of one. Means of scores have Student's t over groups, whose
degrees of freedom count large groups for more than small ones: `effective_groups` less 1.
The error terms: groups are taken as a random draw. Where sizes differ much, 93 % of 95 % intervals contain the truth.
For shares, the variance itself is uncertain with fewer than about 20 groups, and more so where sizes differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import scipy  # loads its parts on first use: commands that compute nothing stay quick

from pybench.analysis.statistics.estimate import CONFIDENCE, GROUPED_T, SINGLE, Estimate
from pybench.analysis.statistics.pivot import Pivot

Floats = npt.NDArray[np.float64]


def design_effect(values: Floats, groups: Sequence[str]) -> float:
    """Variance of the mean when groups are resampled over that when units are; at least 1.

    `values`: float64 [n], in which units that differ from most others do so by 1; `groups`: of each. Few groups with
    such units do not show how alike units are. So one more group is counted, of mean size, that changes as a whole.
    Its weight is 1 if there is no such group, where the result is that size, and every such group halves it.
    bench/intervals/changed_groups.py has the coverage of this rule.
    """
    names, number = np.unique(np.asarray(groups), return_inverse=True)
    size = len(values) / len(names)
    if len(names) < 2:
        return size
    found, counts = np.unique(values, return_counts=True)
    changed = np.unique(number[values != found[counts.argmax()]])
    weight = 0.5 ** len(changed)
    plain, whole = float(values.var()) * len(values), grouped_variance(values, groups) * len(values) ** 2
    return max(1.0, (whole + weight * size**2) / (plain + weight * size))


def grouped_variance(values: Floats, groups: Sequence[str]) -> float:
    """Of the mean of `values`, when whole groups are resampled. Needs two groups."""
    _, number = np.unique(np.asarray(groups), return_inverse=True)
    deviations = np.bincount(number, weights=values - values.mean())  # of each group, summed
    count = len(deviations)
    return float(count / (count - 1) * (deviations**2).sum()) / len(values) ** 2


def effective_groups(groups: Sequence[str]) -> float:
    """How many groups of one size say as much: 1 over the sum of the squared shares of the groups (Kish 1965, Survey
    Sampling). The number of groups where all have one size."""
    _, counts = np.unique(np.asarray(groups), return_counts=True)
    return float(counts.sum() ** 2 / (counts**2).sum())


def _freedom(groups: Sequence[str]) -> float:
    return max(1.0, effective_groups(groups) - 1)


def estimate_grouped_mean(values: Floats, groups: Sequence[str], confidence: float = CONFIDENCE) -> Estimate:
    """The mean over units, with an interval over groups."""
    count, mean = len(set(groups)), float(values.mean())
    if count < 2:
        return Estimate(mean, None, None, len(values), SINGLE, confidence)
    quantile = float(scipy.special.stdtrit(_freedom(groups), (1 + confidence) / 2))
    width = quantile * math.sqrt(grouped_variance(values, groups))
    return Estimate(mean, mean - width, mean + width, len(values), GROUPED_T, confidence)


def grouped_pivot(values: Floats, groups: Sequence[str]) -> Pivot | None:
    """From which the interval of the mean is; None for one group or no spread."""
    count = len(set(groups))
    if count < 2 or (variance := grouped_variance(values, groups)) == 0:
        return None
    return Pivot(float(values.mean()), math.sqrt(variance), _freedom(groups), 0.0)


def p_of_no_grouped_mean(values: Floats, groups: Sequence[str]) -> float | None:
    """Two-sided p of a zero mean, below 0.05 where the interval excludes zero; None for one group or no spread."""
    pivot = grouped_pivot(values, groups)
    return None if pivot is None else pivot.p_different(0.0)
