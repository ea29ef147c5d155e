# SPDX-License-Identifier: Apache-2.0
"""How often an interval over groups of unequal sizes contains the truth, and equal boards are said to differ.

    python bench/intervals/unequal_groups.py [--samples 4000]

Groups have 20 units on average, of equal sizes or of lognormal ones (sigma 1), and units that share half of their
variance. Degrees of freedom: groups less 1, and pybench's, effective groups less 1. Boards have blocks whose scatter
differs. Tests: the analysis of variance, which takes it as equal, Welch's and pybench's. Printed as Markdown: share of
intervals with the truth, and of p values below 0.05, in %, for equal boards and for boards 3 apart in turn.
"""

from __future__ import annotations

import argparse
from math import sqrt

import numpy as np
import scipy
from statsmodels.stats.oneway import anova_oneway

from pybench.analysis.findings.boards import p_of_equal_means
from pybench.analysis.statistics.grouped import effective_groups, grouped_variance

GROUPS = (6, 10, 20, 40)
SIZE = 20
BOARDS = (
    ((4, 4), (1, 1)),
    ((5, 5), (4, 1)),
    ((4, 16), (2, 1)),
    ((3, 7), (4, 1)),
    ((2, 8), (3, 1)),
    ((2,) * 5, (1,) * 5),
    ((2,) * 10, (1,) * 10),
    ((5, 10, 3), (1, 1, 4)),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=4000)
    samples = parser.parse_args().samples
    random = np.random.default_rng(7)
    print(f"\n### Intervals of a mean\n\n| sizes | degrees of freedom | {' | '.join(map(str, GROUPS))} |")
    print(f"| --- | --- |{' ---: |' * len(GROUPS)}")
    for name, sigma in (("equal", 0.0), ("lognormal", 1.0)):
        shares = [covered(count, sigma, samples, random) for count in GROUPS]
        for place, freedom in enumerate(("groups less 1", "effective groups less 1")):
            print(f"| {name} | {freedom} | {' | '.join(f'{100 * share[place]:.1f}' for share in shares)} |")
    print("\n### Boards that are said to differ\n")
    tests = "analysis of variance | Welch | pybench"
    print(f"| blocks | standard deviations | equal: {tests} | 3 apart: {tests} |")
    print(f"| --- | --- |{' ---: |' * 6}")
    for blocks, scatter in BOARDS:
        shares = [share for apart in (0, 3) for share in differing(blocks, scatter, apart, samples, random)]
        print(f"| {_listed(blocks)} | {_listed(scatter)} | {' | '.join(f'{100 * share:.1f}' for share in shares)} |")


def differing(
    blocks: tuple[int, ...], scatter: tuple[int, ...], apart: float, samples: int, random: np.random.Generator
) -> np.ndarray:
    """Shares of p values below 0.05 [3]: of the analysis of variance, of Welch, and of pybench."""
    hits = np.zeros(3)
    for _ in range(samples):
        sides = enumerate(zip(blocks, scatter, strict=True))
        boards = [random.normal(apart * (number % 2), sd, count) for number, (count, sd) in sides]
        p_value = p_of_equal_means(boards)
        assert p_value is not None
        others = [anova_oneway(boards, use_var=variances).pvalue for variances in ("equal", "unequal")]
        hits += np.array([*others, p_value]) < 0.05
    return hits / samples


def _listed(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers))


def covered(count: int, sigma: float, samples: int, random: np.random.Generator) -> tuple[float, float]:
    """Shares of intervals with the true mean, 0: by the number of groups, and by the effective one."""
    hits = np.zeros(2)
    for _ in range(samples):
        sizes = np.maximum(1, np.round(SIZE * random.lognormal(0, sigma, count))).astype(int)
        groups = np.repeat(np.arange(count), sizes)
        values = random.normal(0, 1, count)[groups] + random.normal(0, 1, len(groups))
        names = [str(group) for group in groups]
        error = sqrt(grouped_variance(values, names))
        freedom = np.array([count - 1, max(1.0, effective_groups(names) - 1)])
        hits += abs(values.mean()) <= scipy.special.stdtrit(freedom, 0.975) * error
    by_count, by_effective = (float(share) for share in hits / samples)
    return by_count, by_effective


if __name__ == "__main__":
    main()
