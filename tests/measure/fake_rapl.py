# SPDX-License-Identifier: Apache-2.0
"""A fake root of sysfs with RAPL's powercap zones, whose counters rise when told."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pybench.measure.energy.cpu import CpuEnergy

RANGE_UJ = 262_143_328_850  # of a Xeon, in microjoules


@dataclass
class Machine:
    """A fake root with powercap zones whose counters rise when told."""

    root: Path
    zones: dict[str, Path] = field(default_factory=dict)

    def add_zone(self, zone: str, name: str, energy_uj: int = 1_000_000, range_uj: int = RANGE_UJ) -> None:
        folder = self.root / "sys/class/powercap" / zone
        folder.mkdir(parents=True)
        (folder / "name").write_text(name + "\n")
        (folder / "max_energy_range_uj").write_text(f"{range_uj}\n")
        (folder / "energy_uj").write_text(f"{energy_uj}\n")
        self.zones[zone] = folder / "energy_uj"

    def rise(self, joules: float, zone: str | None = None) -> None:
        for name, file in self.zones.items():
            if zone in (None, name):
                file.write_text(f"{(int(file.read_text()) + round(joules * 1e6)) % RANGE_UJ}\n")

    def energy(self) -> CpuEnergy:
        return CpuEnergy(self.root, load=lambda: self.rise(1.0))
