# SPDX-License-Identifier: Apache-2.0
"""What samples one GPU board while a session runs, whatever it reads it with: the protocol that Session uses.

Two things keep it: `gpu_sampler.GpuSampler` (NVML, C++ threads) and `nvidia_smi.NvidiaSmiSampler` (a child process,
only where NVML does not answer).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from pybench.catalogue.cautions import Caution
from pybench.measure.energy.gpu import BoardEnergy
from pybench.measure.energy.profile import SensorProfile
from pybench.measure.energy.trace import StateChannel
from pybench.measure.timing.windows import Window

Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Why something cannot be measured here: a `code: detail` text."""

    reason: str


class Sampler(Protocol):
    """Samples one board between `start` and `stop`. What was read can be asked for at any time."""

    @property
    def uuid(self) -> str: ...

    def start(self) -> None: ...

    def stop(self) -> None:
        """Ends sampling, with a last reading of everything. Does nothing where it was never started."""

    def read_counter(self) -> None:
        """One reading of the energy counter, now, for the edges of windows; nothing where there is none."""

    def track_counter(self, seconds: float) -> None:
        """Looks for the energy counter's ticks for so long, in the background; nothing where there is none."""

    def energy(
        self, window: Window, before: Window | None, after: Window | None, profile: SensorProfile, origin_ns: int
    ) -> BoardEnergy:
        """The board's energy in a window; `before`, `after`: windows without work around it."""

    def channels(self, origin_ns: int) -> Mapping[str, Columns]:
        """Every channel as read, in SI units, times in s after `origin_ns` of the raw clock. Missing is NaN."""

    def states(self) -> StateChannel:
        """The board's state over time: what lowered its clocks, and how many processes held it."""

    def peak_memory_bytes(self) -> tuple[int | None, bool]:
        """The largest device memory seen, and whether it is this process's own (True) or everyone's (False)."""

    def cautions(self, begin_ns: int, end_ns: int, profile: SensorProfile) -> list[Caution]:
        """Doubts about the energy between two times that come from how it was sampled."""

    def facts(self) -> dict[str, Any]:
        """What was found, for environment.json."""
