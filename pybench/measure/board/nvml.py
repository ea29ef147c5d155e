# SPDX-License-Identifier: Apache-2.0
"""NVML through nvidia-ml-py (pynvml): which boards there are, what they are set to, and setting them.

For calls less often than once a second. What is sampled, is read by C++ (native/nvml.hpp) from the same library.
A machine without the library or a driver gives an `Nvml` without boards that says why; that is no error.

This module imports the standard library only, and pynvml when NVML is opened: a guardian loads it without pybench.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

LIBRARY = "libnvidia-ml.so.1"
LIBRARY_VARIABLE = "PYBENCH_NVML_LIBRARY"  # names another library; native/nvml_library.cpp reads it, too
SM_CLOCK, MEMORY_CLOCK = 1, 2  # NVML_CLOCK_SM, NVML_CLOCK_MEM
INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND, FUNCTION_NOT_FOUND = 2, 3, 4, 6, 13

# NVML's clocks event reasons that lower the clocks for heat or power (nvml.h, nvmlClocksEventReasons).
THROTTLE_BITS = {
    0x04: "software power cap",
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}

Answer = TypeVar("Answer")


class NvmlError(RuntimeError):
    """What NVML refused. `code`: NVML's own; 13 for a function that an older driver lacks."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"NVML code {code} ({text})")
        self.code = code


class Nvml(NamedTuple):
    """The opened library."""

    path: str
    reason: str | None
    """Why it cannot be used, or None."""
    driver: str | None = None
    """The driver's version, where it is told."""
    boards: tuple[NvmlBoard, ...] = ()

    def board(self, uuid: str) -> NvmlBoard | None:
        """The board with this UUID, or None."""
        return next((board for board in self.boards if board.uuid == uuid), None)


class NvmlBoard:
    """One board. Every method is one call of NVML and raises NvmlError for what NVML refuses; powers are in mW."""

    def __init__(self, pynvml: Any, index: int) -> None:
        self._pynvml = pynvml
        self._handle = _asked(pynvml, "nvmlDeviceGetHandleByIndex", index)
        self.uuid = str(self._ask("nvmlDeviceGetUUID"))
        self.name = str(self._ask("nvmlDeviceGetName"))

    def power_limit_mw(self) -> int:
        """The limit that was set."""
        return int(self._ask("nvmlDeviceGetPowerManagementLimit"))

    def limit_in_force_mw(self) -> int:
        """The limit in force, which follows what was set, or is lower."""
        return int(self._ask("nvmlDeviceGetEnforcedPowerLimit"))

    def power_range_mw(self) -> tuple[int, int]:
        """The smallest and the largest limit that the board takes."""
        smallest, largest = self._ask("nvmlDeviceGetPowerManagementLimitConstraints")
        return int(smallest), int(largest)

    def clock_mhz(self, clock: int) -> int:
        """`clock`: SM_CLOCK or MEMORY_CLOCK. There is no reading of a lock."""
        return int(self._ask("nvmlDeviceGetClockInfo", clock))

    def throttle_reasons(self) -> int:
        """A bit mask of nvmlClocksEventReason*."""
        return int(self._ask("nvmlDeviceGetCurrentClocksThrottleReasons"))

    def memory_clocks_mhz(self) -> list[int]:
        """The memory clocks that a lock can ask for, in order."""
        return sorted(self._ask("nvmlDeviceGetSupportedMemoryClocks"))

    def sm_clocks_mhz(self, memory_clock_mhz: int) -> list[int]:
        """The SM clocks that go with a memory clock, in order."""
        return sorted(self._ask("nvmlDeviceGetSupportedGraphicsClocks", memory_clock_mhz))

    def set_power_limit_mw(self, limit_mw: int) -> None:
        self._ask("nvmlDeviceSetPowerManagementLimit", limit_mw)

    def lock_sm_clock_mhz(self, mhz: int) -> None:
        """Locks the clock to one frequency: from `mhz` to `mhz`."""
        self._ask("nvmlDeviceSetGpuLockedClocks", mhz, mhz)

    def reset_sm_clock(self) -> None:
        self._ask("nvmlDeviceResetGpuLockedClocks")

    def lock_memory_clock_mhz(self, mhz: int) -> None:
        """Locks the clock to one frequency: from `mhz` to `mhz`."""
        self._ask("nvmlDeviceSetMemoryLockedClocks", mhz, mhz)

    def reset_memory_clock(self) -> None:
        self._ask("nvmlDeviceResetMemoryLockedClocks")

    def _ask(self, function: str, *arguments: Any) -> Any:
        return _asked(self._pynvml, function, self._handle, *arguments)


def open_nvml(library: str | None = None) -> Nvml:
    """Opens NVML and lists its boards. `library`: a path in place of the environment's, or of the driver's own.

    NVML stays open until the process ends: other parts of the process may have opened it, too.
    """
    import pynvml

    path = library or os.environ.get(LIBRARY_VARIABLE) or LIBRARY
    try:
        _choose(pynvml, path)
        _asked(pynvml, "nvmlInit")
        boards = tuple(NvmlBoard(pynvml, index) for index in range(_asked(pynvml, "nvmlDeviceGetCount")))
    except OSError as error:
        return Nvml(path, str(error))
    except NvmlError as error:
        return Nvml(path, f"{path}: {error}")
    return Nvml(path, None, told(partial(_asked, pynvml, "nvmlSystemGetDriverVersion")), boards)


def told(ask: Callable[[], Answer]) -> Answer | None:
    """What NVML answers; None where it does not."""
    try:
        return ask()
    except NvmlError:
        return None


def folder_of_pynvml() -> str:
    """Where pynvml is installed."""
    import pynvml

    return str(Path(pynvml.__file__).absolute().parent)


def _choose(pynvml: Any, path: str) -> None:
    """Puts the library at `path` in the place of the one that pynvml would open by its usual name."""
    if pynvml.nvmlLib is None or pynvml.nvmlLib._name != path:
        pynvml.nvmlLib = ctypes.CDLL(path)
        pynvml._nvmlGetFunctionPointer_cache.clear()


def _asked(pynvml: Any, function: str, *arguments: Any) -> Any:
    try:
        return getattr(pynvml, function)(*arguments)
    except pynvml.NVMLError as error:
        raise NvmlError(error.value, str(error)) from error
