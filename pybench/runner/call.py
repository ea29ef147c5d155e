# SPDX-License-Identifier: Apache-2.0
"""One call of `run`: what it was asked for, what it works on and with, and whom it tells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from pybench.campaign.claims import Claimant
from pybench.campaign.directory import CampaignDirectory
from pybench.campaign.recipe import Recipe
from pybench.campaign.resolved_plan import ResolvedPlan
from pybench.machine import Machine
from pybench.runner.interruption import Interruption
from pybench.runner.outcome import Outcome
from pybench.runner.schedule import WHOLE, PlannedRun, Shard


@dataclass(frozen=True, slots=True)
class Options:
    """What one call of `run` was asked for."""

    shard: Shard = WHOLE
    selected: frozenset[str] | None = None
    """Ids of cases; None for all."""
    rerun: frozenset[str] = frozenset()
    """Ids of cases whose runs are done once more."""
    timeout_s: float = 3600.0
    max_failures: int | None = None
    retry_failed: bool = False
    whole_blocks: bool = False
    """A block that another machine began, and that is not done, is done here from its beginning."""
    may_measure_sensors: bool = True
    """False: a board whose power sensor was never measured stays unmeasured."""
    last_block: Callable[[], int | None] | None = None
    """Asked before a block begins: the last block that is wanted, None while nobody knows. None: all are wanted."""


class Listener(Protocol):
    """Who is told what happens, in the order it happens. `done`: outcomes of the runs that are not done again."""

    def begin(self, pending: int, done: Mapping[str, int]) -> None: ...
    def preparing(self, recipe: Recipe) -> None: ...
    def running(self, planned: PlannedRun) -> None: ...
    def finished(self, planned: PlannedRun, outcome: Outcome, wall_s: float) -> None: ...
    def skipped(self) -> None: ...
    def stopping(self) -> None: ...
    def note(self, text: str) -> None: ...


@dataclass(frozen=True, slots=True)
class RunnerCall:
    """What every part of one call shares.

    claimant: this process, as claims name it
    interruption: knows whether somebody asked it to stop
    """

    campaign: CampaignDirectory
    plan: ResolvedPlan
    options: Options
    machine: Machine
    listener: Listener
    claimant: Claimant
    interruption: Interruption
