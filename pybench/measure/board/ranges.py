# SPDX-License-Identifier: Apache-2.0
"""What a board can be set to, and whether this process may: asked without setting anything.

NVML gives the range of the power limit and the clocks that a lock can ask for. It does not say who may set them. The
driver takes a caller with CAP_SYS_ADMIN (root has it, root in a container only if it was given), so the kernel is asked
for that. The last word is NVML's code when it comes to setting (`pybench.measure.board.settings`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pybench.measure.board import nvml
from pybench.measure.board.nvml import told

CAP_SYS_ADMIN = 21  # capability number, linux/capability.h
MILLI = 1e-3
FEW = 6  # clocks that are listed; of more, the two at either end

UNITS = {"power_limit_w": "W", "sm_clock_mhz": "MHz", "memory_clock_mhz": "MHz"}
WORDS = {"power_limit_w": "power limit", "sm_clock_mhz": "SM clock", "memory_clock_mhz": "memory clock"}


@dataclass(frozen=True, slots=True)
class BoardRanges:
    """What one board takes. None: NVML does not tell. `power_limit_w`: smallest and largest; clocks: every one."""

    power_limit_w: tuple[float, float] | None
    sm_clock_mhz: tuple[int, ...] | None
    memory_clock_mhz: tuple[int, ...] | None

    def takes(self, name: str) -> str | None:
        """In words, which values of a setting the board takes; None where NVML does not tell."""
        if name == "power_limit_w":
            return None if self.power_limit_w is None else "{:g} to {:g} W".format(*self.power_limit_w)
        clocks = self.sm_clock_mhz if name == "sm_clock_mhz" else self.memory_clock_mhz
        if clocks is None:
            return None
        some = clocks if len(clocks) <= FEW else (*clocks[:2], "...", *clocks[-2:])
        return f"{', '.join(map(str, some))} MHz"

    def allows(self, name: str, value: float) -> bool:
        """Whether the board takes a value, as far as NVML tells."""
        if name == "power_limit_w":
            return self.power_limit_w is None or self.power_limit_w[0] <= value <= self.power_limit_w[1]
        clocks = self.sm_clock_mhz if name == "sm_clock_mhz" else self.memory_clock_mhz
        return clocks is None or value in clocks

    def as_json(self) -> dict[str, Any]:
        """Name -> {`takes`: in words, `range` or `clocks`: as numbers}, for settings that NVML tells a range of."""
        numbers = {
            "power_limit_w": self.power_limit_w,
            "sm_clock_mhz": self.sm_clock_mhz,
            "memory_clock_mhz": self.memory_clock_mhz,
        }
        return {
            name: {"takes": self.takes(name), "range" if name == "power_limit_w" else "clocks": value}
            for name, value in numbers.items()
            if value is not None
        }


def read_ranges(board: nvml.NvmlBoard, wanted: Mapping[str, int] | None = None) -> BoardRanges:
    """The ranges of one board. SM clocks go with a memory clock: with the wanted one, or else with the fastest."""
    power_mw = told(board.power_range_mw)
    memory = tuple(told(board.memory_clocks_mhz) or ())
    sm: tuple[int, ...] = ()
    if memory:
        going_with = (wanted or {}).get("memory_clock_mhz", memory[-1])
        sm = tuple(told(partial(board.sm_clocks_mhz, going_with)) or ())
    limits = None if power_mw is None else (power_mw[0] * MILLI, power_mw[1] * MILLI)
    return BoardRanges(limits, sm or None, memory or None)


def may_set(root: Path = Path("/")) -> bool:
    """Whether the kernel would let this process set a board."""
    for line in (root / "proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> CAP_SYS_ADMIN & 1)
    return False


def board_facts(library: str | None = None) -> dict[str, dict[str, Any]]:
    """UUID -> what can be set and what a killed run left changed, for the probing worker. Nothing is set."""
    from pybench.measure.board import guardian
    from pybench.measure.board.claim import read_leftover

    facts = {}
    for board in nvml.open_nvml(library).boards:
        record = read_leftover(board.uuid)
        changed = record["settings"] if record else {}
        facts[board.uuid] = {
            "ranges": read_ranges(board).as_json(),
            "changed": [guardian.command_by_hand(board.uuid, name, each) for name, each in changed.items()],
        }
    return facts
