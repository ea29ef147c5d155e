# SPDX-License-Identifier: Apache-2.0
"""A real Slurm cluster on loopback: munged, slurmctld and a slurmd a node, from Debian's packages, as root.

Nothing is shared with a Slurm of the machine's own: keys, sockets, ports, state and logs are in one folder. Memory is
bounded by cgroups where they can be written, so that OUT_OF_MEMORY is Slurm's own.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.support.ports import free_ports
from tests.support.processes import is_running

DAEMONS = ("munged", "slurmctld", "slurmd")
SBIN = "/usr/sbin"
NODES = ("n1", "n2", "n3")
CPUS, MEMORY_MB = 8, 8000  # of a node, as Slurm is told: tasks of idle runs share two cores
START_S = 120.0
MEMORY_CGROUP = Path("/sys/fs/cgroup/memory")

CONFIGURATION = """\
ClusterName=pybenchtest
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
# A requeued job waits for cred_expire and a second; the least that is taken is 5, the default 120.
AuthInfo=socket={folder}/munge/socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin={task_plugin}
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
SlurmdParameters=config_overrides
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
KillWait=3
ReturnToService=2
MaxArraySize=1001
# Slurm forgets a job that has ended after five minutes by default, which the tests may last.
MinJobAge=3600
"""


def missing() -> str | None:
    """Why no cluster can be started here, None when it can."""
    absent = [name for name in DAEMONS if not Path(SBIN, name).exists()]
    if absent or shutil.which("sbatch") is None:
        return f"{', '.join(absent) or 'sbatch'} not installed: apt-get install slurmctld slurmd slurm-client munge"
    return "slurmd has to be started as root" if os.geteuid() != 0 else None


class SlurmCluster:
    """A running cluster. `environment`: what its clients need."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
        self._ports = free_ports(1 + len(NODES))

    def start(self) -> None:
        for name in ("state", "spool", "munge"):
            (self.folder / name).mkdir()
        self._start_munge()
        self._write_configuration()
        self._run([f"{SBIN}/slurmctld", "-c"])
        for node in NODES:
            self.start_node(node)
        self.wait_until(lambda: self.ask("sinfo", "-h", "-o", "%T %D") == f"idle {len(NODES)}", START_S)

    def stop(self) -> None:
        """Ends what runs, then the daemons."""
        with contextlib.suppress(RuntimeError, subprocess.TimeoutExpired):  # it may not even have started
            for node in NODES:
                self._end_jobs(node)
        for name in (*(f"slurmd-{node}.pid" for node in NODES), "slurmctld.pid", "munge/pid"):
            self._end(self.folder / name)

    def start_node(self, node: str) -> None:
        (self.folder / "spool" / node).mkdir(exist_ok=True)
        self._run([f"{SBIN}/slurmd", "-c", "-N", node])

    def lose_node(self, node: str) -> None:
        """A node that dies: its daemons and all of its processes at once, then Slurm is told what it would find out
        after SlurmdTimeout."""
        self._end(self.folder / f"slurmd-{node}.pid", signal.SIGKILL)
        self._end_jobs(node)
        self.ask("scontrol", "update", f"nodename={node}", "state=down", "reason=lost")

    def ask(self, *command: str) -> str:
        """Runs a client and returns what it printed; RuntimeError where it fails."""
        ended = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False, timeout=60)
        if ended.returncode:
            raise RuntimeError(f"{' '.join(command)}: {ended.stderr.strip()}")
        return ended.stdout.strip()

    def state(self, job: str) -> str:
        """Slurm's word for a job or a task of an array (`12_3`)."""
        text = self.ask("scontrol", "--oneliner", "show", "job", job)
        return next(word.partition("=")[2] for word in text.split() if word.startswith("JobState="))

    def wait_for(self, job: str, *states: str, seconds: float = 180.0) -> None:
        self.wait_until(lambda: self.state(job) in states, seconds)

    def wait_until(self, is_so: Callable[[], bool], seconds: float) -> None:
        end = time.monotonic() + seconds
        while not is_so():
            if time.monotonic() > end:
                raise TimeoutError(
                    f"not within {seconds} s; the queue:\n{self.ask('squeue', '--array', '--states=all')}"
                )
            time.sleep(0.2)

    def _start_munge(self) -> None:
        """Its folder has to be closed to others, its socket open to all."""
        folder = self.folder / "munge"
        folder.chmod(0o711)
        key = folder / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        files = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        self._run([f"{SBIN}/munged", "--force", *(f"--{option}={folder / name}" for option, name in files.items())])

    def _write_configuration(self) -> None:
        lines = CONFIGURATION.format(
            host=socket.gethostname().partition(".")[0],
            folder=self.folder,
            controller_port=self._ports[0],
            task_plugin="task/cgroup" if can_bound_memory() else "task/none",
        )
        for node, port in zip(NODES, self._ports[1:], strict=True):
            where = f"NodeHostname=localhost NodeAddr=127.0.0.1 Port={port}"
            lines += f"NodeName={node} {where} CPUs={CPUS} RealMemory={MEMORY_MB}\n"
        lines += "PartitionName=main Nodes=ALL Default=YES MaxTime=60 State=UP PriorityTier=1\n"
        lines += "PartitionName=urgent Nodes=ALL MaxTime=60 State=UP PriorityTier=9\n"
        (self.folder / "slurm.conf").write_text(lines)
        if can_bound_memory():
            (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nConstrainRAMSpace=yes\n")
            _remove_memory_cgroups()

    def _run(self, command: Sequence[str]) -> None:
        subprocess.run(command, env=self.environment, check=True, capture_output=True, timeout=60)

    def _end(self, pid_file: Path, number: signal.Signals = signal.SIGTERM) -> None:
        """Ends a daemon, by force where it waits for something that will not come."""
        with contextlib.suppress(OSError, ValueError):
            pid = int(pid_file.read_text())
            os.kill(pid, number)
            end = time.monotonic() + 3  # a slurmd waits for the ends of its jobs
            while is_running(pid) and time.monotonic() < end:
                time.sleep(0.05)
            if is_running(pid):
                os.kill(pid, signal.SIGKILL)

    def _end_jobs(self, node: str) -> None:
        """Kills the node's jobs: first the daemons that watch them, which would still tell the controller."""
        jobs = self.ask("squeue", "--noheader", f"--nodelist={node}", "--format=%A").split()
        watchers, others = [], []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                variables = (process / "environ").read_bytes().split(b"\0")
                command = (process / "cmdline").read_bytes()
                if f"SLURM_CONF={self.folder}/slurm.conf".encode() not in variables:
                    continue
                if any(command.startswith(f"slurmstepd: [{job}.".encode()) for job in jobs):
                    watchers.append(int(process.name))
                elif f"SLURMD_NODENAME={node}".encode() in variables:
                    others.append(int(process.name))
        for pid in [*watchers, *others]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _remove_memory_cgroups() -> None:
    """Those of an earlier cluster's jobs: by their numbers a new job would take one for its own, and what ran out of
    memory in it."""
    for node in NODES:
        top = MEMORY_CGROUP / f"slurm_{node}"
        for folder in sorted((path for path in (top, *top.rglob("*")) if path.is_dir()), reverse=True):
            with contextlib.suppress(OSError):  # something runs in it
                folder.rmdir()


def can_bound_memory() -> bool:
    """Whether Slurm can bound a job's memory here: by cgroups of version 1, for its plugin for version 2 wants systemd
    or a delegated tree, which containers lack."""
    return os.access(MEMORY_CGROUP / "cgroup.procs", os.W_OK)
