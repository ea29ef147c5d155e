# SPDX-License-Identifier: Apache-2.0
"""Builds the library that plays a recorded power trace in NVML's place, for tests of anything that reads a GPU's power.

It has to be given to a process of its own or opened once: the trace begins with the first of the inits that overlap.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
TRACE = Path(__file__).parent / "data" / "h200-memory-2s"
UUID = "GPU-00000000-0000-0000-0000-000000007e1a"
SECOND_UUID = "GPU-00000000-0000-0000-0000-000000007e1b"  # where PYBENCH_REPLAY_TRACE names two folders


def build_replay_library(folder: Path) -> Path:
    """Compiles native/tests/replay_*.cpp into `folder` and returns the shared object."""
    native = REPOSITORY / "native"
    library = folder / "libpybench_replay_nvml.so"
    compiler = shlex.split(os.environ.get("CXX", "g++"))
    flags = ["-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared"]
    sources = sorted(map(str, (native / "tests").glob("replay_*.cpp")))
    subprocess.run([*compiler, *flags, f"-I{native}", *sources, "-o", str(library)], check=True)
    return library
