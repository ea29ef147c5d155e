# SPDX-License-Identifier: Apache-2.0
"""A fake root of sysfs with an edge module's power monitors, written from the kernel's documentation.

No module was at hand: files and units are those of Documentation/hwmon/ina3221.rst and sysfs-interface.rst, labels
those of arch/arm64/boot/dts/nvidia/tegra234-p3701.dtsi and tegra234-p3767.dtsi. Each number is a line, as in sysfs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

AGX_ORIN = "nvidia,p3737-0000+p3701-0000\0nvidia,p3701-0000\0nvidia,tegra234\0"
ORIN_NX = "nvidia,p3768-0000+p3767-0000\0nvidia,p3767-0000\0nvidia,tegra234\0"


@dataclass
class Module:
    """An edge module's root."""

    root: Path

    def name(self, compatible: str) -> None:
        folder = self.root / "proc/device-tree"
        folder.mkdir(parents=True)
        (folder / "compatible").write_text(compatible)

    def add_chip(self, number: int, name: str = "ina3221", update_interval_ms: int = 7) -> Path:
        chip = self.root / f"sys/class/hwmon/hwmon{number}"
        chip.mkdir(parents=True)
        (chip / "name").write_text(f"{name}\n")
        (chip / "update_interval").write_text(f"{update_interval_ms}\n")
        if name == "ina3221":
            (chip / "in7_label").write_text("sum of shunt voltages\n")
            (chip / "in7_input").write_text("12345\n")  # uV
        return chip

    def add_rail(self, chip: Path, channel: int, label: str, millivolt: int, milliampere: int) -> None:
        (chip / f"in{channel}_label").write_text(f"{label}\n")
        (chip / f"in{channel}_enable").write_text("1\n")
        (chip / f"in{channel}_input").write_text(f"{millivolt}\n")
        (chip / f"curr{channel}_input").write_text(f"{milliampere}\n")
        (chip / f"in{channel + 3}_input").write_text("5000\n")  # uV over the shunt

    def agx_orin(self) -> tuple[Path, Path]:
        """Two monitors: 8 + 4 + 10 W make up the module, and 2 W of the 10 W are told apart."""
        self.name(AGX_ORIN)
        first, second = self.add_chip(0), self.add_chip(1)
        self.add_rail(first, 1, "VDD_GPU_SOC", 20_000, 400)
        self.add_rail(first, 2, "VDD_CPU_CV", 20_000, 200)
        self.add_rail(first, 3, "VIN_SYS_5V0", 5_000, 2_000)
        self.add_rail(second, 2, "VDDQ_VDD2_1V8AO", 2_000, 1_000)
        return first, second

    def orin_nx(self) -> Path:
        """One monitor: VDD_IN contains the two others."""
        self.name(ORIN_NX)
        chip = self.add_chip(3)
        self.add_rail(chip, 1, "VDD_IN", 5_000, 2_000)
        self.add_rail(chip, 2, "VDD_CPU_GPU_CV", 5_000, 800)
        self.add_rail(chip, 3, "VDD_SOC", 5_000, 400)
        return chip
