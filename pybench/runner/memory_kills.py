# SPDX-License-Identifier: Apache-2.0
"""The kernel's evidence that memory ran out: its own counters of processes killed for it.

Sources: `memory.events` of the cgroup (version 2), `memory.oom_control` (version 1), else /proc/vmstat of the whole
machine. The cgroup's counter has every kill of its own, whoever's limit was met; the machine's has other people's too,
so it is asked only where no cgroup tells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class MemoryKills:
    """How many processes a counter has seen killed for memory. It only grows: compare two readings."""

    source: str
    count: int


def read_memory_kills(root: Path = Path("/"), *, own: bool = True) -> MemoryKills | None:
    """The nearest counter that can be read, or None. `root`: where /proc and /sys stand; `own`: whether what is watched
    lies in this process's cgroup, which a container of an engine does not."""
    for source, file in _counters(root, own):
        count = _read_counter(file)
        if count is not None:
            return MemoryKills(source, count)
    return None


def evidence(before: MemoryKills | None, after: MemoryKills | None) -> str | None:
    """The source whose counter rose between two readings, or None."""
    if before is None or after is None or before.source != after.source or after.count <= before.count:
        return None
    return after.source


def _counters(root: Path, own: bool) -> Iterator[tuple[str, Path]]:
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines() if own else []
    except OSError:
        lines = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            yield "cgroup memory.events", root / "sys/fs/cgroup" / path.lstrip("/") / "memory.events"
        elif "memory" in controllers.split(","):
            yield "cgroup memory.oom_control", root / "sys/fs/cgroup/memory" / path.lstrip("/") / "memory.oom_control"
    yield "kernel oom_kill", root / "proc/vmstat"


def _read_counter(file: Path) -> int | None:
    try:
        fields = [line.split() for line in file.read_text().splitlines()]
    except OSError:
        return None
    return next((int(values[0]) for key, *values in fields if key == "oom_kill"), None)
