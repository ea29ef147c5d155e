# SPDX-License-Identifier: Apache-2.0
"""Energy of GPU board and CPU packages together, and the CPU's share of it, in one window.

Both have to be measured in that window and valid. Where one of them is not, both numbers are null with its reasons: an
estimate is never added to a measured joule. The rest of the machine (disks, fans, power supply) is not in it.
"""

from __future__ import annotations

from math import hypot

from pybench.measure.quantity import Quantity

ENERGY, CPU_SHARE = "system_energy_j", "cpu_energy_share_ratio"
SCOPE = "gpu board + cpu packages"


def system_energies(gpu: Quantity, cpu: Quantity) -> dict[str, Quantity]:
    """`system_energy_j` and `cpu_energy_share_ratio` from the two energies of one window, in J.

    The errors of the two sensors are taken as independent. `u_standard` is without the board's gain, `u_absolute` with
    it. RAPL tells no gain of its own, so none is in either.
    """
    missing = [one for one in (gpu, cpu) if one.value is None or one.valid is not True]
    if missing or gpu.value is None or cpu.value is None:
        reasons = tuple(reason for one in missing for reason in one.reasons)
        return {name: Quantity(window=gpu.window, scope=SCOPE, reasons=reasons) for name in (ENERGY, CPU_SHARE)}
    method = f"{gpu.method} + {cpu.method}"
    total_j = gpu.value + cpu.value
    within, absolute = _pairs(gpu, cpu, "u_standard"), _pairs(gpu, cpu, "u_absolute")
    energy = Quantity(
        value=total_j,
        window=gpu.window,
        u_standard=hypot(*within),
        u_absolute=hypot(*absolute),
        method=method,
        scope=SCOPE,
        valid=True,
    )
    if total_j <= 0:
        return {ENERGY: energy}
    share = Quantity(
        value=cpu.value / total_j,
        window=gpu.window,
        method=method,
        scope=SCOPE,
        valid=True,
        u_standard=hypot(cpu.value * within[0], gpu.value * within[1]) / total_j**2,
        u_absolute=hypot(cpu.value * absolute[0], gpu.value * absolute[1]) / total_j**2,
    )
    return {ENERGY: energy, CPU_SHARE: share}


def _pairs(gpu: Quantity, cpu: Quantity, name: str) -> tuple[float, float]:
    """One standard uncertainty of both, J; the CPU's has no absolute form of its own."""
    return getattr(gpu, name) or gpu.u_standard or 0.0, getattr(cpu, name) or cpu.u_standard or 0.0
