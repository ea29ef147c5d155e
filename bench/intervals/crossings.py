# SPDX-License-Identifier: Apache-2.0
"""How often nominal 95 % intervals of the place where two lines cross contain the truth, and how often there is one.

Prints Markdown (bench/results/crossing-coverage.md). The gap of two lines goes straight through zero between two values
of a factor. At both it has noise of each population of `populations`, which is that of one line where the other's is
small. Seven minutes on one core: `python bench/intervals/crossings.py`; one minute with `--quick`. Seeds are fixed.

Does not judge the error of the straight gap, which no interval contains.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[2]))  # last, so that pybench is the one that is installed

from bench.intervals.coverage import DRIFTING, WANTED, table
from bench.intervals.methods import RESAMPLES, TAIL, Bounds, Draw, Numbers, skew_adjusted, student
from bench.intervals.populations import Population, populations

SIZES = (2, 3, 5, 10, 20)
CHANGES = (20.0, 6.0, 3.0)  # of the gap from one value to the next, in standard deviations of a block's noise
PLACES = (0.5, 0.2)  # of the crossing, as a share of the stretch
SEED = 20261124
_HALVINGS = 30
_LEAST_SHARE = 0.8  # of resamples that cross: what pybench asked for before
_LEAST_BLOCKS = 5  # the same
_FEWEST = 200  # intervals that a share is printed of


@dataclass(frozen=True, slots=True)
class Gaps:
    """`left`, `right`: float64 [samples, n], the gap at both ends of a stretch."""

    left: Numbers
    right: Numbers
    rng: np.random.Generator

    @property
    def estimate(self) -> Numbers:
        """Where the mean gap is zero, as a share of the stretch; outside 0 to 1 where it does not cross there."""
        left, right = self.left.mean(axis=1), self.right.mean(axis=1)
        with np.errstate(divide="ignore"):
            return np.asarray(left / (left - right))

    def at(self, place: Numbers) -> Draw:
        """The gaps at a place of each sample."""
        return Draw((1 - place)[:, None] * self.left + place[:, None] * self.right, self.rng)


Method = Callable[[Gaps], Bounds]  # NaN: no interval


def by_inversion(interval: Callable[[Draw], Bounds]) -> Method:
    """The places of the stretch at which an interval of the mean gap includes zero."""

    def is_open(gaps: Gaps, place: Numbers) -> np.ndarray:
        bounds = interval(gaps.at(place))
        return np.asarray((bounds.lower <= 0) & (bounds.upper >= 0))

    def method(gaps: Gaps) -> Bounds:
        estimate = gaps.estimate
        crosses = (estimate > 0) & (estimate < 1)
        edges = []
        for far in (0.0, 1.0):
            inside, outside = np.where(crosses, estimate, 0.5), np.full(len(estimate), far)
            reaches = is_open(gaps, outside)
            for _ in range(_HALVINGS):
                middle = (inside + outside) / 2
                still = is_open(gaps, middle)
                inside, outside = np.where(still, middle, inside), np.where(still, outside, middle)
            edges.append(np.where(reaches, far, (inside + outside) / 2))
        return Bounds(*(np.where(crosses, edge, np.nan) for edge in edges))

    return method


def percentile(gaps: Gaps) -> Bounds:
    """What pybench did before: percentiles of the places of those resamples of blocks that cross."""
    samples, n = gaps.left.shape
    lower, upper = np.full((2, samples), np.nan)
    if n < _LEAST_BLOCKS:
        return Bounds(lower, upper)
    for begin in range(0, samples, 250):
        part = slice(begin, begin + 250)
        counts = gaps.rng.multinomial(n, np.full(n, 1 / n), size=RESAMPLES).T / n
        left, right = gaps.left[part] @ counts, gaps.right[part] @ counts
        places = np.where(left * right < 0, left / (left - right), np.nan)
        given = np.isfinite(places).mean(axis=1) >= _LEAST_SHARE
        estimate = gaps.estimate[part]
        given &= (estimate > 0) & (estimate < 1)
        found = np.nanpercentile(places[given], (100 * TAIL, 100 * (1 - TAIL)), axis=1)
        lower[part][given], upper[part][given] = found
    return Bounds(lower, upper)


METHODS: dict[str, Method] = {
    "skew-adjusted t, inverted": by_inversion(skew_adjusted),
    "Student t, inverted": by_inversion(student),
    "before: percentile": percentile,
}


@dataclass(frozen=True, slots=True)
class CoverageCell:
    """`share` of the intervals given that contain the truth; `given`: share of samples with an interval."""

    share: float
    given: float
    samples: int

    @property
    def is_told(self) -> bool:
        return self.given * self.samples >= _FEWEST

    @property
    def text(self) -> str:
        if not self.is_told:
            return f"– ({100 * self.given:.0f})"
        mark = "**" if self.share < WANTED else ""
        return f"{mark}{100 * self.share:.1f}{mark} ({100 * self.given:.0f})"


def draw_gaps(population: Population, change: float, place: float, n: int, samples: int) -> Gaps:
    """Gaps whose truth is zero at `place`."""
    rng = np.random.default_rng([SEED, n])
    noise = [population.draw(samples, n, rng) - population.truth for _ in range(2)]
    spread = float(noise[0].std())
    return Gaps(noise[0] / spread - place * change, noise[1] / spread + (1 - place) * change, rng)


def judge(bounds: Bounds, truth: float) -> CoverageCell:
    given = np.isfinite(bounds.lower)
    contains = (bounds.lower[given] <= truth) & (truth <= bounds.upper[given])
    return CoverageCell(float(contains.mean()) if given.any() else math.nan, float(given.mean()), len(given))


def cover(samples: int) -> dict[tuple[float, float], dict[tuple[str, str], dict[int, CoverageCell]]]:
    """(change, place) -> (population, method) -> n -> cell."""
    independent = [one for one in populations() if one.name not in DRIFTING]
    found: dict[tuple[float, float], dict[tuple[str, str], dict[int, CoverageCell]]] = {}
    for change in CHANGES:
        for place in PLACES:
            rows = found.setdefault((change, place), {})
            for population in independent:
                for n in SIZES:
                    gaps = draw_gaps(population, change, place, n, samples)
                    for name, method in METHODS.items():
                        rows.setdefault((population.name, name), {})[n] = judge(method(gaps), place)
    return found


def worst(found: Mapping[tuple[float, float], Mapping[tuple[str, str], Mapping[int, CoverageCell]]]) -> str:
    """For each method and n: the least share, and the mean share, over all populations and settings."""
    rows = {}
    for method in METHODS:
        texts = []
        for n in SIZES:
            cells = [
                row[n]
                for rows_of_setting in found.values()
                for (_, name), row in rows_of_setting.items()
                if name == method and row[n].is_told
            ]
            shares = [100 * cell.share for cell in cells]
            below = sum(cell.share < WANTED for cell in cells)
            texts.append(f"{np.mean(shares):.1f}, {min(shares):.1f}, {below} of {len(cells)}" if shares else "–")
        rows[method] = texts
    return table("method", [f"n = {n}" for n in SIZES], rows)


def main() -> None:
    """All tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="1,000 samples a cell instead of 5,000")
    samples = 1_000 if parser.parse_args().quick else 5_000
    print(f"From {samples:,} samples a cell; the standard error of a share near 93 % is", end=" ")
    print(f"{100 * math.sqrt(WANTED * (1 - WANTED) / samples):.2f} where all have an interval.")
    found = cover(samples)
    print("\n## Over all populations and settings\n")
    print("Mean share, least share, and cells below 93 %.\n")
    print(worst(found))
    for (change, place), rows in found.items():
        print(f"\n## The gap changes by {change:g} standard deviations; they cross at {place:g} of the stretch\n")
        texts = {", ".join(names): [row[n].text for n in SIZES] for names, row in rows.items()}
        print(table("population, method", [f"n = {n}" for n in SIZES], texts))


if __name__ == "__main__":
    main()
