# SPDX-License-Identifier: Apache-2.0
"""What a workload hands to the worker: numbers with their window and uncertainty, verdicts, doubts and tables.

A workload opens no file of the run directory and knows none of its names; the worker stores a `Result` there
(docs/formats/rundir.md describes the stored form).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pybench.case import Case
from pybench.catalogue.cautions import Caution
from pybench.catalogue.reasons import Reason
from pybench.catalogue.validities import ValidityKind
from pybench.kernels.profile import Profile
from pybench.measure.quantity import Quantity

if TYPE_CHECKING:
    from pybench.measure import SensorProfile


@dataclass(frozen=True, slots=True)
class Validity:
    """One of a run's validities: True, False (with reasons) or None (not asked, not applicable)."""

    value: bool | None
    reasons: tuple[Reason, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The stored form: each code once. Its details are with the value that it is said of, or in the labels."""
        return {"value": self.value, "reasons": list(dict.fromkeys(reason.stored_code for reason in self.reasons))}


@dataclass(slots=True)
class Result:
    """Everything a workload found.

    metrics: name of a row -> value
    windows: name -> {begin_ns, end_ns, iterations}
    labels: facts that are no numbers (device, ids_sha256, providers)
    measuring: what measured and what it found of the machine, for environment.json
    energy_budget: where the GPU's joules come from, for energy.json; None without a GPU
    profile: the kernels of an iteration, for profile.json; None where the runtime does not tell them
    valid: kind -> whether that part of the run counts
    cautions: doubts, for run.json
    tables: file stem -> column -> array, equal lengths. Stems: `iterations`, `iterations_depth1`, `core_probes`,
        `predictions`, `sensitivity`, `tensor_errors`, `learning_curve`, `power_samples`, `power_polled`,
        `power_drains`, `energy_counter`, `clocks`, `gpu_processes`, `power_rails`.
    """

    metrics: dict[str, Quantity] = field(default_factory=dict)
    windows: dict[str, dict[str, Any]] = field(default_factory=dict)
    labels: dict[str, Any] = field(default_factory=dict)
    measuring: dict[str, Any] = field(default_factory=dict)
    energy_budget: dict[str, Any] | None = None
    profile: Profile | None = None
    valid: dict[ValidityKind, Validity] = field(default_factory=dict)
    cautions: list[Caution] = field(default_factory=list)
    tables: dict[str, Mapping[str, np.ndarray[Any, Any]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What the runner asks of one worker.

    artefacts: role -> file
    files: factor -> the user's file, absolute
    seed: of this run (block and case), for data order and synthetic input
    sensors: GPU's UUID -> what is known of its power sensor
    """

    case: Case
    block: int
    attempt: int
    seed: int
    artefacts: Mapping[str, Path]
    files: Mapping[str, Path]
    sensors: Mapping[str, SensorProfile] = field(default_factory=dict)
