# SPDX-License-Identifier: Apache-2.0
"""Tests that take the samples of cases as independent, as the papers' protocols do; the house's own are `paired`.

A pair is tested by Welch's t (1947, Biometrika 34:28) where Shapiro-Wilk (1965, Biometrika 52:591) refuses neither
sample, else by Mann-Whitney's U (1947, Ann. Math. Stat. 18:50). One-way ANOVA with Tukey's HSD is done only where
Shapiro-Wilk does not refuse the residuals and Brown-Forsythe (1974, JASA 69:364: Levene's test around medians) does not
refuse equal variances. scipy computes them all; this module decides which applies and says why. Effect sizes: Hedges'
g* by the average of the two variances beside Welch, which takes them as unequal (Delacre et al. 2021,
doi:10.31234/osf.io/tu6mp), Cliff's delta (1993, Psychol. Bull. 114:494) beside Mann-Whitney.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import scipy  # loads its parts on first use: commands that compute nothing stay quick
from numpy.typing import NDArray

from pybench.analysis.statistics.estimate import Sample
from pybench.analysis.statistics.paired import ALPHA

WELCH_T = "Welch t"
MANN_WHITNEY = "Mann-Whitney U"
HEDGES = "Hedges g*"
CLIFF = "Cliff delta"
NO_SPREAD = "a sample has no spread, or fewer than 3 values"
SHAPIRO_LEAST = 3  # values; scipy refuses fewer
SHAPIRO_MOST = 5000  # values; above, the approximation of its p (Royston 1995, algorithm AS R94) is not valid
SPREAD_LEAST = 3  # values whose spread Brown-Forsythe can judge
EXACT_MOST = 20_000  # arrangements of two samples that are counted one by one; 8 values beside 8 have 12870
ANOVA_LEAST = 3  # samples; of two the pair's own test says it


@dataclass(frozen=True, slots=True)
class Normality:
    """Shapiro-Wilk of one sample.

    statistic: W, 0 to 1
    p_value: small where the sample is not normal; None with `why_none`
    """

    statistic: float | None
    p_value: float | None
    why_none: str | None = None

    @property
    def is_plausible(self) -> bool:
        """Tested, and not refused. A sample that could not be tested does not count as normal."""
        return self.p_value is not None and self.p_value >= ALPHA

    @property
    def why_not(self) -> str:
        """What speaks against normality, in words."""
        return self.why_none or f"Shapiro-Wilk p {_p_text(self.p_value)}"

    def as_json(self) -> dict[str, Any]:
        return {"statistic": self.statistic, "p_value": self.p_value, "why_none": self.why_none}


@dataclass(frozen=True, slots=True)
class PairTest:
    """Two independent samples.

    test: the one that was chosen
    why: why it was chosen
    statistic: of that test, without a unit
    p_value: two-sided; None where nothing can be tested
    effect_name: what `effect` is
    effect: positive when the first sample is the larger; None where a sample has only one value
    """

    test: str
    why: str
    statistic: float | None
    p_value: float | None
    effect_name: str
    effect: float | None

    def as_json(self) -> dict[str, Any]:
        return {
            "test": self.test,
            "why": self.why,
            "statistic": self.statistic,
            "p_value": self.p_value,
            "effect_name": self.effect_name,
            "effect": self.effect,
        }


class AnovaAssumption(StrEnum):
    """What an analysis of variance assumes; the value is what a text calls it that does not hold."""

    ENOUGH_SAMPLES = f"fewer than {ANOVA_LEAST} samples"
    NORMAL_RESIDUALS = "residuals"
    EQUAL_VARIANCES = "variances"


@dataclass(frozen=True, slots=True)
class FailedAssumption:
    """An assumption that does not hold, or could not be tested. `why`: what says so; empty where that is plain."""

    assumption: AnovaAssumption
    why: str = ""

    def __str__(self) -> str:
        return f"{self.assumption}: {self.why}" if self.why else str(self.assumption)


@dataclass(frozen=True, slots=True)
class Variances:
    """One-way analysis of variance over all samples of a scenario. Without `failed_assumptions` all of them hold, and
    `tukey[i][j]` is Tukey's adjusted p of samples i and j. The assumptions' own p values are there either way."""

    residuals: Normality
    brown_forsythe_p: float | None
    f_statistic: float | None
    p_value: float | None
    tukey: tuple[tuple[float, ...], ...] | None
    failed_assumptions: tuple[FailedAssumption, ...] = ()

    @property
    def why_omitted(self) -> str | None:
        """The failed assumptions as a text; None: there is none."""
        return "; ".join(map(str, self.failed_assumptions)) or None

    def as_json(self) -> dict[str, Any]:
        return {
            "residuals": self.residuals.as_json(),
            "brown_forsythe_p": self.brown_forsythe_p,
            "f_statistic": self.f_statistic,
            "p_value": self.p_value,
            "tukey_p": None if self.tukey is None else [list(row) for row in self.tukey],
            "why_omitted": self.why_omitted,
        }


def _bare(test: Callable[..., Any]) -> Callable[..., Any]:
    """A test of scipy's without what scipy wraps it in, which reads signatures and looks for axes and missing values
    for three quarters of its time. A sample has neither."""
    bare: Callable[..., Any] = test.__wrapped__  # type: ignore[attr-defined]
    return bare


# --- assumptions -----------------------------------------------------------------------------------------------------


def judge_normality(sample: Sample) -> Normality:
    """Shapiro-Wilk on 3 to 5000 values that differ."""
    if sample.n < SHAPIRO_LEAST:
        return Normality(None, None, f"fewer than {SHAPIRO_LEAST} values")
    if sample.n > SHAPIRO_MOST:
        return Normality(None, None, f"more than {SHAPIRO_MOST} values, where Shapiro-Wilk's p is not valid")
    if sample.is_constant:
        return Normality(None, None, "all values are equal")
    found = _bare(scipy.stats.shapiro)(sample.values)
    return Normality(float(found.statistic), float(found.pvalue))


def brown_forsythe(samples: Sequence[Sample]) -> float | None:
    """p of equal variances; None where a sample has no spread to compare, or two values.

    Both of two values are as far from their median, so that the test sees no scatter and gives 0."""
    if len(samples) < 2 or any(sample.n < SPREAD_LEAST or sample.is_constant for sample in samples):
        return None
    return float(_bare(scipy.stats.levene)(*(sample.values for sample in samples), center="median").pvalue)


# --- pairs -----------------------------------------------------------------------------------------------------------


def compare_adaptively(first: Sample, second: Sample, normal: tuple[Normality, Normality]) -> PairTest:
    """Welch where both samples may be normal, else Mann-Whitney; `why` names what decided."""
    if all(one.is_plausible for one in normal):
        shown = " and ".join(_p_text(one.p_value) for one in normal)
        return compare_means(first, second, f"Shapiro-Wilk rejects neither sample (p {shown})")
    against = [
        f"the {name}: {one.why_not}"
        for name, one in zip(("first", "second"), normal, strict=True)
        if not one.is_plausible
    ]
    return compare_ranks(first, second, "; ".join(against))


def compare_means(first: Sample, second: Sample, why: str) -> PairTest:
    """Welch's t of two samples that both have a spread."""
    found = _bare(scipy.stats.ttest_ind)(first.values, second.values, equal_var=False)
    return PairTest(WELCH_T, why, float(found.statistic), float(found.pvalue), HEDGES, hedges_g(first, second))


