# SPDX-License-Identifier: Apache-2.0
"""Processor time of this process and of all that descend from it: what a path costs in cores.

Of a running process the kernel is asked by its CPU clock (clock_getcpuclockid(3)), to the nanosecond. What has ended
and was waited for is in the record of its parent, in ticks of 10 ms (proc(5), fields 16 and 17 of `stat`). Leaves out
processes whose parent ended before them: init is their parent then.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from pybench.measure.timing.clock import NANOSECONDS_PER_SECOND

_SCHEDULED = 2  # CPUCLOCK_SCHED of the kernel's posix-timers.h: user and system time of all threads
_ENDED_COLUMNS = slice(13, 15)  # cutime and cstime, counted from the state, which follows the name in brackets
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def own_cpu_s() -> float:
    """CPU seconds of this process and of its descendants, running or ended."""
    spent = os.times()  # children's are told in ticks of 10 ms: they count in whole once they have ended
    own_s = time.clock_gettime_ns(time.CLOCK_PROCESS_CPUTIME_ID) / NANOSECONDS_PER_SECOND
    return own_s + spent.children_user + spent.children_system + sum(map(_process_s, _descendants()))


def _descendants() -> Iterator[int]:
    """Process ids of those that run, a parent before its children."""
    waiting = _children("self")
    while waiting:
        pid = waiting.pop()
        yield pid
        waiting += _children(str(pid))


def _children(process: str) -> list[int]:
    try:
        threads = os.listdir(f"/proc/{process}/task")
    except OSError:
        return []  # it has ended meanwhile
    return [pid for thread in threads for pid in _started_by(process, thread)]


def _started_by(process: str, thread: str) -> list[int]:
    try:
        return list(map(int, Path(f"/proc/{process}/task/{thread}/children").read_text().split()))
    except OSError:
        return []  # the thread has ended meanwhile, and its children are another thread's now


def _process_s(pid: int) -> float:
    """CPU seconds of one process and of its ended children; 0 where it has ended meanwhile."""
    try:
        running_s = time.clock_gettime_ns((~pid << 3) | _SCHEDULED) / NANOSECONDS_PER_SECOND
        _, _, columns = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")
    except OSError:
        return 0.0
    return running_s + sum(map(int, columns.split()[_ENDED_COLUMNS])) * _TICK_S
