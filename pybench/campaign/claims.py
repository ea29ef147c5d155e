# SPDX-License-Identifier: Apache-2.0
"""Who may do a run: a claim beside each attempt, so that two runners (shards, array tasks) never do the same one.

A claim is a small file that is linked into place whole: `link(2)` fails when the name exists, on NFS too, and nobody
ever reads half of one. Claims are never overwritten, and only a living owner removes its own. A dead runner's work is
taken over by claiming the next attempt, so two runners that find the same dead claim cannot both win.

A claim is dead when its process is gone (same boot and process namespace), when its batch job has been started again,
or when its heartbeat is old (elsewhere).
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pybench.campaign.batch_job import BatchJob, this_batch_job
from pybench.campaign.storage import create_bytes, make_folder

HEARTBEAT_S = 30.0  # how often a runner touches its claim while it waits for a worker
STALE_S = 300.0  # ten heartbeats: a claim from elsewhere that is older belongs to a dead runner


@dataclass(frozen=True, slots=True)
class Claimant:
    """A process, told from every other one: a pid alone is reused, and means nothing on another host.

    `job`: the batch job that it runs in, if any.
    """

    host: str
    boot_id: str
    pid_namespace: str
    pid: int
    pid_started: int
    job: BatchJob | None = None

    @property
    def machine(self) -> str:
        """The node's name where a batch system gives it one, else the host's."""
        return (self.job.node if self.job else None) or self.host


def this_process() -> Claimant:
    """The claimant that this process is."""
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    started = _started(os.getpid())
    namespace = os.readlink("/proc/self/ns/pid")
    return Claimant(socket.gethostname(), boot_id, namespace, os.getpid(), started or 0, this_batch_job())


def read_claimant(path: Path) -> Claimant | None:
    """Who made the claim at `path`; None where there is none, or it says something else."""
    try:
        return _claimant_of(path.read_text())
    except OSError:
        return None


def _claimant_of(text: str) -> Claimant | None:
    try:
        stored: dict[str, Any] = json.loads(text)
        job = BatchJob(**stored["job"]) if stored.get("job") else None
        return Claimant(**{name: stored[name] for name in Claimant.__slots__ if name != "job"}, job=job)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def claim(path: Path, claimant: Claimant) -> bool:
    """Claims `path` for `claimant`; False when somebody has claimed it before."""
    make_folder(path.parent, exist_ok=True)
    content = json.dumps({"schema_version": 1, **asdict(claimant)}) + "\n"
    return create_bytes(path, content.encode(), is_lasting=False)


def is_alive(path: Path, claimant: Claimant) -> bool:
    """Whether whoever made the claim at `path` may still be at work, as far as `claimant` can see.

    A claim of the asker's own is not: it does one run at a time, and asks between runs.
    """
    other = read_claimant(path)
    age_s = heartbeat_age_s(path)
    return other is not None and age_s is not None and _may_be_at_work(other, age_s, claimant)


def is_dead(path: Path, claimant: Claimant) -> bool:
    """Whether a claim at `path` is of somebody who is at work no more: it stays there, and nobody else claims `path`.

    Not the same as not being alive: who has just ended has removed its claim, and another may make one any moment.
    """
    try:
        other = _claimant_of(path.read_text())
    except OSError:
        return False
    age_s = heartbeat_age_s(path)
    return age_s is not None and (other is None or not _may_be_at_work(other, age_s, claimant))


def _may_be_at_work(other: Claimant, age_s: float, claimant: Claimant) -> bool:
    if other.job and claimant.job and other.job.is_earlier_start_of(claimant.job):
        return False
    if (other.boot_id, other.pid_namespace) == (claimant.boot_id, claimant.pid_namespace):
        return other != claimant and _started(other.pid) == other.pid_started
    if other.host == claimant.host and other.boot_id != claimant.boot_id and age_s > _seconds_since_boot():
        return False  # this machine has been restarted since; a younger heartbeat is of a namesake's
    return age_s < STALE_S


def owner_text(path: Path, claimant: Claimant) -> str | None:
    """The process that made the claim at `path`, in words; None where there is none. With its last sign of life where
    `claimant` cannot see the process, because its claim is then believed for `STALE_S`."""
    other, age_s = read_claimant(path), heartbeat_age_s(path)
    if other is None or age_s is None:
        return None
    if (other.boot_id, other.pid_namespace) == (claimant.boot_id, claimant.pid_namespace):
        return f"process {other.pid}"
    heard = f"heard of {max(age_s, 0.0):.0f} s ago, taken for dead after {STALE_S:.0f} s"
    return f"process {other.pid} on {other.machine} ({heard})"


def touch(path: Path) -> None:
    """The heartbeat. A file system that refuses it costs other hosts certainty, not this run."""
    with contextlib.suppress(OSError):
        os.utime(path)


def heartbeat_age_s(path: Path) -> float | None:
    """Seconds since the claim was made or last touched; None when it is gone."""
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return None


def _seconds_since_boot() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _started(pid: int) -> int | None:
    """Start time of a process in clock ticks since boot (field 22 of /proc/pid/stat), None when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])
