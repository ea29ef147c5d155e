# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pybench.measure.timing.memory import available_bytes, read_peak_host_bytes

MEBIBYTE = 1 << 20

_RESET_PEAK = """
from pybench.measure.timing.memory import read_peak_host_bytes, reset_peak_host
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


def test_what_is_available_is_what_the_kernel_says(tmp_path: Path) -> None:
    assert available_bytes(tmp_path) is None
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal: 16 kB\nMemAvailable:       3 kB\n")
    assert available_bytes(tmp_path) == 3072
