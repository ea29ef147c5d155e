# SPDX-License-Identifier: Apache-2.0
"""Memory: the peak resident set of a process, and what the machine has left.

Sources: proc(5) (`VmHWM` in /proc/self/status; writing 5 to /proc/self/clear_refs resets it; `MemAvailable` in
/proc/meminfo) and getrusage(2). Device memory is in session.py.
"""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Literal

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
    peak_bytes = peak_bytes_of("self", root)
    if peak_bytes is not None:
        return peak_bytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIBIBYTE  # cannot be reset


def peak_bytes_of(process: int | Literal["self"], root: Path = Path("/")) -> int | None:
    """The largest resident set of a process since its start, or since the last reset; None where /proc does not say."""
    try:
        for line in (root / f"proc/{process}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * _KIBIBYTE
    except OSError:
        pass
    return None


def available_bytes(root: Path = Path("/")) -> int | None:
    """What can be allocated on this machine without swapping; None where /proc does not say."""
    try:
        for line in (root / "proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * _KIBIBYTE
    except OSError:
        pass
    return None
