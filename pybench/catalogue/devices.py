# SPDX-License-Identifier: Apache-2.0
"""Edge modules whose power rails are known: which rails the kernel's hwmon shows, and which of them add up.

Labels: the device trees of Linux (arch/arm64/boot/dts/nvidia). What contains what: NVIDIA's Jetson Linux Developer
Guide, "Power Monitor" of each module. A module without a row has rails that `pybench doctor` lists, and no sum.
"""

from __future__ import annotations

from dataclasses import dataclass

from pybench.catalogue.rows import Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeDevice:
    """One kind of module."""

    name: str
    """As its maker calls it."""
    compatible: str
    """Begin of a string in `compatible` of the device tree that no other module has."""
    total: tuple[str, ...]
    """Labels of the rails whose sum is the power of the whole module; none contains another."""
    inside: tuple[str, ...]
    """Labels of rails that the others contain: they are stored, and never added."""


_ROWS = (
    EdgeDevice(
        name="Jetson AGX Orin",
        compatible="nvidia,p3701",
        total=("VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0"),
        inside=("VDDQ_VDD2_1V8AO",),
    ),
    EdgeDevice(
        name="Jetson Orin NX or Orin Nano",
        compatible="nvidia,p3767",
        total=("VDD_IN",),
        inside=("VDD_CPU_GPU_CV", "VDD_SOC"),
    ),
    EdgeDevice(
        name="Jetson Xavier NX",
        compatible="nvidia,p3668",
        total=("VDD_IN",),
        inside=("VDD_CPU_GPU_CV", "VDD_SOC"),
    ),
)

EDGE_DEVICES: Rows[EdgeDevice] = Rows("edge device", _ROWS)
