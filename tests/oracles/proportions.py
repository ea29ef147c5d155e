# SPDX-License-Identifier: Apache-2.0
"""Slow twin of `pybench.analysis.statistics.proportions`: Tango's score, maximised on a grid."""

from __future__ import annotations

import math


def maximum_likelihood_share(b: int, c: int, n: int, difference: float) -> float:
    """The share q of pairs right on the baseline only that maximises
    b log(q + d) + c log q + (n - b - c) log(1 - 2q - d), by ternary search: it is concave."""
    low, high = max(0.0, -difference), (1 - difference) / 2

    def term(count: int, share: float) -> float:
        if count == 0:
            return 0.0
        return count * math.log(share) if share > 0 else -math.inf

    def likelihood(q: float) -> float:
        return term(b, q + difference) + term(c, q) + term(n - b - c, 1 - 2 * q - difference)

    for _ in range(80):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (left, high) if likelihood(left) < likelihood(right) else (low, right)
    return (low + high) / 2


def tango_interval(
    b: int, c: int, n: int, critical: float = 1.959963984540054, steps: int = 2000
) -> tuple[float, float]:
    """The differences on a grid whose score is within the critical value; the ends are good to 2/steps."""
    kept = []
    for step in range(1, steps):
        difference = -1 + 2 * step / steps
        q = maximum_likelihood_share(b, c, n, difference)
        variance = n * (2 * q + difference * (1 - difference))
        if variance > 0 and abs(b - c - n * difference) / math.sqrt(variance) <= critical:
            kept.append(difference)
    return min(kept), max(kept)
