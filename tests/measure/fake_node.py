# SPDX-License-Identifier: Apache-2.0
"""A fake root with the files of HPE Cray's blade controller, which advance when told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SCAN_HZ = 10


@dataclass
class CrayNode:
    """`/sys/cray/pm_counters` as a node of Cray EX has it: joules and the time of the update in microseconds."""

    root: Path
    energy_j: int = 81_147_367
    time_us: int = 1_700_061_210_920_464
    updates: int = 86_543

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        (self.folder / "raw_scan_hz").write_text(f"{SCAN_HZ}\n")
        self._write()

    @property
    def folder(self) -> Path:
        return self.root / "sys/cray/pm_counters"

    def advance(self, seconds: float, joules: int) -> None:
        """So many joules in whole updates of so many seconds."""
        self.energy_j += joules
        self.time_us += round(seconds * 1e6)
        self.updates += round(seconds * SCAN_HZ)
        self._write()

    def _write(self) -> None:
        for name, joules in (("energy", self.energy_j), ("cpu_energy", 1000), ("accel0_energy", 2000)):
            (self.folder / name).write_text(f"{joules} J {self.time_us} us\n")
        (self.folder / "freshness").write_text(f"{self.updates}\n")
