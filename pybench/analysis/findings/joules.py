# SPDX-License-Identifier: Apache-2.0
"""Where each joule of a case comes from: one run of it, with its energy's budget and what plain methods would have
said.

The run is the one whose energy is the median of its case, so that what is shown is typical and was not chosen by hand.
How the energy was found is the measuring half's (energy.json, docs/method/energy.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any

import polars as pl

from pybench.analysis.statistics.estimate import NORMAL_95
from pybench.case import Case
from pybench.dataset import Dataset
from pybench.dataset.energy import EnergyWindow, RunEnergy

GAIN = "board_gain"
NET, TAIL = "gpu_net_energy_j", "gpu_tail_energy_j"


@dataclass(frozen=True, slots=True)
class Part:
    """One part of an uncertainty: standard, in J. Parts add in squares."""

    name: str
    u_j: float


@dataclass(frozen=True, slots=True)
class JouleFinding:
    """One run that stands for its case. `of_runs`: how many runs of the case have such a budget; `u_net_absolute_j` and
    `u_tail_absolute_j`: standard uncertainties with the board's gain."""

    case: Case
    block: int
    of_runs: int
    board: RunEnergy
    window: EnergyWindow
    u_net_absolute_j: float | None
    u_tail_absolute_j: float | None

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts of the within-board uncertainty as stored, then the board's gain: together the absolute one."""
        stored = [Part(name, u_j) for name, u_j in self.window.parts_j.items() if u_j is not None]
        within_j, absolute_j = self.window.u_within_j, self.window.u_absolute_j
        if within_j is None or absolute_j is None:
            return tuple(stored)
        return (*stored, Part(GAIN, sqrt(max(absolute_j**2 - within_j**2, 0.0))))

    def share(self, number_j: float | None) -> float | None:
        """A number of joules as a share of the energy, 1."""
        return None if number_j is None or not self.window.energy_j else number_j / self.window.energy_j

    def plain_error(self, method: str) -> float | None:
        """By how much a plain method is off, as a share of the energy, signed."""
        plain_j = self.window.plain_j.get(method)
        if plain_j is None or self.window.energy_j is None:
            return None
        return self.share(plain_j - self.window.energy_j)

    def as_json(self) -> dict[str, Any]:
        return {
            "case_id": self.case.id,
            "block": self.block,
            "of_runs": self.of_runs,
            "window": self.window.window,
            "energy_j": self.window.energy_j,
            "within_95_j": expanded(self.window.u_within_j),
            "absolute_95_j": expanded(self.window.u_absolute_j),
            "parts_j": {part.name: part.u_j for part in self.parts},
            "plain_errors_ratio": {method: self.plain_error(method) for method in self.window.plain_j},
            "valid": self.window.valid,
            "reasons": [str(reason) for reason in self.window.reasons],
        }


def expanded(u_standard: float | None) -> float | None:
    """Half the width of a 95 % interval, taken as normal."""
    return None if u_standard is None else NORMAL_95 * u_standard


def find_joules(dataset: Dataset) -> tuple[JouleFinding, ...]:
    """One finding for each case of the plan that has an `ok` run with a budget, in the plan's order."""
    ran = set(dataset.runs.filter(pl.col("outcome") == "ok").select("case_id", "block").iter_rows())
    absolute = _absolute_uncertainties(dataset)
    blocks: dict[str, list[int]] = {}
    for case_id, block in dataset.energies:
        if (case_id, block) in ran:
            blocks.setdefault(case_id, []).append(block)
    found = []
    for case in dataset.plan.cases:
        if case.id in blocks:
            energies = {
                block: dataset.energies.first((case.id, block), "energy_j", "valid") for block in blocks[case.id]
            }
            block = _median_block(energies)
            board = dataset.energies[case.id, block]
            net, tail = (absolute.get((case.id, block, name)) for name in (NET, TAIL))
            found.append(JouleFinding(case, block, len(energies), board, board.windows[0], net, tail))
    return tuple(found)


def _median_block(energies: Mapping[int, tuple[float | None, bool]]) -> int:
    """Of valid runs if there are any, else of those with an energy, else the first; of an even number the lower
    middle. `energies`: block -> energy, and whether it is valid."""
    known = [(energy_j, block, valid) for block, (energy_j, valid) in energies.items() if energy_j is not None]
    chosen = [one for one in known if one[2]] or known
    return sorted(chosen)[(len(chosen) - 1) // 2][1] if chosen else min(energies)


def _absolute_uncertainties(dataset: Dataset) -> dict[tuple[str, int, str], float | None]:
    wanted = dataset.metric_rows("case_id", "block").filter(pl.col("metric").is_in([NET, TAIL]))
    return {
        (case_id, block, metric): u_j
        for case_id, block, metric, u_j in wanted.select("case_id", "block", "metric", "u_absolute").iter_rows()
    }
