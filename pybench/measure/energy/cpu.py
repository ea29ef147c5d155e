# SPDX-License-Identifier: Apache-2.0
"""Energy of the CPU packages in a window: RAPL where it really counts, else null with the reason.

perf events are preferred to powercap (arXiv 2401.15985: robust, cheap, wraps absorbed by the kernel). A counter counts
only if it moves under a short load: a file that exists proves nothing (KVM answers 0). Packages and their memory are
summed, and where one of the packages does not count there is no sum; psys, core and uncore overlap them and are left
out. Inside a virtual machine the value is the hypervisor's invention (QEMU makes it from CPU time) and is kept,
labelled and invalid.
It does not know how accurate RAPL's model is on this part, so `u_absolute` stays null.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

from pybench import _native
from pybench.catalogue.causes import Cause
from pybench.catalogue.reasons import Reason, ReasonCode, invalidate
from pybench.errors import UnsupportedError
from pybench.measure.energy.rapl import (
    Domain,
    Kind,
    OpenPerfEvent,
    find_perf_domains,
    find_powercap_domains,
    without_halves,
)
from pybench.measure.quantity import Quantity
from pybench.measure.timing.clock import NANOSECONDS_PER_SECOND, monotonic_ns
from pybench.measure.timing.windows import Window

METRIC = "cpu_energy_j"
UPDATE_S = 1e-3  # s: RAPL counters are updated about every millisecond (Intel SDM 15.10)
LOAD_S = 0.03  # s: some thirty updates, several of the counter's quanta even at idle power
WRAP_POLL_S = 30.0  # s: 65 kJ at 1 kW last 65 s, so two reads a wrap


@dataclass(frozen=True, slots=True)
class CpuReading:
    """The totals of all domains at one time, in J; None where that read failed."""

    totals_j: Mapping[str, float | None]


class CpuEnergy:
    """The machine's RAPL counters, probed once. `reasons` says why there are none, or what was left out."""

    def __init__(
        self,
        root: Path = Path("/"),
        *,
        open_event: OpenPerfEvent = _native.PerfCounter,
        load: Callable[[], None] | None = None,
    ) -> None:
        self.virtualised = detect_virtual_machine(root)
        self.container = detect_container(root)
        perf, perf_reasons = find_perf_domains(root, open_event)
        self.domains, dead = _keep_moving(perf, load or _burn)
        self.reasons = [*perf_reasons, *dead]
        if not any(domain.kind == "package" for domain in self.domains):
            powercap, powercap_reasons = find_powercap_domains(root)
            self.domains, dead = _keep_moving(powercap, load or _burn)
            self.reasons += [*powercap_reasons, *dead]
        if not any(domain.kind == "package" for domain in self.domains):
            self.domains = []
        self._stopping = Event()
        self._reading = Lock()  # of a counter and its total, which the poller reads, too
        self._poller: Thread | None = None

    def start(self) -> None:
        """Watches for wraps, which only powercap leaves to its reader."""
        if any(domain.source == "powercap" for domain in self.domains):
            self._poller = Thread(target=self._poll, name="pybench-rapl-wraps", daemon=True)
            self._poller.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._poller is not None:
            self._poller.join()

    def read(self) -> CpuReading:
        with self._reading:
            now_ns = monotonic_ns()
            return CpuReading({domain.name: domain.accumulator.update(now_ns) for domain in self.domains})

    def difference(self, window: Window, begin: CpuReading, end: CpuReading) -> Quantity:
        """The energy between two readings at the window's edges, in J; null when any of the domains was not read."""
        if not self.domains:
            return Quantity(window=window.name, method="unavailable", scope="package", reasons=tuple(self.reasons))
        scope = "package+dram" if any(domain.kind == "dram" for domain in self.domains) else "package"
        method = f"rapl-{self.domains[0].source}"
        energy_j = 0.0
        for domain in self.domains:
            first_j, last_j = begin.totals_j.get(domain.name), end.totals_j.get(domain.name)
            if first_j is None or last_j is None:
                reason = Reason(ReasonCode.READ_FAILED, f"{domain.name} could not be read at an edge of the window")
                return Quantity(window=window.name, method=method, scope=scope, reasons=(reason,))
            energy_j += last_j - first_j
        troubles = [domain.accumulator.trouble for domain in self.domains if domain.accumulator.trouble]
        if self.virtualised:
            troubles.append(Reason(ReasonCode.VIRTUALISED, f"{self.virtualised} makes up RAPL's values for its guests"))
        if window.duration_s < 20 * UPDATE_S:
            troubles.append(
                Reason(ReasonCode.WINDOW_TOO_SHORT, f"{window.duration_s:.3g} s, RAPL needs {20 * UPDATE_S} s for 5 %")
            )
        # Each edge falls anywhere in one update: rectangular, both edges.
        within_j = energy_j / window.duration_s * UPDATE_S / sqrt(6)
        return Quantity(
            value=energy_j,
            window=window.name,
            u_standard=within_j,
            method=method,
            scope=scope,
            valid=not invalidate(troubles),
            reasons=tuple(troubles),
        )

    def _poll(self) -> None:
        while not self._stopping.wait(WRAP_POLL_S):
            self.read()


