# SPDX-License-Identifier: Apache-2.0
"""Processor time of this process and of the processes that it has started: what a path costs in cores.

Of running children the kernel is asked by their CPU clock (clock_getcpuclockid(3)), to the nanosecond; grandchildren
count once they have ended and been waited for.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from pybench.measure.timing.clock import NANOSECONDS_PER_SECOND

_SCHEDULED = 2  # CPUCLOCK_SCHED of the kernel's posix-timers.h: user and system time of all threads


def own_cpu_s() -> float:
    """CPU seconds of this process, its finished children and its running ones."""
    spent = os.times()  # children's are told in ticks of 10 ms: they count in whole once they have ended
    own_s = time.clock_gettime_ns(time.CLOCK_PROCESS_CPUTIME_ID) / NANOSECONDS_PER_SECOND
    return own_s + spent.children_user + spent.children_system + sum(map(_running_s, _children()))


def _children() -> list[int]:
    try:
        tasks = list(Path("/proc/self/task").iterdir())
        return [int(pid) for task in tasks for pid in (task / "children").read_text().split()]
    except OSError:
        return []


def _running_s(pid: int) -> float:
    try:
        return time.clock_gettime_ns((~pid << 3) | _SCHEDULED) / NANOSECONDS_PER_SECOND
    except OSError:
        return 0.0  # it has ended meanwhile
