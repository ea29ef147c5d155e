# SPDX-License-Identifier: Apache-2.0
"""A builder that is made as different as can be: another clock, and folders that list their entries in random order.

verify.py builds this way, to see that neither enters an image. What surrounds build.py (host name, time zone, umask,
home, locale, CPUs, folder) verify.py sets by itself. Clock and order have to be set inside, around compilers only:
downloads would refuse certificates of another time.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
CLOCK_SHIFT = "+3d"  # another day, often another month; not so long that certificates expire meanwhile
_FAKETIME = "usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"
_SLEEP = "monotonic_sleep"


@dataclass(frozen=True)
class Hostility:
    """`faketime`: the library that shifts the clock; `shuffled`: the mounts whose folders are shuffled."""

    faketime: Path | None = None
    shuffled: frozenset[str] = frozenset()

    @property
    def wrapper(self) -> tuple[str, ...]:
        """The program that holds what all processes under the shifted clock share, for as long as they live."""
        return () if self.faketime is None else ("faketime", "-m", "-f", CLOCK_SHIFT)

    @property
    def told(self) -> tuple[str, ...]:
        """The variable in which it says where that is."""
        return () if self.faketime is None else ("FAKETIME_SHARED",)

    def variables(self, folder: Path, inside: str) -> Mapping[str, str]:
        """Variables for programs in the builder; `folder` is where the library is put, `inside` the builder's name for
        that. A monotonic clock that jumps would hang what waits by it."""
        if self.faketime is None:
            return {}
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(self.faketime, folder / self.faketime.name)
        shutil.copyfile(HERE / f"{_SLEEP}.c", folder / f"{_SLEEP}.c")
        return {
            "LD_PRELOAD": f"{inside}/{_SLEEP}.so:{inside}/{self.faketime.name}",
            "FAKETIME": CLOCK_SHIFT,
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def first(self, inside: str) -> tuple[tuple[str, ...], ...]:
        """Commands that have to run in the builder before any other."""
        if self.faketime is None:
            return ()
        return (("gcc", "-shared", "-fPIC", "-O1", "-o", f"{inside}/{_SLEEP}.so", f"{inside}/{_SLEEP}.c"),)


PEACE = Hostility()


def possible_here(root: Path = Path("/")) -> tuple[Hostility, list[str]]:
    """What this machine can do of it, and what it cannot, in words with what to do."""
    lacking = []
    faketime: Path | None = root / _FAKETIME
    if faketime is None or not faketime.exists() or shutil.which("faketime") is None:
        faketime = None
        lacking.append("the clock is not shifted: apt-get install faketime")
    shuffled = frozenset({"/src", "/opt"})
    if shutil.which("disorderfs") is None or not (root / "dev/fuse").exists():
        shuffled = frozenset()
        lacking.append("folders are not shuffled: apt-get install disorderfs, and /dev/fuse has to be there")
    return Hostility(faketime, shuffled), lacking
