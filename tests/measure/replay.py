# SPDX-License-Identifier: Apache-2.0
"""Builds the library that plays a recorded power trace in NVML's place, for tests of anything that reads a GPU's power.

It has to be given to a process of its own or opened once: the trace begins anew with each init.
"""

from __future__ import annotations

import ctypes
import os
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

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


def jump_s(library: Path, seconds: float) -> None:
    """Leaves so much of the trace out that plays in this process."""
    ctypes.CDLL(str(library)).replay_jump(ctypes.c_longlong(round(seconds * 1e6)))


@dataclass(frozen=True)
class Boards:
    """Two replayed boards, `UUID` and `SECOND_UUID`, whose settings every process sees."""

    library: str
    log: Path
    state: Path  # where pybench keeps locks and records

    def told(self, uuid: str = UUID) -> list[str]:
        """What a board was told, in order, as `power_limit_mw 300000`."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [line.split(" ", 2)[2] for line in lines if line.startswith(uuid)]

    def record(self, uuid: str = UUID) -> Path:
        return self.state / f"{uuid}.json"


def play_boards(library: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Boards:
    """Boards for this process and those that it starts. `replay_settings.hpp` says how they are made to fail."""
    boards = Boards(str(library), folder / "settings.log", folder / "boards")
    monkeypatch.setenv("PYBENCH_REPLAY_TRACE", f"{TRACE}:{TRACE}")
    monkeypatch.setenv("PYBENCH_REPLAY_STATE", str(boards.log))
    monkeypatch.setenv("PYBENCH_BOARD_STATE", str(boards.state))
    monkeypatch.setenv("PYBENCH_NVML_LIBRARY", boards.library)
    return boards
