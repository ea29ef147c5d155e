# SPDX-License-Identifier: Apache-2.0
"""RAPL energy counters: found in sysfs, read through perf events, else powercap. Wraps and failed reads are safe.

Sources: Documentation/power/powercap, Documentation/ABI/testing/sysfs-bus-event_source-devices-events, and the defects
of other tools that tests/measure/energy/test_cpu.py names one by one. It sums nothing: see cpu.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from pybench import _native
from pybench.catalogue.reasons import Reason, ReasonCode
from pybench.measure.timing.clock import NANOSECONDS_PER_SECOND

Kind = Literal["package", "dram"]

_MICRO = 1e-6
LARGEST_POWER_W = 1000.0  # W a domain: twice the highest published TDP of a package; more is no reading
_PERF_KINDS: dict[str, Kind] = {"energy-pkg": "package", "energy-ram": "dram"}


class RawCounter(Protocol):
    """`read` gives the count in J, or raises OSError or ValueError when the kernel does not."""

    def read(self) -> float: ...


class PerfEvent(Protocol):
    """What perf_event_open gives: a 64-bit count whose wraps the kernel absorbs."""

    def read(self) -> int: ...


OpenPerfEvent = Callable[[int, int, int], PerfEvent]


@dataclass(slots=True)
class Accumulator:
    """Turns a wrapping counter into joules since the first good read.

    A failed read is missing, never 0: the next good read continues from the last good one.

    range_j: the value at which the counter wraps; None when it does not
    total_j: since the first good read
    trouble: what makes the total unusable, once seen
    """

    counter: RawCounter
    range_j: float | None
    total_j: float = 0.0
    trouble: Reason | None = None
    _last_j: float | None = None
    _last_ns: int = 0

    def update(self, now_ns: int) -> float | None:
        """Reads the counter; the total in J, or None when this read failed."""
        try:
            value_j = self.counter.read()
        except (OSError, ValueError):
            return None
        if self._last_j is not None:
            self._add(value_j - self._last_j, (now_ns - self._last_ns) / NANOSECONDS_PER_SECOND)
        self._last_j, self._last_ns = value_j, now_ns
        return self.total_j

    def _add(self, delta_j: float, elapsed_s: float) -> None:
        if delta_j < 0 and self.range_j is None:
            self.trouble = Reason(ReasonCode.COUNTER_RESET, "a RAPL counter that does not wrap went back")
            return
        if self.range_j is not None and elapsed_s > self.range_j / LARGEST_POWER_W:
            self.trouble = Reason(
                ReasonCode.COUNTER_GAP, f"{elapsed_s:.3g} s without a good read could hide a whole wrap"
            )
        delta_j += self.range_j if delta_j < 0 and self.range_j is not None else 0.0
        # One update of the counter (about 1 ms) may fall between two reads that are closer than that: 1 s of grace.
        if delta_j > LARGEST_POWER_W * (elapsed_s + 1.0):
            self.trouble = Reason(
                ReasonCode.IMPLAUSIBLE, f"a RAPL counter rose by {delta_j:.4g} J in {elapsed_s:.3g} s"
            )
            return
        self.total_j += delta_j


@dataclass(frozen=True, slots=True)
class Domain:
    """One counter of one part of the machine. `name` is unique: twins of one part (MSR, MMIO) were dropped."""

    name: str
    kind: Kind
    source: Literal["perf", "powercap"]
    accumulator: Accumulator = field(compare=False)


@dataclass(frozen=True, slots=True)
class PowercapFile:
    """`energy_uj` of a powercap zone."""

    path: Path

    def read(self) -> float:
        return int(self.path.read_text()) * _MICRO


@dataclass(frozen=True, slots=True)
class ScaledEvent:
    """A perf event and the joules of one count."""

    event: PerfEvent
    scale_j: float

    def read(self) -> float:
        return self.event.read() * self.scale_j


def without_halves(domains: Iterable[Domain], lost: Collection[Kind]) -> list[Domain]:
    """Only the kinds that lost no part: the sum over some packages would pass for that over all."""
    return [domain for domain in domains if domain.kind not in lost]


def find_perf_domains(root: Path, open_event: OpenPerfEvent = _native.PerfCounter) -> tuple[list[Domain], list[Reason]]:
    """Packages and memory that perf's `power` device counts, and why others cannot be read. psys and core are left out:
    they overlap the package."""
    device = root / "sys/bus/event_source/devices/power"
    if not device.is_dir():
        return [], [
            Reason(
                ReasonCode.PERF_ABSENT, "the kernel has no perf device `power` (no RAPL driver, or a virtual machine)"
            )
        ]
    domains: list[Domain] = []
    reasons: list[Reason] = []
    for event, kind in _PERF_KINDS.items():
        if not (device / "events" / event).is_file():
            continue  # this machine does not have that event
        try:
            type_number = int((device / "type").read_text())
            config = int((device / "events" / event).read_text().strip().removeprefix("event="), 16)
            scale_j = float((device / "events" / f"{event}.scale").read_text())
            cpus = _expand_cpus((device / "cpumask").read_text())
            counters = {cpu: ScaledEvent(open_event(type_number, config, cpu), scale_j) for cpu in cpus}
        except (OSError, ValueError) as error:
            reasons.append(
                Reason(
                    ReasonCode.PERF_UNREADABLE,
                    f"{event}: {error} (kernel.perf_event_paranoid <= 0 or CAP_PERFMON is needed)",
                )
            )
        else:
            domains += [
                Domain(f"{kind}@cpu{cpu}", kind, "perf", Accumulator(counter, None))
                for cpu, counter in counters.items()
            ]
    return domains, reasons


def find_powercap_domains(root: Path) -> tuple[list[Domain], list[Reason]]:
    """Packages and memory among the powercap zones, twins dropped by name, and why others cannot be read."""
    folder = root / "sys/class/powercap"
    zones = sorted(folder.glob("intel-rapl*:*"), key=_zone_order)
    if not zones:
        return [], [
            Reason(
                ReasonCode.POWERCAP_ABSENT,
                "no RAPL zone in /sys/class/powercap (no driver, a virtual machine, or a container's mask)",
            )
        ]
    names: dict[str, str] = {}
    kinds: dict[str, Kind] = {}
    domains: dict[str, Domain] = {}
    reasons: list[Reason] = []
    for zone in zones:
        try:
            names[zone.name] = label = (zone / "name").read_text().strip()
            kind, name = _classify(label, names.get(zone.name.rpartition(":")[0]))
            if kind is None or name in domains:
                continue
            kinds[name] = kind
            range_j = int((zone / "max_energy_range_uj").read_text()) * _MICRO
            counter = PowercapFile(zone / "energy_uj")
            counter.read()
            domains[name] = Domain(name, kind, "powercap", Accumulator(counter, range_j))
        except FileNotFoundError as error:
            reasons.append(
                Reason(
                    ReasonCode.POWERCAP_MASKED,
                    f"{zone.name}: {error} (a container's runtime hides /sys/devices/virtual/powercap: "
                    "bind-mount it, read-only)",
                )
            )
        except (OSError, ValueError) as error:
            reasons.append(
                Reason(
                    ReasonCode.POWERCAP_UNREADABLE,
                    f"{zone.name}: {error} (energy_uj is readable by root only since Linux 5.10)",
                )
            )
    lost = {kind for name, kind in kinds.items() if name not in domains}
    return without_halves(domains.values(), lost), reasons


def _zone_order(zone: Path) -> tuple[int, bool, str]:
    """Parents before their parts, and the MSR's zones before their MMIO twins."""
    return zone.name.count(":"), "mmio" in zone.name, zone.name


def _classify(label: str, parent: str | None) -> tuple[Kind | None, str]:
    """The kind of a zone, None for those that overlap others (psys, core, uncore), and its unique name."""
    if label.startswith("package"):
        return "package", label
    if label == "dram":
        return "dram", f"dram of {parent}"
    return None, label


def _expand_cpus(text: str) -> list[int]:
    """`0,24` or `0-3` as numbers."""
    cpus: list[int] = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        cpus.extend(range(int(first), int(last or first) + 1))
    return cpus
