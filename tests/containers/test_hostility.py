# SPDX-License-Identifier: Apache-2.0
"""What the second build is surrounded with: another clock, under which programs still work."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import hostility
import pytest

WAITING = """
import subprocess, sys, time
from datetime import UTC, datetime
begin = time.monotonic()
subprocess.run([sys.executable, "-c", "import time; time.sleep(0.3)"], timeout=60, check=True)
time.sleep(0.1)
assert time.monotonic() - begin >= 0.4
print(datetime.now(UTC).isoformat())
"""


def test_under_the_shifted_clock_programs_can_wait_for_others(tmp_path: Path) -> None:
    found, lacking = hostility.possible_here()
    if found.faketime is None:
        pytest.skip(f"{lacking}")
    variables = found.variables(tmp_path, str(tmp_path))
    for command in found.first(str(tmp_path)):
        subprocess.run(command, check=True)
    shifted = {**os.environ, **variables}
    done = subprocess.run([sys.executable, "-c", WAITING], env=shifted, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    ahead = datetime.fromisoformat(done.stdout.strip()) - datetime.now(UTC)
    assert timedelta(days=2, hours=23) < ahead < timedelta(days=3, hours=1)


def test_peace_changes_nothing(tmp_path: Path) -> None:
    assert (hostility.PEACE.variables(tmp_path, "/inside"), hostility.PEACE.first("/inside")) == ({}, ())
