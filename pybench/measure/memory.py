# SPDX-License-Identifier: Apache-2.0
"""Memory: the peak resident set of this process, and the kernel's evidence that memory ran out.

Sources: proc(5) (`VmHWM` in /proc/self/status; writing 5 to /proc/self/clear_refs resets it), getrusage(2), and the
cgroup's own counters (`memory.events` in version 2, `memory.oom_control` in version 1). Device memory is in session.py.
"""

from __future__ import annotations

import resource
from pathlib import Path

_KIBIBYTE = 1024


def reset_peak_host(root: Path = Path("/")) -> bool:
    """Makes the peak begin at the present resident set. False where the kernel does not allow it."""
    try:
        (root / "proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def read_peak_host_bytes(root: Path = Path("/")) -> int:
    """The largest resident set of this process since its start, or since the last reset, in bytes."""
    try:
        for line in (root / "proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * _KIBIBYTE
    except OSError:
        pass  # no /proc: getrusage knows it too, though it cannot be reset
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIBIBYTE


def read_memory_kills(root: Path = Path("/"), process: int | str = "self") -> int | None:
    """How often the kernel killed a process of the cgroup of `process` for memory; None where no cgroup tells.

    The count is of the whole cgroup and only grows: compare two readings.
    """
    try:
        lines = (root / f"proc/{process}/cgroup").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            file = root / "sys/fs/cgroup" / path.lstrip("/") / "memory.events"
        elif "memory" in controllers.split(","):
            file = root / "sys/fs/cgroup/memory" / path.lstrip("/") / "memory.oom_control"
        else:
            continue
        kills = _read_counter(file, "oom_kill")
        if kills is not None:
            return kills
    return None


def _read_counter(file: Path, name: str) -> int | None:
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.split()[:1] == [name]), None)
