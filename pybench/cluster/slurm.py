# SPDX-License-Identifier: Apache-2.0
"""Slurm through its own commands: submit, cancel, and what it says of jobs, now (squeue) and later (sacct).

sacct answers only where a site keeps accounts; squeue knows a job that has ended for MinJobAge (five minutes) more.
Nothing is parsed that has no documented format.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pybench.errors import ClusterError, UsageError

TIMEOUT_S = 120.0  # a busy controller answers after a minute; its clients try again by themselves meanwhile

# squeue(1), JOB STATE CODES: those that a job does not leave by itself.
ENDED = frozenset(
    {
        *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL"),
        *("OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT"),
    }
)
WAITING = "PENDING"
# By how much the clock of the campaign's files may differ from that of Slurm's controller. By default Slurm waits two
# minutes before it starts a job again, so the nearest start is the right one.
SKEW_S = 60.0
_FIELDS = {"ArrayJobID": 20, "ArrayTaskID": 20, "State": 20, "RestartCnt": 12, "NodeList": 80, "Reason": 80}
_IS_IT_UP = "check that the cluster's controller is running"
_CORRECT_THE_SITE = "correct the site file and submit again: no job of this submission is in the queue"
_JOB = re.compile(r"(\d+)(;[^\s;]+)?")


@dataclass(frozen=True, slots=True)
class JobState:
    """What Slurm says of a job.

    id: `12`, or `12_3` of an array
    state: Slurm's own word
    restarts: how often it has been started again
    node: where it runs; None: nowhere
    why: what it waits for, or what ended it; None where Slurm does not say
    """

    id: str
    state: str
    restarts: int
    node: str | None
    why: str | None

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED

    @property
    def has_begun(self) -> bool:
        """Whether its script may be at work, or has been since it was last queued."""
        return self.state != WAITING


@dataclass(frozen=True, slots=True)
class AccountedStart:
    """One start of a job, as Slurm's accounts have it.

    state: Slurm's own word
    node: where it ran; None: unknown
    why: its exit code
    began_s, ended_s: Unix time; infinite where it has not ended
    """

    state: str
    node: str | None
    why: str
    began_s: float
    ended_s: float

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED

    def distance_s(self, time_s: float) -> float:
        """By how much it lies before or after a time; 0: it was running then."""
        return max(self.began_s - time_s, time_s - self.ended_s, 0.0)


def find_sbatch() -> None:
    """Raises UsageError where jobs cannot be submitted from."""
    if shutil.which("sbatch") is None:
        raise UsageError(
            "sbatch is not on PATH: this machine submits no Slurm jobs",
            hint="submit on a login node of the cluster; --dry-run writes the scripts anywhere",
        )


def submit(script: Path, after: Sequence[str] = ()) -> str:
    """Hands a script to Slurm and returns the job's number. `after`: jobs that have to end first, however they end."""
    dependency = [f"--dependency=afterany:{':'.join(after)}"] if after else []
    ended = _ask(["sbatch", "--parsable", *dependency, str(script)])
    said = ended.stdout.split()  # a site's own plugin may have printed something before
    match = _JOB.fullmatch(said[-1]) if said else None
    if ended.returncode or match is None:
        is_down = "Unable to contact" in ended.stderr
        raise ClusterError(
            f"sbatch refused {script.name}: {_said(ended)}", hint=_IS_IT_UP if is_down else _CORRECT_THE_SITE
        )
    return match[1]


def cancel(job: str) -> None:
    """Ends a job; one that has ended already stays as it is. ClusterError where that is not allowed."""
    ended = _ask(["scancel", job])
    if ended.returncode and "Invalid job id" not in ended.stderr:
        raise ClusterError(f"scancel refused job {job}: {_said(ended)}")


def cluster_name() -> str | None:
    """The name of the cluster that the commands speak to; None where it has none. ClusterError where none answers."""
    ended = _ask(["scontrol", "show", "config"])
    if ended.returncode:
        raise ClusterError(f"scontrol: {_said(ended)}")
    match = re.search(r"^ClusterName\s*=\s*(\S+)", ended.stdout, re.MULTILINE)
    return match[1] if match else None


