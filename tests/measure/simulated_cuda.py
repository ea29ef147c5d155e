# SPDX-License-Identifier: Apache-2.0
"""Builds the library that stands in for the CUDA driver, and makes the streams that tests replay graphs on."""

from __future__ import annotations

import ctypes
import os
import shlex
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
GRAPH = 0x6E41  # the one graph that the library knows
UUID = "GPU-00000000-0000-0000-0000-000000007e1a"


def build_simulated_driver(folder: Path) -> Path:
    """Compiles native/tests/fake_cuda.cpp into `folder` and returns the shared object."""
    native = REPOSITORY / "native"
    library = folder / "libpybench_fake_cuda.so"
    compiler = shlex.split(os.environ.get("CXX", "g++"))
    flags = ["-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared"]
    source = native / "tests" / "fake_cuda.cpp"
    subprocess.run([*compiler, *flags, f"-I{native}", str(source), "-o", str(library)], check=True)
    return library


class SimulatedDriver:
    """The library in this process: the very copy that pybench opens, since both name the same file."""

    def __init__(self, library: Path) -> None:
        self.path = str(library)
        self._library = ctypes.CDLL(self.path)
        self.code = self._library.cuInit(0)

    def stream(self) -> int:
        """A new stream's handle."""
        handle = ctypes.c_void_p()
        assert self._library.cuStreamCreate(ctypes.byref(handle), 1) == 0
        assert handle.value is not None
        return handle.value

    def destroy(self, stream: int) -> None:
        assert self._library.cuStreamDestroy_v2(ctypes.c_void_p(stream)) == 0

    def held(self) -> int:
        """Streams, events and allocations that exist."""
        return int(self._library.pybench_fake_cuda_held())
