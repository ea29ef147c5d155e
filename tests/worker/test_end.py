# SPDX-License-Identifier: Apache-2.0
"""How a worker ends once its run is stored and reported."""

from __future__ import annotations

import subprocess
import sys

CRASHING_AT_EXIT = """
import atexit, ctypes, sys
libc = ctypes.CDLL(None)
libc.__cxa_atexit(ctypes.cast(libc.abort, ctypes.c_void_p), None, None)  # as a library that frees twice when unloaded
atexit.register(print, "helper processes are ended")
"""
AS_A_WORKER = CRASHING_AT_EXIT + "from pybench.worker.__main__ import _end; _end(0)"
AS_PYTHON = CRASHING_AT_EXIT + "sys.exit(0)"


def ended(program: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_a_library_that_crashes_when_unloaded_costs_no_finished_run() -> None:
    assert ended(AS_A_WORKER) == (0, "helper processes are ended\n")


def test_without_it_the_process_would_count_as_crashed() -> None:
    status, _ = ended(AS_PYTHON)
    assert status != 0
