# SPDX-License-Identifier: Apache-2.0
"""Energy of a whole node in a window, from the counters of HPE Cray's blade controller.

`/sys/cray/pm_counters/energy` has the joules since the node's start, such as `81147367 J 1700061210920464 us`, or
without a time in older versions. The controller updates it `raw_scan_hz` times a second (10), and `freshness` counts
the updates. Source: HPE, "User Access to Compute Node Power Data" (docs-csm).

    u(E)^2 = ((P T)^2 + q^2) / 6

T is the time between two updates and q the unit of the counter, 1 J: each edge falls anywhere in one of them. The gain
of the counter is not published, so `u_absolute` is null.
The files of the node's parts (`cpu_energy`, `accel0_energy`) are named and never added: `energy` has them inside.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import hypot, sqrt
from pathlib import Path
from typing import Any

from pybench.catalogue.causes import Cause
from pybench.catalogue.reasons import Reason, ReasonCode
from pybench.errors import UnsupportedError
from pybench.measure.energy.cpu_estimate import BusyTime
from pybench.measure.energy.integration import DISAGREEING_SIGMAS
from pybench.measure.energy.plain_methods import WANTED_RELATIVE
from pybench.measure.quantity import Quantity
from pybench.measure.timing.windows import Window

METRIC = "node_energy_j"
METHOD = "cray-pm-counters"
SCOPE = "node"
FOLDER = "sys/cray/pm_counters"
SCAN_HZ = 10.0  # of the controller, where it does not tell
QUANTUM_J = 1.0
STUCK_UPDATES = 10  # without a new value: the controller has stopped
OTHERS_CPUS = 0.5  # CPUs that other processes keep busy; the system's own services take less

_ENERGY = re.compile(r"(\d+)(?: J)?(?: (\d+) us)?")


@dataclass(frozen=True, slots=True)
class NodeReading:
    """The counter at one time. `energy_j`: None where the read failed; `mark`: differs between two updates."""

    energy_j: float | None
    mark: str


class NodeEnergy:
    """The node's counter; there is one only if `is_there`."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._folder = root / FOLDER
        self.is_there = (self._folder / "energy").exists()
        scan_hz = _number(self._folder / "raw_scan_hz")
        self.update_s = 1 / (scan_hz or SCAN_HZ)

    def read(self) -> NodeReading | None:
        """None where there is no counter."""
        if not self.is_there:
            return None
        found = _ENERGY.fullmatch(_read_text(self._folder / "energy"))
        if found is None:
            return NodeReading(None, "")
        return NodeReading(float(found[1]), f"{_read_text(self._folder / 'freshness')} {found[2]}")

    def difference(
        self, window: Window, begin: NodeReading | None, end: NodeReading | None, parts: Iterable[Quantity]
    ) -> Quantity | None:
        """The energy between two readings at the window's edges, in J; None without a counter, null where it is not
        valid. `parts`: energies of the same window that the node's has inside; those without a valid value say nothing.
        """
        if begin is None or end is None:
            return None
        null = Quantity(window=window.name, method=METHOD, scope=SCOPE)
        if begin.energy_j is None or end.energy_j is None:
            reason = Reason(ReasonCode.READ_FAILED, "pm_counters/energy could not be read at an edge of the window")
            return replace(null, reasons=(reason,))
        energy_j = end.energy_j - begin.energy_j
        within_j = hypot(energy_j / window.duration_s * self.update_s, QUANTUM_J) / sqrt(6)
        found = replace(null, value=energy_j, u_standard=within_j, valid=True)
        trouble = self._trouble(window, begin, end, found) or below_parts(found, parts)
        return found if trouble is None else replace(null, reasons=(trouble,))

    def facts(self) -> dict[str, Any] | None:
        """What was found, for environment.json; None without a counter."""
        if not self.is_there:
            return None
        return {"source": METHOD, "update_s": self.update_s, "counters": self.counters()}

    def counters(self) -> list[str]:
        """Every energy that the folder has, the node's first."""
        parts = sorted(file.name for file in self._folder.glob("*_energy"))
        return ["energy", *parts]

    def _trouble(self, window: Window, begin: NodeReading, end: NodeReading, found: Quantity) -> Reason | None:
        """Why the difference of two good readings is no energy of the window."""
        energy_j, within_j, length_s = found.value or 0.0, found.u_standard or 0.0, window.duration_s
        if energy_j < 0:
            return Reason(ReasonCode.COUNTER_RESET, "pm_counters/energy went back: the controller was restarted")
        if begin.mark == end.mark and length_s > STUCK_UPDATES * self.update_s:
            return Reason(ReasonCode.COUNTER_STUCK, f"pm_counters had no update for {length_s:.3g} s")
        if within_j > WANTED_RELATIVE * energy_j:
            return Reason(
                ReasonCode.WINDOW_TOO_SHORT,
                f"{length_s:.3g} s, and the node's counter tells whole joules every {self.update_s:.3g} s",
            )
        return None


def below_parts(node: Quantity, parts: Iterable[Quantity]) -> Reason | None:
    """The reason of a node that used less than some of its parts, beyond three standard uncertainties of both."""
    known = [part for part in parts if part.value is not None and part.valid]
    node_j, parts_j = node.value or 0.0, sum(part.value or 0.0 for part in known)
    u_j = hypot(node.u_standard or 0.0, *(part.u_absolute or part.u_standard or 0.0 for part in known))
    if parts_j - node_j <= DISAGREEING_SIGMAS * u_j:
        return None
    scopes = " and ".join(part.scope or "part" for part in known)
    return Reason(ReasonCode.NODE_BELOW_PARTS, f"the node's {node_j:.5g} J are less than {parts_j:.5g} J of {scopes}")


def others_cpus(window: Window, begin: BusyTime | None, end: BusyTime | None, own_s: float) -> float:
    """At least so many CPUs of the node were kept busy by other processes, on average over the window.

    own_s: CPU time of this process and its children in it
    """
    if begin is None or end is None:
        return 0.0
    return max(end.busy_s - begin.busy_s - own_s - end.resolution_s, 0.0) / window.duration_s


def node_energy_source(root: Path = Path("/")) -> dict[str, Any]:
    """The node's counter: `source` in words, and the `parts` that it has inside. Raises UnsupportedError where there is
    none, or where it cannot be read."""
    node = NodeEnergy(root)
    if (reading := node.read()) is None:
        raise UnsupportedError(
            "there is no counter of the node in /sys/cray/pm_counters",
            code=Cause.NO_NODE_ENERGY,
            hint="measure on a node of HPE Cray EX, and mount /sys/cray read-only into the container, if any",
        )
    if reading.energy_j is None:
        raise UnsupportedError(
            "/sys/cray/pm_counters/energy gives no number",
            code=Cause.NO_NODE_ENERGY,
            hint="let your user read the files of /sys/cray/pm_counters",
        )
    _, *parts = node.counters()
    return {"source": f"Cray pm_counters, every {node.update_s:.3g} s", "parts": parts}


def _number(file: Path) -> float | None:
    """The first word of a file, if it is a number above 0."""
    word, *_ = _read_text(file).split() or [""]
    return float(word) if word.isdigit() and int(word) else None


def _read_text(file: Path) -> str:
    try:
        return file.read_text(errors="replace").strip()
    except OSError:
        return ""
