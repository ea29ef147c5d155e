# SPDX-License-Identifier: Apache-2.0
"""The best power limit of each setting: the one with the least energy for a token, and how sure that is.

A setting is what cases have in common that differ in nothing but `power_limit_w`. Limits are compared on the blocks
that all of them have, on one board with one software. A limit's certainty is the share of bootstrap resamples of these
blocks in which it has the least energy; equal ones share a win. Where cases yield no tokens, a sample counts, or a
gigabyte copied.

The energy-delay product is energy times time, both for one token (Horowitz et al. 1994, "Low-power digital design"): it
is least where neither can be bought cheaply with the other. Error term: limits between those of the plan are not
measured, and nothing is interpolated.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pybench.analysis.comparability import SoftwareComparisons
from pybench.analysis.measurements import Measurements
from pybench.analysis.statistics.bootstrap import RESAMPLES
from pybench.analysis.statistics.elementary import log
from pybench.analysis.statistics.estimate import Estimate, Sample
from pybench.analysis.statistics.intervals import estimate_geometric_mean
from pybench.analysis.statistics.paired import compare_paired
from pybench.analysis.statistics.sequential import confidence_among
from pybench.case import Case
from pybench.case.yields import metrics_of
from pybench.catalogue.metrics import METRICS, Amount, Metric
from pybench.dataset import Dataset

FACTOR = "power_limit_w"
TOTAL = "gpu_energy_j"
FEWEST_BLOCKS = 2  # of one block every resample is the same

# What a case does, the most telling first, and the metric that says how much of it is done in a second.
SPEEDS: Mapping[Amount, str] = {
    "token": "throughput_tokens_per_s",
    "sample": "throughput_samples_per_s",
    "gb": "bandwidth_gb_per_s",
}

Numbers = NDArray[np.float64]
Blocks = Mapping[int, float]  # block -> value


@dataclass(frozen=True, slots=True)
class LimitPoint:
    """One power limit of a setting.

    limit_w: as the plan says; None: the board as it is
    seen_w: the limit that its runs found on the board; None: not told
    energy: for one token
    speed: tokens a second
    energy_delay: energy times time for one token, J s
    relative_energy, relative_speed: over those of the reference, paired within blocks; None for the reference itself
    wins_ratio, delay_wins_ratio: share of resamples in which its energy, or its energy-delay product, is the least;
        None: too few blocks
    """

    case: Case
    limit_w: int | None
    seen_w: float | None
    energy: Estimate
    speed: Estimate
    energy_delay: Estimate
    relative_energy: Estimate | None
    relative_speed: Estimate | None
    wins_ratio: float | None
    delay_wins_ratio: float | None

    def as_json(self) -> dict[str, Any]:
        estimates = {
            "energy": self.energy,
            "speed": self.speed,
            "energy_delay": self.energy_delay,
            "relative_energy": self.relative_energy,
            "relative_speed": self.relative_speed,
        }
        return {
            "case_id": self.case.id,
            "power_limit_w": self.limit_w,
            "seen_power_limit_w": self.seen_w,
            **{name: None if found is None else found.as_json() for name, found in estimates.items()},
            "wins_ratio": self.wins_ratio,
            "energy_delay_wins_ratio": self.delay_wins_ratio,
        }


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """One setting with its limits, the lowest first and the board as it is last.

    setting: any of its cases
    energy, speed: the metrics that `points` are about
    blocks: those that all `points` have
    reference: whose speed the others are compared with: the board as it is, or else the highest limit
    left_out: (case of a limit without a number that can be compared, why)
    """

    setting: Case
    energy: Metric
    speed: Metric
    points: tuple[LimitPoint, ...]
    blocks: tuple[int, ...]
    reference: Case | None
    left_out: tuple[tuple[Case, str], ...]

    @property
    def best(self) -> LimitPoint | None:
        """The limit with the least energy; None where no two limits can be compared."""
        return min(self.points, key=lambda point: point.energy.value) if len(self.points) > 1 else None

    @property
    def best_energy_delay(self) -> LimitPoint | None:
        """The limit with the least energy-delay product."""
        return min(self.points, key=lambda point: point.energy_delay.value) if len(self.points) > 1 else None

    def as_json(self) -> dict[str, Any]:
        best, balanced = self.best, self.best_energy_delay
        return {
            "setting": {name: value for name, value in self.setting.factors().items() if name != FACTOR},
            "energy_metric": self.energy.name,
            "speed_metric": self.speed.name,
            "blocks": list(self.blocks),
            "resamples": RESAMPLES if len(self.blocks) >= FEWEST_BLOCKS else 0,
            "best_case_id": None if best is None else best.case.id,
            "best_energy_delay_case_id": None if balanced is None else balanced.case.id,
            "reference_case_id": None if self.reference is None else self.reference.id,
            "limits": [point.as_json() for point in self.points],
            "left_out": [
                {"case_id": case.id, "power_limit_w": case.power_limit_w, "why": why} for case, why in self.left_out
            ],
        }


def find_operating_points(
    dataset: Dataset, measurements: Measurements, software: SoftwareComparisons
) -> tuple[OperatingPoint, ...]:
    """One finding for each setting that has several power limits, in the plan's order."""
    settings: dict[tuple[Any, ...], list[Case]] = {}
    for case in dataset.plan.cases:
        settings.setdefault(_setting_of(case), []).append(case)
    found = []
    for cases in settings.values():
        amount = next((one for one in SPEEDS if _energy_of(one).name in metrics_of(cases[0])), None)
        if len(cases) > 1 and amount is not None:
            found.append(_find(sorted(cases, key=_height), amount, dataset, measurements, software))
    return tuple(found)


