# SPDX-License-Identifier: Apache-2.0
"""An interval that holds the energy of busy CPU time, for machines whose CPU energy cannot be measured. Never a point.

    lower = (busy - r) * 0.1 W        upper = (busy + r) * 30 W

`busy` is the time in s that all logical CPUs of this system spent on work (user, nice, system, irq, softirq of
/proc/stat, proc(5)). It is that of every process, as RAPL would count; r is that file's resolution, one tick of each
CPU. Bounds a logical CPU, from makers' published figures, wide on purpose because the part is not looked at:

- 0.1 W, idle floor: a tenth of the lowest TDP a thread on sale, 0.94 W (AMD Ryzen 7 7840U at 15 W, 16 threads). A tenth
  is the idle share of TDP in CodeCarbon's machine mode.
- 30 W, TDP bound: above the highest a core on sale, 29 W (Intel Pentium Gold G6605: 58 W, 2 cores). A logical CPU of a
  virtual machine may be a whole core.

It covers no idle time, no memory, no other part of the package, and is never added to a measured joule.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from pybench.catalogue.reasons import Reason, ReasonCode
from pybench.measure.quantity import Quantity
from pybench.measure.timing.windows import Window

METRIC = "cpu_energy_estimate_j"
METHOD = "estimated-busy-time"
SCOPE = "busy logical CPUs"
FLOOR_W = 0.1
BOUND_W = 30.0
# Of a line of /proc/stat: user, nice, system, irq, softirq. Guest time is inside user; steal is not ours.
BUSY_COLUMNS = (0, 1, 2, 5, 6)


@dataclass(frozen=True, slots=True)
class BusyTime:
    """Seconds of work of all logical CPUs since boot, and how finely they are counted."""

    busy_s: float
    resolution_s: float


def read_busy_time(root: Path = Path("/")) -> BusyTime | None:
    """From /proc/stat; None where it cannot be read."""
    try:
        lines = (root / "proc/stat").read_text().splitlines()
        ticks = [int(cell) for cell in lines[0].split()[1:]]
        busy = sum(ticks[column] for column in BUSY_COLUMNS)
    except (OSError, ValueError, IndexError):
        return None
    cpus = sum(line.startswith("cpu") for line in lines) - 1
    tick_s = 1 / os.sysconf("SC_CLK_TCK")
    return BusyTime(busy * tick_s, cpus * tick_s)


def estimate_interval(window: Window, begin: BusyTime | None, end: BusyTime | None) -> Quantity:
    """The interval for the work between two readings, in J."""
    if begin is None or end is None:
        reason = Reason(ReasonCode.BUSY_TIME_UNREADABLE, "/proc/stat cannot be read")
        return Quantity(window=window.name, method=METHOD, scope=SCOPE, reasons=(reason,))
    busy_s = end.busy_s - begin.busy_s
    lower = max(busy_s - end.resolution_s, 0.0) * FLOOR_W
    upper = (busy_s + end.resolution_s) * BOUND_W
    reason = Reason(ReasonCode.ESTIMATED, f"{busy_s:.3g} s of busy CPU time at {FLOOR_W} to {BOUND_W:.0f} W")
    return Quantity(window=window.name, interval=(lower, upper), method=METHOD, scope=SCOPE, reasons=(reason,))