def compare_ranks(first: Sample, second: Sample, why: str) -> PairTest:
    """Mann-Whitney's U: exact for few values, else the normal approximation with ties corrected.

    scipy approximates few values with ties, too: three equal values beside three others get p = 0.047, where no
    arrangement of six values has less than 0.1. There all arrangements are counted.
    """
    if min(first.n, second.n) < 2:
        return PairTest(MANN_WHITNEY, f"{why}; a sample has only one value", None, None, CLIFF, None)
    together = np.concatenate((first.values, second.values))
    if Sample(together).is_constant:
        return PairTest(MANN_WHITNEY, f"{why}; all values of both samples are equal", None, None, CLIFF, 0.0)
    is_tied = np.unique(together).size < together.size
    by_count = is_tied and math.comb(together.size, first.n) <= EXACT_MOST
    method = scipy.stats.PermutationMethod(n_resamples=EXACT_MOST) if by_count else "auto"
    test = _bare(scipy.stats.mannwhitneyu)
    found = test(first.values, second.values, alternative="two-sided", method=method)
    delta = 2 * float(found.statistic) / (first.n * second.n) - 1
    return PairTest(MANN_WHITNEY, why, float(found.statistic), float(found.pvalue), CLIFF, delta)


def hedges_g(first: Sample, second: Sample) -> float:
    """Difference of means over the root of the average variance, times Hedges' correction 1 - 3/(4 df - 1) (1981, J.
    Educ. Stat. 6:107), df by Satterthwaite for that average. A pooled variance would weigh the larger sample more."""
    variances = [float(sample.values.var(ddof=1)) for sample in (first, second)]
    weights = [one**2 / (sample.n - 1) for one, sample in zip(variances, (first, second), strict=True)]
    freedom = math.fsum(variances) ** 2 / math.fsum(weights)
    difference = float(first.values.mean() - second.values.mean())
    return difference / math.sqrt(math.fsum(variances) / 2) * (1 - 3 / (4 * freedom - 1))


# --- all samples -----------------------------------------------------------------------------------------------------


def analyse_variance(samples: Sequence[Sample]) -> Variances:
    """ANOVA and Tukey's HSD where the residuals may be normal and the variances equal; else only the assumptions."""
    residuals = judge_normality(Sample(np.concatenate([_residuals(sample) for sample in samples])))
    equal = brown_forsythe(samples)
    failed = _failed(samples, residuals, equal)
    if failed:
        return Variances(residuals, equal, None, None, None, failed)
    values = [sample.values for sample in samples]
    found = _bare(scipy.stats.f_oneway)(*values)
    tukey = scipy.stats.tukey_hsd(*values).pvalue
    table = tuple(tuple(float(value) for value in row) for row in tukey)
    return Variances(residuals, equal, float(found.statistic), float(found.pvalue), table)


def _residuals(sample: Sample) -> NDArray[np.float64]:
    """Deviations from the mean; exact zeros where the values are equal, for what a rounded mean leaves is no spread."""
    return np.zeros(sample.n) if sample.is_constant else sample.values - sample.values.mean()


def _failed(samples: Sequence[Sample], residuals: Normality, equal: float | None) -> tuple[FailedAssumption, ...]:
    failed = []
    if len(samples) < ANOVA_LEAST:
        failed.append(FailedAssumption(AnovaAssumption.ENOUGH_SAMPLES))
    if not residuals.is_plausible:
        failed.append(FailedAssumption(AnovaAssumption.NORMAL_RESIDUALS, residuals.why_not))
    if equal is None:
        failed.append(FailedAssumption(AnovaAssumption.EQUAL_VARIANCES, NO_SPREAD))
    elif equal < ALPHA:
        failed.append(FailedAssumption(AnovaAssumption.EQUAL_VARIANCES, f"Brown-Forsythe p {_p_text(equal)}"))
    return tuple(failed)


def _p_text(p_value: float | None) -> str:
    if p_value is None:
        return "unknown"
    return "< 0.001" if p_value < 0.001 else f"{p_value:.2g}"
