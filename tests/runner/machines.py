# SPDX-License-Identifier: Apache-2.0
"""Machines for runners in tests. Imports nothing heavy: runners that are killed at random moments start with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pybench.campaign.recipe import Recipe, recipes_of
from pybench.case import Case
from pybench.catalogue.causes import Cause
from pybench.errors import UnsupportedError
from pybench.machine import Machine
from pybench.machine.facts import Facts


@dataclass(frozen=True)
class WillingMachine(Machine):
    """Takes every case but those it refuses, and asks nobody for facts."""

    facts: Facts = field(default_factory=dict)
    refuses: frozenset[str] = frozenset()
    """Ids of cases that need a GPU, which is not there."""
    uuids: tuple[str, ...] = ()
    cpu_count: int | None = None

    def unsupported(self, case: Case) -> UnsupportedError | None:
        return UnsupportedError("there is no GPU", code=Cause.NO_GPU) if case.id in self.refuses else None

    def gpus(self, case: Case) -> Sequence[str]:
        return self.uuids

    def cpus(self, case: Case) -> int | None:
        return self.cpu_count

    def recipes(self, case: Case) -> Mapping[str, Recipe]:
        return recipes_of(case)
