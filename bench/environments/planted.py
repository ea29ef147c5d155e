# SPDX-License-Identifier: Apache-2.0
"""How often a slow-down between two environments is found, by the number of blocks, with the noise of real campaigns.

    python -m bench.environments.planted CAMPAIGN... [--trials 2000]

CAMPAIGN: unpacked archives. Their noise is that of mean latencies, of the cases with most blocks, at least `FEWEST`. A
latency is a factor of the case, a factor that a block's cases share, and the rest, which is of a single run. A trial
draws a case and two environments of it: blocks with replacement, and the rest of each run from those of its case. Then
one environment is made slower, and pybench's own estimate and verdict are asked.

Both of what a user may ask are printed as Markdown, in % of trials. *shown*: the interval of the ratio is wholly on the
slow side of 1. *rejected*: `speedup_min: 0.99` is broken, which is a slow-down by more than one percent. Without a
slow-down both are false alarms. Trials draw from what few runs there are, so tails that no campaign met are not in it.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import numpy.typing as npt

from pybench.analysis.comparability import PairComparability
from pybench.analysis.findings.changes import side_of
from pybench.analysis.findings.contrasts import PairEffect, PairFinding
from pybench.analysis.findings.verdicts import Verdict, judge_criterion
from pybench.analysis.statistics.paired import compare_paired
from pybench.case import Case
from pybench.case.contrasts import Criterion
from pybench.case.pairing import Pair
from pybench.catalogue.criteria import CRITERIA
from pybench.catalogue.metrics import METRICS
from pybench.dataset import Dataset, load

BLOCKS = (5, 10, 15, 30)
PLANTED = (0.0, 0.02)
FEWEST = 5  # blocks: fewer tell no spread
METRIC = METRICS["latency_mean_ms"]
KIND = CRITERIA["speedup_min"]
CRITERION = Criterion(KIND.name, METRIC, KIND.kind, KIND.sense, 0.99, KIND.inverse)
NEW, OLD = (Case(workload="noop", environment=name) for name in ("new", "old"))
SEED = 20261128
Values = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Noise:
    """Of the logarithms of a campaign's latencies.

    shared: [blocks], what all cases of a block have in common
    own: [cases, blocks], what is left of each run
    """

    shared: Values
    own: Values

    @property
    def pair_percent(self) -> float:
        """Median over cases: the standard deviation of the ratio of two runs in one block, %."""
        return 100 * np.sqrt(2) * float(median(self.own.std(axis=1)))

    @property
    def block_percent(self) -> float:
        """Standard deviation of what a block's cases share, %."""
        return 100 * float(self.shared.std())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("campaigns", nargs="+", type=Path)
    parser.add_argument("--trials", type=int, default=2000)
    given = parser.parse_args()
    random = np.random.default_rng(SEED)
    noises = {path.name: noise_of(load(path)) for path in given.campaigns}
    heads = [f"{planted:.0%} slower, {what}" for planted in PLANTED for what in ("shown", "rejected")]
    print(f"| campaign | cases | a pair, % | a block, % | blocks | {' | '.join(heads)} |")
    print("| --- |" + " --- |" * (4 + len(heads)))
    for name, noise in noises.items():
        about = f"| {name} | {len(noise.own)} | {noise.pair_percent:.2f} | {noise.block_percent:.2f} |"
        for blocks in BLOCKS:
            cells = [cell for planted in PLANTED for cell in found(noise, blocks, planted, given.trials, random)]
            print(f"{about} {blocks} | {' | '.join(f'{100 * cell:.1f}' for cell in cells)} |", flush=True)


def noise_of(dataset: Dataset) -> Noise:
    """Deviations are stretched by what taking means from as few values takes away. Raises ValueError where the
    campaign has less than two cases with the same blocks."""
    measurements = side_of(dataset).measurements
    cells = [measurements.cell(case, METRIC.name).values for case in dataset.cases]
    most = max(map(len, cells), default=0)
    logs = np.log([[values[block] for block in sorted(values)] for values in cells if len(values) == most >= FEWEST])
    if len(logs) < 2:
        raise ValueError(f"{dataset.plan.name}: no two cases have the same {FEWEST} blocks or more")
    centred = logs - logs.mean(axis=1, keepdims=True)
    shared = centred.mean(axis=0)
    cases, blocks = centred.shape
    own = (centred - shared) * np.sqrt(blocks / (blocks - 1) * cases / (cases - 1))
    return Noise(shared * np.sqrt(blocks / (blocks - 1)), own)


def found(noise: Noise, blocks: int, planted: float, trials: int, random: np.random.Generator) -> tuple[float, float]:
    """Shares of trials in which the slow-down is shown, and in which the bound is rejected."""
    shown = rejected = 0
    for _ in range(trials):
        own = noise.own[random.integers(len(noise.own))]
        shared = random.choice(noise.shared, blocks)
        old, new = (np.exp(shared + random.choice(own, blocks)) for _ in range(2))
        finding = compared((1 + planted) * new, old)
        estimate = finding.effects[METRIC.name].effect.estimate
        shown += estimate.lower is not None and estimate.lower > 1
        rejected += judge_criterion(CRITERION, finding).verdict is Verdict.REJECTED
    return shown / trials, rejected / trials


def compared(new: Sequence[float] | Values, old: Sequence[float] | Values) -> PairFinding:
    """What a report finds of these latencies, one a block."""
    effect = compare_paired(dict(enumerate(new)), dict(enumerate(old)), "ratio")
    blocks = PairComparability(frozenset(range(len(new))), {}, (), (), ())
    effects = {METRIC.name: PairEffect(METRIC, effect, None, True, None, None)}
    device = frozenset({"simulated"})
    return PairFinding(Pair(NEW, OLD), effects, device, device, frozenset(), frozenset(), blocks, True)


if __name__ == "__main__":
    main()
