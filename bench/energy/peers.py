# SPDX-License-Identifier: Apache-2.0
"""Zeus and CodeCarbon, as their own documentation uses them, around one window. Each is optional: a peer that cannot be
imported or opened here is reported, and its column stays empty."""

from __future__ import annotations

import importlib.metadata
import logging
from collections.abc import Callable
from typing import Any, Protocol

from pybench.measure import monotonic_ns

JOULES_PER_KWH = 3.6e6


class Peer(Protocol):
    """Another tool's begin and end of a window, on one GPU: the first that CUDA shows, NVML's number `gpu_index`."""

    version: str

    def begin(self, window: str) -> None: ...

    def end(self, window: str) -> float:
        """The GPU's energy in J, as the tool gives it."""


class Zeus:
    """ZeusMonitor's windows: the energy counter read at both ends, after a synchronisation.

    `approx_instant_energy` is on, as Zeus advises for short windows: a window whose counter did not move gets instant
    power times its length. No window here is shorter than the counter's period, so it costs a call and changes nothing.
    """

    def __init__(self) -> None:
        from zeus.monitor import ZeusMonitor

        self.version = importlib.metadata.version("zeus")
        self._monitor = ZeusMonitor(gpu_indices=[0], cpu_indices=[], approx_instant_energy=True)

    def begin(self, window: str) -> None:
        self._monitor.begin_window(window)

    def end(self, window: str) -> float:
        return float(self._monitor.end_window(window).gpu_energy[0])


class CodeCarbon:
    """OfflineEmissionsTracker's tasks, of which only the GPU's energy is taken.

    CPU and memory are given constant powers, so that reading them takes no time between the GPU's edges and the work.
    """

    def __init__(self, gpu_index: int) -> None:
        from codecarbon import OfflineEmissionsTracker

        self.version = importlib.metadata.version("codecarbon")
        self._tracker: Any = OfflineEmissionsTracker(
            country_iso_code="USA",
            measure_power_secs=0.1,
            save_to_file=False,
            gpu_ids=[gpu_index],
            force_cpu_power=1,
            force_ram_power=1,
            log_level="error",
            allow_multiple_runs=True,
        )
        self._tracker.start_task("first")  # finds the hardware, which takes seconds
        self._tracker.stop_task("first")
        if not any(type(hardware).__name__ == "GPU" for hardware in self._tracker._hardware):
            raise RuntimeError("CodeCarbon found no GPU here")

    def begin(self, window: str) -> None:
        self._tracker.start_task(window)

    def end(self, window: str) -> float:
        return float(self._tracker.stop_task(window).gpu_energy) * JOULES_PER_KWH


MAKERS: dict[str, Callable[[int], Peer]] = {
    "zeus": lambda _: Zeus(),  # which counts what CUDA_VISIBLE_DEVICES shows
    "codecarbon": CodeCarbon,
}


class TimedPeer:
    """A peer around one window, with how long each of its two calls took."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._window = ""
        self.energy_j = float("nan")
        self.begin_s = float("nan")
        self.end_s = float("nan")

    def begin(self, window: str) -> None:
        self._window = window
        before_ns = monotonic_ns()
        self._peer.begin(window)
        self.begin_s = (monotonic_ns() - before_ns) * 1e-9

    def end(self) -> None:
        before_ns = monotonic_ns()
        self.energy_j = self._peer.end(self._window)
        self.end_s = (monotonic_ns() - before_ns) * 1e-9


def open_peers(gpu_index: int, report: Callable[[str], None]) -> dict[str, Peer]:
    """Those of MAKERS that work here; why the others do not goes to `report`."""
    logging.getLogger("zeus").setLevel(logging.ERROR)
    peers = {}
    for name, make in MAKERS.items():
        try:
            peers[name] = make(gpu_index)
        except Exception as error:  # whatever a peer raises, the recording goes on without it
            report(f"{name} does not run here: {type(error).__name__}: {error}")
    return peers