def cpu_energy_source(root: Path = Path("/")) -> dict[str, Any]:
    """What counts the CPU's energy here: `source` in words, `domains`. Raises UnsupportedError where nothing does."""
    energy = CpuEnergy(root)
    if energy.virtualised and energy.domains:
        raise UnsupportedError(f"RAPL is made up by {energy.virtualised}", code=Cause.NO_CPU_ENERGY)
    if not energy.domains:
        raise UnsupportedError("; ".join(reason.words for reason in energy.reasons), code=Cause.NO_CPU_ENERGY)
    names = [domain.name for domain in energy.domains]
    return {"source": f"RAPL by {energy.domains[0].source}: {', '.join(names)}", "domains": names}


def detect_virtual_machine(root: Path) -> str | None:
    """The hypervisor under this system; None on bare metal. cpuid's flag decides, DMI's vendor gives the name."""
    if " hypervisor" not in _read_text(root / "proc/cpuinfo") and not _read_text(root / "sys/hypervisor/type"):
        return None
    vendor = _read_text(root / "sys/class/dmi/id/sys_vendor").strip()
    return vendor or _read_text(root / "sys/hypervisor/type").strip() or "a hypervisor"


def detect_container(root: Path) -> str | None:
    """The container around this process, by the marks that its runtime leaves; None when there is none to see."""
    for file, name in ((".dockerenv", "docker"), ("run/.containerenv", "podman"), ("singularity", "apptainer")):
        if (root / file).exists():
            return name
    text = _read_text(root / "proc/1/cgroup")
    return next((name for name in ("docker", "kubepods", "lxc", "containerd") if name in text), None)


def _keep_moving(domains: list[Domain], load: Callable[[], None]) -> tuple[list[Domain], list[Reason]]:
    """The domains of the kinds whose counters all rise under a short load, and a reason for each that does not."""
    if not domains:
        return [], []
    before = {domain.name: domain.accumulator.update(monotonic_ns()) for domain in domains}
    load()
    dead: set[Kind] = set()
    reasons = []
    for domain in domains:
        after_j = domain.accumulator.update(monotonic_ns())
        before_j = before[domain.name]
        if after_j is None or before_j is None or after_j <= before_j:
            dead.add(domain.kind)
            reasons.append(Reason(ReasonCode.COUNTER_DEAD, f"{domain.source} {domain.name} does not move under load"))
    return without_halves(domains, dead), reasons


def _burn() -> None:
    """Keeps one CPU busy for LOAD_S."""
    data = bytes(65536)
    end_ns = monotonic_ns() + round(LOAD_S * NANOSECONDS_PER_SECOND)
    while monotonic_ns() < end_ns:
        data = hashlib.sha256(data).digest() * 2048


def _read_text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""
