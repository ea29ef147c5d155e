# SPDX-License-Identifier: Apache-2.0
"""How often cells with one effect are said to differ, and to lie on both sides of 1, where one cell scatters more.

    python bench/intervals/unequal_cells.py [--samples 2000]

Logarithms of ratios are normal and independent, with a standard deviation of 1 %; one cell has several times that.
Tests: the analysis of variance of cells and blocks as it is in books, which takes the scatter of all cells as equal,
and pybench's. Printed as Markdown: share of p values below 0.05 in %, for equal cells and where one has 3 % more. Then
the share of samples that are said to lie on both sides of 1 where one cell has 1.5 and all others have 1.
"""

from __future__ import annotations

import argparse
from math import log

import numpy as np
import scipy

from pybench.analysis.findings.cell_effects import heterogeneity_of

SCATTER = 0.01
LAYOUTS = ((6, 2), (24, 2), (6, 3), (24, 3), (35, 3), (6, 5), (10, 5), (30, 5), (10, 10))  # cells, blocks
TIMES = (1, 5, 10)  # the scatter of one cell over that of the others


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=2000)
    samples = parser.parse_args().samples
    random = np.random.default_rng(7)
    tests = "analysis of variance | pybench"
    print(f"| cells | blocks | scatter of one cell | equal: {tests} | one 3 % more: {tests} | on both sides of 1 |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for cells, blocks in LAYOUTS:
        for times in TIMES:
            scatter = np.full((cells, 1), SCATTER)
            scatter[-1] *= times
            drawn = [random.normal(size=(cells, blocks)) * scatter for _ in range(samples)]
            shares = [share for apart in (0.0, 0.03) for share in _differing(drawn, apart)]
            shares.append(np.mean([_is_mixed(table) for table in drawn]))
            told = " | ".join(f"{100 * share:.1f}" for share in shares)
            print(f"| {cells} | {blocks} | {times} | {told} |")


def _differing(drawn: list[np.ndarray], apart: float) -> tuple[float, float]:
    """Shares of p values below 0.05, of the plain test and of pybench's; the first cell has `apart` more."""
    tables = [_with_first(table, apart) for table in drawn]
    plain = np.mean([_plain_p(table) < 0.05 for table in tables])
    return float(plain), float(np.mean([(heterogeneity_of(table, 1).p_value or 0) < 0.05 for table in tables]))


def _is_mixed(table: np.ndarray) -> bool:
    found = heterogeneity_of(_with_first(table, log(1.5)), 1)
    return found.is_mixed and found.p_value is not None and found.p_value < 0.05


def _with_first(table: np.ndarray, more: float) -> np.ndarray:
    moved = table.copy()
    moved[0] += more
    return moved


def _plain_p(table: np.ndarray) -> float:
    cells, blocks = table.shape
    means = table.mean(axis=1)
    residuals = table - means[:, None] - table.mean(axis=0) + table.mean()
    freedom = (cells - 1) * (blocks - 1)
    noise = (residuals**2).sum() / freedom
    return float(scipy.stats.f.sf(blocks * means.var(ddof=1) / noise, cells - 1, freedom))


if __name__ == "__main__":
    main()
