# SPDX-License-Identifier: Apache-2.0
"""How often `pybench compare` calls a campaign worse than another of the same source, and which slow-downs it finds.

    python -m bench.comparing.false_alarms CAMPAIGN... [--pairs 400]

CAMPAIGN: folders of one plan, run one after another by one source on one machine, in the order of their names. The
real part compares each with each, in the order in which they ran. Pairs share campaigns, so they are no independent
trials. It then joins four campaigns in a row to two of twice the blocks: the first two against the last two (apart), or
the odd against the even (in turns). The simulated part draws runs of all campaigns with replacement, which leaves no
drift, and adds a factor that a whole campaign shares. `quiet` scales the spread between runs to 2 %. The last tables
have campaigns of 15 blocks: at one time, with one factor, or in three rounds, each with a factor of its own.

A slow-down is planted: the times of B are multiplied, and its rates divided. Rules: every metric and no correction (as
before 27 November 2026); the gated metrics with Holm's correction (as now); and the same with another latency in place
of the median. Printed as Markdown: share of pairs with an alarm, in %. No table tells what a change of the machine does
that hits cases unequally.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pybench.analysis.findings.changes import Change, MetricChange, Side, Tolerances, changes_between, side_of
from pybench.analysis.findings.comparison import TOLERANCE, TOLERANCE_PP, compared_metrics
from pybench.analysis.measurements import MetricValues
from pybench.analysis.statistics.paired import ALPHA, holm
from pybench.case import Case
from pybench.dataset import load

PLANTED = (1.0, 1.05, 1.10, 1.20, 1.50)
DRIFTS = (0.0, 0.01, 0.02, 0.05)  # standard deviation of the logarithm of the factor that a campaign shares
QUIET = 0.02  # standard deviation of the logarithms of a case's runs
BLOCKS = 5
ROUNDS = 3
Chosen = Callable[[MetricChange], bool]
Pair = tuple[Side, Side]


@dataclass(frozen=True, slots=True)
class Rule:
    chosen: Chosen
    corrected: bool


def _gated_with(latency: str) -> Chosen:
    """The gated metrics, with another latency in place of the gated one."""
    return lambda change: change.metric.name == latency or (change.metric.gated and change.metric.group != "time")


RULES = {
    "every metric, uncorrected": Rule(lambda change: True, corrected=False),
    "gated metrics, uncorrected": Rule(lambda change: change.metric.gated, corrected=False),
    "gated metrics, Holm": Rule(lambda change: change.metric.gated, corrected=True),
    "the same, mean latency": Rule(_gated_with("latency_mean_ms"), corrected=True),
    "the same, p99 latency": Rule(_gated_with("latency_p99_ms"), corrected=True),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("campaigns", nargs="+", type=Path)
    parser.add_argument("--pairs", type=int, default=400)
    given = parser.parse_args()
    datasets = [load(path) for path in given.campaigns]
    cases = tuple(datasets[0].cases.values())
    sides = [side_of(dataset) for dataset in datasets]
    print(f"{len(sides)} campaigns, {len(cases)} cases\n")
    for name, pairs in {
        "each with each": list(itertools.combinations(sides, 2)),
        "neighbours": list(itertools.pairwise(sides)),
        "two and two, apart": [(joined(a, b), joined(c, d)) for a, b, c, d in fours(sides)],
        "two and two, in turns": [(joined(a, c), joined(b, d)) for a, b, c, d in fours(sides)],
    }.items():
        print_table(f"{name}: {len(pairs)} pairs", pairs, cases)
    random = np.random.default_rng(7)
    pool = joined(*sides)
    for spread, quiet in {"as measured": None, "quiet": QUIET}.items():
        for drift in DRIFTS:
            drawn = [
                (simulated(pool, cases, quiet, drift, random), simulated(pool, cases, quiet, drift, random))
                for _ in range(given.pairs)
            ]
            print_table(f"simulated, spread {spread}, drift {drift:.0%}: {given.pairs} pairs", drawn, cases)
    print_rounds(pool, cases, given.pairs)


def print_rounds(pool: Side, cases: Sequence[Case], number: int) -> None:
    """What it brings to run two campaigns in turns, for each drift."""
    random = np.random.default_rng(8)

    def at_once(drift: float) -> Side:
        rounds = [simulated(pool, cases, QUIET, 0.0, random) for _ in range(ROUNDS)]
        return slowed(joined(*rounds), math.exp(random.normal(0, drift)))

    def in_rounds(drift: float) -> Side:
        return joined(*(simulated(pool, cases, QUIET, drift, random) for _ in range(ROUNDS)))

    for drift in DRIFTS[1:]:
        for name, made in {"at one time": at_once, "in three rounds": in_rounds}.items():
            pairs = [(made(drift), made(drift)) for _ in range(number)]
            print_table(f"15 blocks {name}, spread quiet, drift {drift:.0%}: {number} pairs", pairs, cases)


def fours(sides: Sequence[Side]) -> Iterable[Sequence[Side]]:
    return (sides[first : first + 4] for first in range(len(sides) - 3))


def print_table(title: str, pairs: Sequence[Pair], cases: Sequence[Case]) -> None:
    print(f"\n{title}\n\n| rule | {' | '.join('A/A' if one == 1 else f'{one:.2f}' for one in PLANTED)} |")
    print(f"| --- |{' --- |' * len(PLANTED)}")
    alarms = {name: [0] * len(PLANTED) for name in RULES}
    for place, factor in enumerate(PLANTED):
        for before, after in pairs:
            changes = compared(before, slowed(after, factor), cases)
            for name, rule in RULES.items():
                alarms[name][place] += is_alarm(rule, changes)
    for name, counts in alarms.items():
        print(f"| {name} | {' | '.join(f'{100 * count / len(pairs):.1f}' for count in counts)} |", flush=True)


def compared(before: Side, after: Side, cases: Sequence[Case]) -> tuple[MetricChange, ...]:
    metrics = compared_metrics(before.measurements.metrics)
    tolerances = Tolerances(TOLERANCE, TOLERANCE_PP)
    return changes_between(before, after, cases, metrics, frozenset(), tolerances, {})


def is_alarm(rule: Rule, changes: Sequence[MetricChange]) -> bool:
    chosen = [change for change in changes if change.change is Change.NOT_JUDGED and rule.chosen(change)]
    p_values = [change.p_value for change in chosen]
    adjusted = holm(p_values) if rule.corrected else p_values
    return any(
        is_worse(change) and (p_value is None or p_value < ALPHA)
        for change, p_value in zip(chosen, adjusted, strict=True)
    )


def is_worse(change: MetricChange) -> bool:
    """Whether the whole interval is beyond the tolerance. Accuracies have more when better."""
    estimate = change.estimate
    if estimate is None or estimate.lower is None or estimate.upper is None:
        return False
    if change.metric.unit == "%":
        return estimate.upper < -TOLERANCE_PP
    return estimate.lower > 1 + TOLERANCE if change.metric.better == "lower" else estimate.upper < 1 / (1 + TOLERANCE)


# --- sides made of others --------------------------------------------------------------------------------------------


def slowed(side: Side, factor: float) -> Side:
    """Times multiplied, rates divided. The share of CPUs in use stays."""

    def cell(metric: str, found: MetricValues) -> MetricValues:
        row = side.measurements.metrics[metric]
        if row.group != "time" or row.unit == "1":
            return found
        times = factor if row.better == "lower" else 1 / factor
        return replace(found, values={block: value * times for block, value in found.values.items()})

    return with_cells(side, {key: cell(key[1], found) for key, found in side.measurements.cells.items()})


def joined(*sides: Side) -> Side:
    """The blocks of several campaigns as those of one."""
    cells = {}
    for key, cell in sides[0].measurements.cells.items():
        values = {
            BLOCKS * number + block: value
            for number, side in enumerate(sides)
            for block, value in side.measurements.cell(*key).values.items()
        }
        cells[key] = replace(cell, values=values)
    return with_cells(sides[0], cells)


def with_cells(side: Side, cells: dict[tuple[str, str], MetricValues]) -> Side:
    return replace(side, measurements=replace(side.measurements, cells=cells))


def simulated(
    pool: Side, cases: Sequence[Case], quiet: float | None, drift: float, random: np.random.Generator
) -> Side:
    """A campaign whose runs are drawn from the pool, all metrics of a run together."""
    shared = math.exp(random.normal(0, drift))
    cells = {}
    for case in cases:
        of_case = {key: cell for key, cell in pool.measurements.cells.items() if key[0] == case.id}
        blocks = sorted({block for cell in of_case.values() for block in cell.values})
        count = min(BLOCKS, len({(block - 1) % BLOCKS for block in blocks}))
        drawn = random.choice(blocks, count).tolist()
        for key, cell in of_case.items():
            scale = 1.0 if quiet is None else quieted(cell, quiet)
            centre = geometric_mean(cell)
            values = {
                block: value if centre is None else centre * (value / centre) ** scale
                for block, old in enumerate(drawn, start=1)
                if (value := cell.values.get(old)) is not None
            }
            cells[key] = replace(cell, values=values)
    return slowed(with_cells(pool, cells), shared)


def quieted(cell: MetricValues, spread: float) -> float:
    """The power of a run's ratio to the mean that leaves this spread; never above 1."""
    values = [value for value in cell.values.values() if value > 0]
    own = float(np.std(np.log(values))) if len(values) > 1 else 0.0
    return min(1.0, spread / own) if own > 0 else 1.0


def geometric_mean(cell: MetricValues) -> float | None:
    values = list(cell.values.values())
    return float(np.exp(np.mean(np.log(values)))) if values and min(values) > 0 else None


if __name__ == "__main__":
    main()
