# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

from pybench.runner.memory_kills import MemoryKills, evidence, read_memory_kills

VMSTAT = "nr_free_pages 5\noom_kill 11\n"


def fake_cgroup(root: Path, line: str, file: str, content: str) -> None:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(line)
    path = root / "sys/fs/cgroup" / file
    path.parent.mkdir(parents=True)
    path.write_text(content)


def test_kills_are_read_from_cgroup_version_2(tmp_path: Path) -> None:
    events = "low 0\nhigh 5\nmax 9\noom 3\noom_kill 2\noom_group_kill 0\n"
    fake_cgroup(tmp_path, "0::/job.slice/step\n", "job.slice/step/memory.events", events)
    assert read_memory_kills(tmp_path) == MemoryKills("cgroup memory.events", 2)


def test_kills_are_read_from_cgroup_version_1(tmp_path: Path) -> None:
    control = "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n"
    fake_cgroup(tmp_path, "5:cpu:/x\n4:memory:/job\n0::/\n", "memory/job/memory.oom_control", control)
    assert read_memory_kills(tmp_path) == MemoryKills("cgroup memory.oom_control", 7)


def test_without_a_cgroups_counter_the_machines_is_read_and_without_both_nothing_is_known(tmp_path: Path) -> None:
    assert read_memory_kills(tmp_path) is None
    fake_cgroup(tmp_path, "0::/\n", "cgroup.procs", "1\n")
    (tmp_path / "proc/vmstat").write_text(VMSTAT)
    assert read_memory_kills(tmp_path) == MemoryKills("kernel oom_kill", 11)


def test_the_cgroups_counter_stands_before_the_machines(tmp_path: Path) -> None:
    """A stranger's kill is no evidence about this worker."""
    fake_cgroup(tmp_path, "0::/\n", "memory.events", "oom_kill 0\n")
    (tmp_path / "proc/vmstat").write_text(VMSTAT)
    assert read_memory_kills(tmp_path) == MemoryKills("cgroup memory.events", 0)


def test_only_a_counter_that_rose_is_evidence() -> None:
    two, three = MemoryKills("cgroup memory.events", 2), MemoryKills("cgroup memory.events", 3)
    assert evidence(two, three) == "cgroup memory.events"
    assert evidence(three, three) is None
    assert evidence(None, three) is None
    assert evidence(MemoryKills("kernel oom_kill", 1), three) is None
