# SPDX-License-Identifier: Apache-2.0
"""How often intervals of a difference of accuracies contain the truth, where few groups of units change.

    python bench/intervals/changed_groups.py [--samples 2000]

100 groups of 20 units, as windows of text of one file are. A number of groups change on average, and in each of them
one unit does, or half, or all, or one and all with equal chances. They get worse, or better and worse alike. Design
effects: `estimated` from the units alone (each group one unit if none changes), and pybench's, which counts one more
group. Printed as Markdown: share of intervals with the truth in %, and mean length in percentage points.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
import numpy.typing as npt

from pybench.analysis.statistics.grouped import design_effect, grouped_variance
from pybench.analysis.statistics.proportions import UnitPairs, estimate_paired_difference

GROUPS, SIZE = 100, 20
UNITS = GROUPS * SIZE
NAMES = [str(group) for group in range(GROUPS) for _ in range(SIZE)]
CHANGED = {"one unit": (1, 1), "half": (SIZE // 2, SIZE // 2), "all": (SIZE, SIZE), "one or all": (1, SIZE)}
MEANS = (0.5, 1, 2, 4, 8, 16)
DIRECTIONS = {"worse": 1.0, "both ways": 0.5}
Values = npt.NDArray[np.float64]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=2000)
    samples = parser.parse_args().samples
    random = np.random.default_rng(7)
    for method, effect in {"estimated": estimated, "with one more group": design_effect}.items():
        print(f"\n### {method}\n\n| changed in a group | direction | {' | '.join(map(str, MEANS))} |")
        print(f"| --- | --- |{' --- |' * len(MEANS)}")
        for changed, sizes in CHANGED.items():
            for direction, share in DIRECTIONS.items():
                cells = [told(samples, mean, sizes, share, effect, random) for mean in MEANS]
                print(f"| {changed} | {direction} | {' | '.join(cells)} |", flush=True)


def estimated(values: Values, groups: list[str]) -> float:
    plain = float(values.var()) / len(values)
    return SIZE if plain == 0 else max(1.0, grouped_variance(values, groups) / plain)


def told(
    samples: int,
    mean: float,
    sizes: tuple[int, int],
    share: float,
    effect: Callable[[Values, list[str]], float],
    random: np.random.Generator,
) -> str:
    """`share`: of changed groups that get worse."""
    truth = -mean * (2 * share - 1) * float(np.mean(sizes)) / UNITS
    bounds = [interval(values, effect) for values in drawn(samples, mean, sizes, share, random)]
    contained = sum(lower <= truth <= upper for lower, upper in bounds) / samples
    return f"{100 * contained:.1f} ({100 * np.mean([upper - lower for lower, upper in bounds]):.2f})"


def drawn(
    samples: int, mean: float, sizes: tuple[int, int], share: float, random: np.random.Generator
) -> Iterator[Values]:
    for _ in range(samples):
        values = np.zeros((GROUPS, SIZE))
        for group in np.nonzero(random.random(GROUPS) < mean / GROUPS)[0]:
            values[group, : random.choice(sizes)] = -1.0 if random.random() < share else 1.0
        yield values.ravel()


def interval(values: Values, effect: Callable[[Values, list[str]], float]) -> tuple[float, float]:
    better, worse = int((values > 0).sum()), int((values < 0).sum())
    return bounds_of(better, worse, round(effect(values, NAMES), 6))


@cache
def bounds_of(better: int, worse: int, effect: float) -> tuple[float, float]:
    found = estimate_paired_difference(UnitPairs(UNITS - better - worse, better, worse, 0), design_effect=effect)
    assert found.lower is not None
    assert found.upper is not None
    return found.lower, found.upper


if __name__ == "__main__":
    main()
