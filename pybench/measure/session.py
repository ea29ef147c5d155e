# SPDX-License-Identifier: Apache-2.0
"""One run's measuring: starts the samplers, opens windows, answers for each of them. See the package's docstring."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from pybench.catalogue.cautions import Caution, CautionCode
from pybench.catalogue.reasons import Reason, ReasonCode
from pybench.catalogue.sensors import FUSED
from pybench.errors import UsageError
from pybench.measure.build import NATIVE_BUILD_ID
from pybench.measure.energy.cpu import METRIC as CPU_METRIC
from pybench.measure.energy.cpu import CpuEnergy, CpuReading
from pybench.measure.energy.cpu_estimate import METRIC as CPU_ESTIMATE
from pybench.measure.energy.cpu_estimate import BusyTime, estimate_interval, read_busy_time
from pybench.measure.energy.difference import energies_less
from pybench.measure.energy.gpu import METRIC, BoardEnergy
from pybench.measure.energy.gpu_sampler import Columns, GpuSampler, Unavailable, open_gpu
from pybench.measure.energy.integration import SCOPE
from pybench.measure.energy.node import METRIC as NODE_METRIC
from pybench.measure.energy.node import OTHERS_CPUS, NodeEnergy, NodeReading, others_cpus
from pybench.measure.energy.profile import ASSUMED, SensorProfile
from pybench.measure.energy.rails import METRIC as MODULE_METRIC
from pybench.measure.energy.rails import PowerRails
from pybench.measure.energy.slow_iterations import PERCENTILES, metric_of, slow_energies
from pybench.measure.energy.system import system_energies
from pybench.measure.quantity import Quantity
from pybench.measure.timing.clock import NANOSECONDS_PER_SECOND, ClockAnchor, anchor_clock, monotonic_ns, sleep_until_ns
from pybench.measure.timing.cpu_time import own_cpu_s
from pybench.measure.timing.memory import read_peak_host_bytes, reset_peak_host
from pybench.measure.timing.replay import Times
from pybench.measure.timing.windows import OpenWindow, Window

IDLE_BEFORE, IDLE_AFTER = "idle_before", "idle_after"
TAIL_S = 0.3  # s: between the last window and the idle one after it; clocks and memory of an H200 settle in 0.1 s
TRACK_S = 0.1  # s: of visiting each tick of the energy counter, at either end of a session
SETTLE_S = 0.15  # s: until the driver's samples reach over the last window's end, with their lag


@dataclass(frozen=True, slots=True)
class _Edge:
    """What is read just outside an edge of a window. `own_s`: CPU time of this process, where the node is measured."""

    busy: BusyTime | None
    node: NodeReading | None
    own_s: float


class MeasuringSession:
    """Measures one process while it runs. A context manager; one at a time in a process."""

    def __init__(
        self,
        device_uuid: str | None = None,
        *,
        power_interval_s: float = 0.1,
        nvml_library: str | None = None,
        profile: SensorProfile = ASSUMED,
        root: Path = Path("/"),
    ) -> None:
        if not 0.001 <= power_interval_s <= 1:
            raise UsageError(f"a power interval of {power_interval_s} s", hint="choose between 0.001 and 1 s")
        self._root = root
        self._profile = profile
        self._board: dict[str, BoardEnergy] = {}
        self._ended = False
        self._gpu: GpuSampler | Unavailable | None = None
        if device_uuid is not None:
            self._gpu = open_gpu(device_uuid, power_interval_s, nvml_library)
            if isinstance(self._gpu, GpuSampler) and profile.driver not in (None, self._gpu.driver_version):
                self._profile = ASSUMED  # a driver decides what its samples average over
        self._cpu = CpuEnergy(root)
        self._rails = PowerRails(root)
        self._node = NodeEnergy(root)
        self._anchor: ClockAnchor = anchor_clock()
        self._peak_was_reset: bool | None = None
        self._peak_host_bytes = 0
        self._windows: dict[str, Window] = {}
        self._edges: dict[str, tuple[_Edge, _Edge]] = {}
        self._cpu_edges: dict[str, tuple[CpuReading, CpuReading]] = {}
        self.begin_ns = self._anchor.monotonic_ns

    def __enter__(self) -> Self:
        self._anchor = anchor_clock()
        self.begin_ns = self._anchor.monotonic_ns
        self._cpu.start()
        self._rails.start()
        if self._gpu is not None and not isinstance(self._gpu, Unavailable):
            self._gpu.start()
            self._gpu.track_counter(TRACK_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._gpu is not None and not isinstance(self._gpu, Unavailable):
            if error is None and self._windows:
                self._gpu.track_counter(TRACK_S)
                sleep_until_ns(self._last_end_ns() + round(SETTLE_S * NANOSECONDS_PER_SECOND))
            self._gpu.stop()
        self._cpu.stop()
        self._rails.stop()
        self._ended = True

    @property
    def windows(self) -> tuple[Window, ...]:
        """The closed windows, in order."""
        return tuple(self._windows.values())

    @contextmanager
    def window(self, name: str) -> Iterator[OpenWindow]:
        """Measures what happens inside. A window that ends by an exception is not kept."""
        if name in self._windows:
            raise UsageError(f"the window {name!r} was measured already", hint="names are unique in a session")
        if self._peak_was_reset is None:
            self._peak_was_reset = reset_peak_host(self._root)
        window = OpenWindow(name)
        # What is read fastest is read nearest to the window: its CPU energy has everything in between.
        self._read_gpu_counter()
        before, cpu_before = self._read_edge(), self._cpu.read()
        begin_ns = monotonic_ns()
        yield window
        end_ns = monotonic_ns()
        cpu_after, after = self._cpu.read(), self._read_edge()
        self._read_gpu_counter()
        self._edges[name], self._cpu_edges[name] = (before, after), (cpu_before, cpu_after)
        self._windows[name] = Window(name, begin_ns, end_ns, window.iterations)
        self._peak_host_bytes = read_peak_host_bytes(self._root)

    def idle(self, name: str, seconds: float) -> None:
        """A window without work, for the board's idle power: `IDLE_BEFORE` or `IDLE_AFTER` the others.

        The one after begins `TAIL_S` after the last window's end, so that the tail between them can be told. Without a
        sampled GPU, or for 0 seconds, nothing happens.
        """
        if seconds <= 0 or self._gpu is None or isinstance(self._gpu, Unavailable):
            return
        if name == IDLE_AFTER and self._windows:
            sleep_until_ns(self._last_end_ns() + round(TAIL_S * NANOSECONDS_PER_SECOND))
        with self.window(name):
            sleep_until_ns(monotonic_ns() + round(seconds * NANOSECONDS_PER_SECOND))

    def energy(self, name: str) -> dict[str, Quantity]:
        """Energies of the window `name`: GPU (where asked for), CPU, both, and an estimate where the CPU's is no use.
        Also the whole module's on an edge module, and the whole node's where it has a counter.

        Known once the session has ended: a GPU's last samples come after its window.
        """
        window = self._closed(name)
        before, after = self._edges[name]
        quantities = dict(self._board_energy(window).quantities) if self._gpu is not None else {}
        cpu = self._cpu.difference(window, *self._cpu_edges[name])
        quantities[CPU_METRIC] = cpu
        if self._gpu is not None:
            quantities |= system_energies(quantities[METRIC], cpu)
        if (module := self._rails.energy(window)) is not None:
            quantities[MODULE_METRIC] = module
        parts = [quantities[name] for name in (METRIC, CPU_METRIC) if name in quantities]
        if (node := self._node.difference(window, before.node, after.node, parts)) is not None:
            quantities[NODE_METRIC] = node
        if cpu.value is None or not cpu.valid:
            quantities[CPU_ESTIMATE] = estimate_interval(window, before.busy, after.busy)
        return quantities

    def energy_without(self, name: str, part: str) -> dict[str, Quantity]:
        """Energies of the window `name`, as of `energy`, less what stood before each of its iterations.

        part: the window in which that alone was repeated
        """
        times = self._closed(name).iterations / self._closed(part).iterations
        return energies_less(self.energy(name), self.energy(part), times)

    def slow_energies(self, name: str, times: Times) -> dict[str, Quantity]:
        """The GPU's energy in the slow iterations of the window `name`, whose iterations are `times`.

        Empty where no GPU was asked for, and where iterations stand apart: power is not told apart as finely.
        """
        window = self._closed(name)
        if self._gpu is None or times.apart:
            return {}
        if isinstance(self._gpu, Unavailable):
            null = Quantity(window=window.name, method=FUSED, scope=SCOPE, reasons=(self._gpu.reason,))
            return {metric_of(percentile): null for percentile in PERCENTILES}
        return slow_energies(self._gpu.trace(), times, window.name, self._profile)

    def gpu_utilisation(self, name: str) -> Quantity | None:
        """Share of the window `name` in which a kernel ran on the GPU; None where no GPU was asked for."""
        window = self._closed(name)
        if self._gpu is None:
            return None
        if isinstance(self._gpu, Unavailable):
            return Quantity(window=window.name, scope="board", reasons=(self._gpu.reason,))
        return self._gpu.utilisation(window)

    def energy_budget(self, *names: str) -> dict[str, Any] | None:
        """Where the GPU's joules in windows come from and how sure each part is; None without a sampled GPU."""
        if self._gpu is None or isinstance(self._gpu, Unavailable):
            return None
        windows = [self._board_energy(self._closed(name)).budget for name in names]
        return {"sensor": self._profile.as_json(), "windows": windows}

    def memory(self) -> dict[str, Quantity]:
        """Peak memory over all windows: of this process, and of the device where one was asked for."""
        if not self._windows:
            raise UsageError("no window was measured, so there is no peak", hint="open one with session.window(name)")
        windows = "+".join(self._windows)
        scope = "process" if self._peak_was_reset else "process, since its start"
        peak = float(self._peak_host_bytes)
        host = Quantity(value=peak, window=windows, method="proc-vmhwm", scope=scope, valid=True)
        device = {} if self._gpu is None else {"peak_device_bytes": _device_memory(self._gpu, windows)}
        return {"peak_host_bytes": host, **device}

    def cautions(self, name: str) -> list[Caution]:
        """Doubts about the window `name` that the samplers saw."""
        window = self._closed(name)
        cautions = self._node_cautions(window)
        if self._gpu is None or isinstance(self._gpu, Unavailable):
            return cautions
        cautions += self._gpu.cautions(window.begin_ns, window.end_ns, self._profile)
        seen = self._gpu.states().seen(np.array([window.begin_ns]), np.array([window.end_ns]))
        if seen.throttling[0]:
            cautions.append(Caution(CautionCode.THROTTLED, ", ".join(seen.throttle_words(0))))
        if seen.most_processes[0] > 1:
            cautions.append(Caution(CautionCode.FOREIGN_PROCESS, f"{seen.most_processes[0]} processes held the GPU"))
        peak, own = self._gpu.peak_memory_bytes()
        if peak is not None and not own:
            cautions.append(
                Caution(CautionCode.GPU_MEMORY_SHARED, "NVML does not list this process", "peak_device_bytes")
            )
        return cautions

    def facts(self) -> dict[str, Any]:
        """What is measured and how, for environment.json."""
        gpu: dict[str, Any] | None = None
        if isinstance(self._gpu, Unavailable):
            gpu = {"unavailable": str(self._gpu.reason)}
        elif self._gpu is not None:
            gpu = {**self._gpu.facts(), "sensor": self._profile.as_json()}
        return {
            "native_build_id": NATIVE_BUILD_ID,
            "begin_ns": self.begin_ns,
            "clock_monotonic_raw_ns": self._anchor.monotonic_ns,
            "clock_realtime_ns": self._anchor.realtime_ns,
            "clock_anchor_uncertainty_ns": self._anchor.uncertainty_ns,
            "gpu": gpu,
            "cpu_energy_domains": [domain.name for domain in self._cpu.domains],
            "cpu_energy_reasons": [str(reason) for reason in self._cpu.reasons],
            "power_rails": self._rails.facts() if self._rails.rails else None,
            "node_energy": self._node.facts(),
            "virtual_machine": self._cpu.virtualised,
            "container": self._cpu.container,
            "peak_host_was_reset": self._peak_was_reset,
        }

    def write_channels(self, write: Callable[[str, Columns], None]) -> None:
        """Calls `write(name, columns)` once for each channel that has rows."""
        gpu = None if isinstance(self._gpu, Unavailable) else self._gpu
        channels = {} if gpu is None else dict(gpu.channels(self.begin_ns))
        channels["power_rails"] = self._rails.channel(self.begin_ns)
        for name, columns in channels.items():
            if len(next(iter(columns.values()))):
                write(name, columns)

    def _node_cautions(self, window: Window) -> list[Caution]:
        if not self._node.is_there:
            return []
        before, after = self._edges[window.name]
        others = others_cpus(window, before.busy, after.busy, after.own_s - before.own_s)
        if others <= OTHERS_CPUS:
            return []
        return [Caution(CautionCode.NODE_SHARED, f"they kept {others:.1f} CPUs busy", NODE_METRIC)]

    def _closed(self, name: str) -> Window:
        if name not in self._windows:
            raise UsageError(f"no window {name!r} was measured", hint=f"measured: {', '.join(self._windows) or 'none'}")
        return self._windows[name]

    def _last_end_ns(self) -> int:
        return max(window.end_ns for window in self._windows.values())

    def _board_energy(self, window: Window) -> BoardEnergy:
        """Computed once a window."""
        if isinstance(self._gpu, Unavailable):
            null = Quantity(window=window.name, method=FUSED, scope=SCOPE, reasons=(self._gpu.reason,))
            return BoardEnergy({METRIC: null}, {})
        if self._gpu is None or not self._ended:
            raise UsageError("the energy of a GPU is known once the session has ended", hint="ask after the with block")
        if window.name not in self._board:
            idles = (self._windows.get(IDLE_BEFORE), self._windows.get(IDLE_AFTER))
            later = (each.name for each in self.windows if each.begin_ns >= window.end_ns and each.name != IDLE_AFTER)
            followed_by = next(later, None)
            self._board[window.name] = self._gpu.energy(window, *idles, self._profile, self.begin_ns, followed_by)
        return self._board[window.name]

    def _read_gpu_counter(self) -> None:
        if self._gpu is not None and not isinstance(self._gpu, Unavailable):
            self._gpu.read_counter()

    def _read_edge(self) -> _Edge:
        own_s = own_cpu_s() if self._node.is_there else 0.0
        return _Edge(read_busy_time(self._root), self._node.read(), own_s)


def _device_memory(gpu: GpuSampler | Unavailable, windows: str) -> Quantity:
    method = "nvml-polled"
    if isinstance(gpu, Unavailable):
        return Quantity(window=windows, method=method, scope="device", reasons=(gpu.reason,))
    peak, own = gpu.peak_memory_bytes()
    scope = "process" if own else "device"
    if peak is None:
        reason = Reason(ReasonCode.MEMORY_UNSUPPORTED, "NVML gives no memory reading for this device")
        return Quantity(window=windows, method=method, scope=scope, reasons=(reason,))
    return Quantity(value=float(peak), window=windows, method=method, scope=scope, valid=True)
