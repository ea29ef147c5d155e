# SPDX-License-Identifier: Apache-2.0
"""A gate before which workers wait: what a test does to their runner meanwhile comes in time on every machine.

Python's site module takes the worker in, so the runner and its command line are those of every day.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# Only workers of runs and artefacts, not those that are asked about the machine. Each goes on after some minutes, since
# it does not die with its runner yet. Who unlinks the pass has it, and nobody else.
_WAIT = """\
import os, sys, time

def may_pass():
    if os.path.exists({sign!r}):
        return True
    try:
        os.unlink({permit!r})
    except FileNotFoundError:
        return False
    return True

if "pybench.worker" in sys.orig_argv and "--campaign" in sys.orig_argv:
    for _ in range(20_000):
        if may_pass():
            break
        time.sleep(0.01)
"""


class Gate:
    """Shut at first, but for one worker where `lets_one_pass`. Works for runners with `folder` in PYTHONPATH."""

    def __init__(self, folder: Path, *, lets_one_pass: bool = False) -> None:
        folder.mkdir()
        self.folder = folder
        self._sign, permit = folder / "open", folder / "permit"
        if lets_one_pass:
            permit.touch()
        (folder / "sitecustomize.py").write_text(_WAIT.format(sign=str(self._sign), permit=str(permit)))

    def open(self) -> None:
        self._sign.touch()

    def shut(self) -> None:
        self._sign.unlink()


def gate_here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Gate:
    """A gate for the runners that this process starts."""
    gate = Gate(folder)
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
    return gate
