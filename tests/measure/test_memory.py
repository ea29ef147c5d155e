# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pybench.measure import read_memory_kills
from pybench.measure.memory import read_peak_host_bytes

MEBIBYTE = 1 << 20

_RESET_PEAK = """
from pybench.measure.memory import read_peak_host_bytes, reset_peak_host
block = bytearray(b"x" * (200 << 20))
high = read_peak_host_bytes()
del block
print(reset_peak_host(), high, read_peak_host_bytes())
"""


def test_the_peak_falls_after_a_reset() -> None:
    done = subprocess.run([sys.executable, "-c", _RESET_PEAK], check=True, capture_output=True, text=True)
    was_reset, high, low = done.stdout.split()
    assert was_reset == "True"
    assert int(high) > 200 * MEBIBYTE
    assert int(low) < int(high) - 150 * MEBIBYTE


def test_without_proc_getrusage_gives_the_peak(tmp_path: Path) -> None:
    assert read_peak_host_bytes(tmp_path) == pytest.approx(read_peak_host_bytes(), rel=0.5)


def fake_cgroup(root: Path, line: str, file: str, content: str) -> None:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(line)
    path = root / "sys/fs/cgroup" / file
    path.parent.mkdir(parents=True)
    path.write_text(content)


def test_kills_are_read_from_cgroup_version_2(tmp_path: Path) -> None:
    events = "low 0\nhigh 5\nmax 9\noom 3\noom_kill 2\noom_group_kill 0\n"
    fake_cgroup(tmp_path, "0::/job.slice/step\n", "job.slice/step/memory.events", events)
    assert read_memory_kills(tmp_path) == 2


def test_kills_are_read_from_cgroup_version_1(tmp_path: Path) -> None:
    control = "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n"
    fake_cgroup(tmp_path, "5:cpu:/x\n4:memory:/job\n0::/\n", "memory/job/memory.oom_control", control)
    assert read_memory_kills(tmp_path) == 7


def test_without_a_cgroup_nothing_is_known_about_kills(tmp_path: Path) -> None:
    assert read_memory_kills(tmp_path) is None
    fake_cgroup(tmp_path, "0::/\n", "cgroup.procs", "1\n")
    assert read_memory_kills(tmp_path) is None
