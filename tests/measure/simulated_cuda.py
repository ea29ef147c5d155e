# SPDX-License-Identifier: Apache-2.0
"""Builds the library that stands in for the CUDA driver, and makes what tests replay graphs with, and interrupt."""

from __future__ import annotations

import ctypes
import os
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pybench.measure import GraphReplayer

REPOSITORY = Path(__file__).parents[2]
GRAPH, BEFORE = 0x6E41, 0xBEF0  # the graphs that the library knows
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

    def held(self) -> int:
        """Streams, events and allocations that exist."""
        return int(self._library.pybench_fake_cuda_held())


def replayer(simulated: SimulatedDriver) -> GraphReplayer:
    return GraphReplayer(GRAPH, simulated.stream())


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