def _setting_of(case: Case) -> tuple[Any, ...]:
    return (*((name, value) for name, value in case.factors().items() if name != FACTOR), case.sources)


def _energy_of(amount: Amount) -> Metric:
    """The GPU's energy for one of them."""
    return next(one for one in METRICS.values() if (one.of, one.per, one.is_inverse) == (TOTAL, amount, False))


def _height(case: Case) -> float:
    """The board as it is comes last: no limit of a plan is above its own."""
    return float("inf") if case.power_limit_w is None else case.power_limit_w


@dataclass(frozen=True, slots=True)
class _Limit:
    """What a limit's runs say of the blocks that count."""

    case: Case
    energy: Blocks
    speed: Blocks


def _find(
    cases: Sequence[Case], amount: Amount, dataset: Dataset, measurements: Measurements, software: SoftwareComparisons
) -> OperatingPoint:
    energy, speed = _energy_of(amount), METRICS[SPEEDS[amount]]
    usable: list[_Limit] = []
    left_out: dict[Case, str] = {}
    for case in reversed(cases):  # the reference first: the others have to be comparable with it
        limit, why = _read(case, (energy.name, speed.name), measurements)
        if limit is not None and usable:
            limit, why = _comparable(limit, usable[0].case, software)
        if limit is None:
            left_out[case] = why
        else:
            usable.append(limit)
    usable.reverse()
    blocks = tuple(sorted(set.intersection(*(set(one.energy) for one in usable)))) if usable else ()
    if not blocks:
        left_out = {case: left_out.get(case, "no block has a value of every limit") for case in cases}
        usable = []
    return OperatingPoint(
        setting=cases[0],
        energy=energy,
        speed=speed,
        points=_points(usable, blocks, dataset, measurements.tests),
        blocks=blocks,
        reference=usable[-1].case if usable else None,
        left_out=tuple((case, left_out[case]) for case in cases if case in left_out),
    )


def _read(case: Case, names: tuple[str, str], measurements: Measurements) -> tuple[_Limit | None, str]:
    """What the blocks with both values say, or why there is none."""
    energy, speed = (measurements.cell(case.id, name).values for name in names)
    both = {block for block in energy.keys() & speed.keys() if energy[block] > 0 and speed[block] > 0}
    if both:
        return _Limit(case, {block: energy[block] for block in both}, {block: speed[block] for block in both}), ""
    return None, measurements.why_empty(case.id, names[1] if energy else names[0])


def _comparable(limit: _Limit, reference: Case, software: SoftwareComparisons) -> tuple[_Limit | None, str]:
    """Without the blocks in which board or software differ from the reference's."""
    found = software.between(limit.case, reference)
    kept = _Limit(limit.case, found.kept(limit.energy), found.kept(limit.speed))
    return (kept, "") if kept.energy else (None, found.why())


def _points(limits: Sequence[_Limit], blocks: tuple[int, ...], dataset: Dataset, tests: int) -> tuple[LimitPoint, ...]:
    if not limits:
        return ()
    energies = np.array([[limit.energy[block] for block in blocks] for limit in limits])
    speeds = np.array([[limit.speed[block] for block in blocks] for limit in limits])
    products = energies / speeds
    wins, delay_wins = (share_of_wins(table, dataset.plan.seed) for table in (energies, products))
    reference, confidence = len(limits) - 1, confidence_among(tests)
    return tuple(
        LimitPoint(
            case=limit.case,
            limit_w=limit.case.power_limit_w,
            seen_w=_seen_limit(limit.case, blocks, dataset),
            energy=estimate_geometric_mean(Sample.of(energies[place]), confidence),
            speed=estimate_geometric_mean(Sample.of(speeds[place]), confidence),
            energy_delay=estimate_geometric_mean(Sample.of(products[place]), confidence),
            relative_energy=None if place == reference else _ratio(energies, place, reference, tests),
            relative_speed=None if place == reference else _ratio(speeds, place, reference, tests),
            wins_ratio=None if wins is None else float(wins[place]),
            delay_wins_ratio=None if delay_wins is None else float(delay_wins[place]),
        )
        for place, limit in enumerate(limits)
    )


def share_of_wins(values: Numbers, seed: int) -> Numbers | None:
    """float64 [limits]: the share of resamples in which each row of `values`, float64 [limits, blocks] above 0, has the
    least geometric mean; they add up to 1. None for fewer than two blocks.

    Blocks are drawn with replacement, the same for all rows, because a block's drift is common to them. Error: one
    half over the root of `RESAMPLES` at most, which is 0.5 percentage points.
    """
    count = values.shape[1]
    if count < FEWEST_BLOCKS:
        return None
    drawn = np.random.default_rng(seed).integers(0, count, (RESAMPLES, count))
    means = log(values)[:, drawn].mean(axis=2)
    least = means == means.min(axis=0)
    shares: Numbers = (least / least.sum(axis=0)).mean(axis=1)
    return shares


def _ratio(values: Numbers, place: int, reference: int, tests: int) -> Estimate:
    case, other = (dict(enumerate(map(float, values[row]))) for row in (place, reference))
    effect = compare_paired(case, other, "ratio", tests=tests)
    if effect is None:
        raise ValueError("limits without a common block")
    return effect.estimate


def _seen_limit(case: Case, blocks: Sequence[int], dataset: Dataset) -> float | None:
    """The middle one of what its runs found in force."""
    boards = [dataset.energies.get((case.id, block)) for block in blocks]
    seen = [board.power_limit_w for board in boards if board is not None and board.power_limit_w is not None]
    return statistics.median_low(seen) if seen else None