def queue(jobs: Iterable[str]) -> dict[str, JobState]:
    """What squeue knows of these jobs, each task of an array by itself. ClusterError where it does not answer."""
    numbers = sorted({job.partition("_")[0] for job in jobs})
    found: dict[str, JobState] = {}
    # One at a time: of several, squeue names none if it has forgotten one.
    for number in numbers:
        fields = ",".join(f"{name}:{width}" for name, width in _FIELDS.items())
        ended = _ask(["squeue", "--noheader", "--array", "--states=all", f"--jobs={number}", f"--Format={fields}"])
        if ended.returncode and "Invalid job id" not in ended.stderr:
            raise ClusterError(f"squeue does not answer: {_said(ended)}", hint=_IS_IT_UP)
        found |= {state.id: state for state in map(_queued, ended.stdout.splitlines())}
    return found


def history(jobs: Iterable[str]) -> dict[str, list[AccountedStart]]:
    """The starts of all jobs that had these numbers, by sacct's accounts; empty where a site keeps none.

    Numbers begin again after the highest one, or where a controller lost its state, so they may be of several jobs.
    """
    numbers = sorted({job.partition("_")[0] for job in jobs})
    if not numbers or shutil.which("sacct") is None:
        return {}
    # --duplicates: without it a job that was started again shows its last start only.
    asked = ["sacct", "--allocations", "--duplicates", "--noheader", "--parsable2", f"--jobs={','.join(numbers)}"]
    try:
        ended = _ask([*asked, "--format=JobID,Start,End,State,NodeList,ExitCode"], SLURM_TIME_FORMAT="%s")
    except ClusterError:
        return {}
    rows = [line.split("|") for line in ended.stdout.splitlines() if line.count("|") == 5]
    found: dict[str, list[AccountedStart]] = {}
    for job, began, end, state, node, code in rows:
        if began.isdigit():  # else it never began
            word = state.split()[0] if state else ""  # `CANCELLED by 1000`
            span = (float(began), float(end) if end.isdigit() else math.inf)
            found.setdefault(job, []).append(AccountedStart(word, node or None, f"exit code {code}", *span))
    return found


def start_at(starts: Iterable[AccountedStart], time_s: float) -> AccountedStart | None:
    """The start that was running at a Unix time, by clocks that agree to `SKEW_S`; None: there is none."""
    near = [start for start in starts if start.distance_s(time_s) <= SKEW_S]
    return min(near, key=lambda start: (start.distance_s(time_s), -start.began_s), default=None)


def _queued(line: str) -> JobState:
    values, begin = [], 0
    for width in _FIELDS.values():
        values.append(line[begin : begin + width].strip())
        begin += width
    array, task, state, restarts, node, why = values
    name = f"{array}_{task}" if task.isdigit() else array
    return JobState(name, state, int(restarts or 0), node or None, why if why not in ("", "None") else None)


def _ask(command: Sequence[str], **variables: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
            env=_environment(os.environ) | variables,
            process_group=0,  # Ctrl-C and the end of a terminal reach pybench alone, which knows what to do
        )
    except FileNotFoundError as error:
        raise ClusterError(
            f"{command[0]} is not on PATH", hint="run the command on a login node of the cluster"
        ) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ClusterError(f"{command[0]} does not answer: {error}", hint=_IS_IT_UP) from error


def _environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Without variables that would overrule a script's directives or change what the commands print."""
    begins = ("SBATCH_", "SQUEUE_", "SACCT_", "SCANCEL_", "SLURM_TIME_FORMAT")
    kept = {name: value for name, value in environment.items() if not name.startswith(begins)}
    return {**kept, "LC_ALL": "C"}


def _said(ended: subprocess.CompletedProcess[str]) -> str:
    """What a command wrote, on one line, or how it ended."""
    text = " ".join((ended.stderr.strip() or ended.stdout.strip()).split())
    return text or f"it ended with exit code {ended.returncode}"
