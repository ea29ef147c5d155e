# SPDX-License-Identifier: Apache-2.0
"""What becomes of verdicts and intervals where a campaign stops once it is decided. Prints Markdown.

    python bench/intervals/stopping.py [--campaigns 10000] [--at-most 60]

A campaign has one bound or four, each on a mean of log-ratios within blocks. The first bound has the distance of the
row from the truth, in standard deviations of a block, and the others `FAR`. At 0 the truth is the bound, and one of
both verdicts is wrong; it is the one that the longer tail makes more likely. Campaigns are looked at as `pybench run`
does it: a bound is decided where the whole interval keeps or breaks it, and all have to be. Compared with the same
without a correction, and with a fixed number of blocks.

Printed in %: wrong verdicts of the first bound by the interval that a report has, campaigns that were decided, and
those decided with any wrong verdict. Then: intervals of a report that contain the truth, and the mean number of blocks.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[2]))  # last, so that pybench is the one that is installed

from bench.intervals.methods import Draw, skew_adjusted
from bench.intervals.populations import Numbers, Population, populations
from pybench.analysis.statistics.sequential import confidence_among
from pybench.case.repetitions import looks_until

SEED = 20261127
DISTANCES = (0.0, 0.5, 1.0, 2.0, 5.0)
FAR = 2.0
QUESTIONS = (1, 4)
FIXED = 10
DRAWN = ("normal", "t3", "outliers ±", "drifting pairs", "lognormal", "outliers")
HEADS = ("wrong verdicts", "decided", "decided wrongly", "contain the truth", "mean blocks")


@dataclass(frozen=True, slots=True)
class Stops:
    """One value a campaign: bool, bool, bool, float64 (share of its intervals), int."""

    is_wrong: Numbers
    is_decided: Numbers
    is_decided_wrongly: Numbers
    covered: Numbers
    blocks: Numbers

    @property
    def cells(self) -> list[str]:
        wrong, decided, wrongly, covered = (
            100 * float(np.mean(one)) for one in (self.is_wrong, self.is_decided, self.is_decided_wrongly, self.covered)
        )
        return [
            f"{wrong:.1f}",
            f"{decided:.0f}",
            f"{wrongly:.1f}",
            f"{covered:.1f}",
            f"{float(np.mean(self.blocks)):.1f}",
        ]


def run(values: Numbers, distance: float, looks: Sequence[int], *, is_corrected: bool) -> Stops:
    """Campaigns that stop.

    values: float64 [campaigns, questions, blocks] of mean 0
    distance: of the first question's bound, which the truth does not exceed
    """
    campaigns, questions, _ = values.shape
    limits = np.array([distance, *[FAR] * (questions - 1)])
    tests = len(looks) if is_corrected else 1
    stops = Stops(*(np.zeros(campaigns, kind) for kind in (bool, bool, bool, float, int)))
    for look in looks:
        goes_on = ~stops.is_decided
        seen = values[goes_on, :, :look]
        lower, upper = _bounds(seen, confidence_among(tests * (questions if is_corrected else 1)))
        kept, broken = upper <= limits, lower > limits
        stops.is_decided_wrongly[goes_on] = (kept | broken).all(1) & broken.any(1)
        lower, upper = _bounds(seen, confidence_among(tests))
        stops.is_wrong[goes_on] = lower[:, 0] > distance
        stops.covered[goes_on] = ((lower <= 0) & (upper >= 0)).mean(1)
        stops.blocks[goes_on] = look
        stops.is_decided[goes_on] = (kept | broken).all(1)
    return stops


def _bounds(values: Numbers, confidence: float) -> tuple[Numbers, Numbers]:
    """float64 [campaigns, questions] each: the house's interval of the mean over blocks."""
    campaigns, questions, blocks = values.shape
    found = skew_adjusted(Draw(values.reshape(-1, blocks), np.random.default_rng(0)), (1 - confidence) / 2)
    return found.lower.reshape(campaigns, questions), found.upper.reshape(campaigns, questions)


def draw(population: Population, campaigns: int, questions: int, blocks: int) -> Numbers:
    """float64 [campaigns, questions, blocks] of mean 0 and standard deviation 1. The longer tail is below the mean: a
    sample without it has a high mean and a small spread."""
    rng = np.random.default_rng([SEED, questions])
    values = population.truth - population.draw(campaigns * questions, blocks, rng)
    return (values / math.sqrt(float(np.mean(values**2)))).reshape(campaigns, questions, blocks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--campaigns", type=int, default=10_000)
    parser.add_argument("--at-most", type=int, default=60)
    given = parser.parse_args()
    looks = looks_until(given.at_most)
    print(f"Looks after {', '.join(map(str, looks))} blocks; {given.campaigns} campaigns a row.")
    designs = {
        "Stopped when decided": (looks, True),
        "The same, without a correction": (looks, False),
        f"{FIXED} blocks": ((FIXED,), True),
    }
    for title, (taken, is_corrected) in designs.items():
        print(f"\n## {title}\n\n| blocks | questions | distance | {' | '.join(HEADS)} |")
        print(f"| --- | --- | --- |{' --- |' * len(HEADS)}")
        for name in DRAWN:
            population = next(one for one in populations() if one.name == name)
            for questions in QUESTIONS:
                values = draw(population, given.campaigns, questions, taken[-1])
                for distance in DISTANCES:
                    cells = run(values, distance, taken, is_corrected=is_corrected).cells
                    print(f"| {name} | {questions} | {distance:g} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
