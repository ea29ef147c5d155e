# SPDX-License-Identifier: Apache-2.0
"""One GPU while it is measured: found by UUID, sampled by the C++ threads, its channels in SI units.

A GPU that cannot be measured is no error: `open_gpu` then gives an `Unavailable` with the reason. It sets nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pybench import _native
from pybench.measure.clock import NANOSECONDS_PER_SECOND
from pybench.measure.trace import CounterChannel, PolledChannel, SampleChannel, StateChannel, Trace

Columns = dict[str, NDArray[Any]]

# CPU time of one call on an H200 (driver 580): energy counter 3.7 ms, which the driver spins; process list 0.07 ms;
# every other 0.01 to 0.04 ms.
STATE_INTERVAL_NS = 200_000_000  # clocks, temperature and memory move slowly: 0.1 % of a core
COUNTER_INTERVAL_S = 2.0  # 0.2 % of a core; windows read it at their edges, where it matters
RESERVED_NS = 600_000_000_000  # 10 min of rows: a usual run; a longer one grows in the sampling thread
_MILLI = 1e-3

# NVML's clocks event reasons that lower the clocks for heat or power (nvml.h, nvmlClocksEventReasons).
THROTTLE_BITS = {
    0x04: "software power cap",
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Why something cannot be measured here: a `code: detail` text."""

    reason: str


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU that NVML knows."""

    uuid: str
    name: str


@dataclass(frozen=True, slots=True)
class Gpus:
    """The GPUs of this machine and their driver; none, with `reason`, where NVML cannot be used."""

    driver: str | None
    gpus: tuple[Gpu, ...]
    reason: str | None


def gpus(library: str | None = None) -> Gpus:
    """What NVML knows, in its own order. `library`: a path in place of the driver's own."""
    nvml = _native.open_nvml(library or "")
    if not nvml.available:
        return Gpus(None, (), f"nvml_unavailable: {nvml.reason}")
    return Gpus(nvml.driver_version or None, tuple(Gpu(device.uuid, device.name) for device in nvml.devices()), None)


def open_gpu(
    uuid: str, interval_s: float, library: str | None, counter_interval_s: float = COUNTER_INTERVAL_S
) -> GpuSampler | Unavailable:
    """The GPU with this UUID, not yet sampled. `library`: a path in place of the driver's own.

    `interval_s`: between polls of the power fields; the driver's own samples come whatever it is.
    """
    nvml = _native.open_nvml(library or "")
    if not nvml.available:
        return Unavailable(f"nvml_unavailable: {nvml.reason}")
    devices = nvml.devices()
    found = next((device for device in devices if device.uuid == uuid), None)
    if found is None:
        present = ", ".join(device.uuid for device in devices) or "none"
        return Unavailable(f"device_not_found: NVML knows no device {uuid} (present: {present})")
    return GpuSampler(nvml, found, interval_s, counter_interval_s)


class GpuSampler:
    """Samples one device between `start` and `stop`. Channels can be read at any time."""

    def __init__(
        self, nvml: _native.NvmlLibrary, device: _native.NvmlDevice, interval_s: float, counter_interval_s: float
    ) -> None:
        power_ns, counter_ns = (round(each * NANOSECONDS_PER_SECOND) for each in (interval_s, counter_interval_s))
        self._nvml = nvml
        self._device = device
        self._sampler = _native.PowerSampler(device, power_ns, counter_ns, STATE_INTERVAL_NS, RESERVED_NS)

    @property
    def uuid(self) -> str:
        return str(self._device.uuid)

    @property
    def name(self) -> str:
        return str(self._device.name)

    @property
    def driver_version(self) -> str | None:
        return str(self._nvml.driver_version) or None

    def other_processes(self) -> list[int]:
        """Ids of the processes that compute on the board now, but for this one; none where NVML does not tell."""
        _, processes = self._device.processes()
        return [process.process_id for process in processes if process.process_id != os.getpid()]

    def start(self) -> None:
        self._sampler.start()

    def stop(self) -> None:
        self._sampler.stop()

    def facts(self) -> dict[str, Any]:
        """What was found, for environment.json; power limit and clocks as first read, null where NVML gives none."""
        states = self._sampler.states()

        def first(name: str, factor: float) -> float | None:
            column = states[name]
            return float(column[0]) * factor if len(column) and np.isfinite(column[0]) else None

        return {
            "power_limit_w": first("power_limit_mw", _MILLI),
            "sm_clock_mhz": first("sm_clock_mhz", 1.0),
            "memory_clock_mhz": first("memory_clock_mhz", 1.0),
            "uuid": self._device.uuid,
            "name": self._device.name,
            "driver_version": self._nvml.driver_version,
            "nvml_library": self._nvml.path,
            "missed_ticks": self._sampler.missed_ticks,
            "sampler_failure": self._sampler.failure or None,
            "power_samples_code": self._sampler.samples_code,
        }

    def read_counter(self) -> None:
        """One reading of the energy counter, now: 3 to 16 ms, for the edges of windows."""
        self._sampler.read_counter()

    def trace(self) -> Trace:
        """Everything read so far that energy is computed from."""
        samples, polled = self._sampler.driver_samples(), self._sampler.polled()
        counter, states = self._sampler.counter(), self._sampler.states()
        return Trace(
            samples=SampleChannel(samples["time_ns"], samples["power_mw"] * _MILLI),
            counter=CounterChannel(counter["begin_ns"], counter["end_ns"], counter["energy_mj"] * _MILLI),
            polled=PolledChannel(
                (polled["begin_ns"] + polled["end_ns"]) // 2,
                polled["instant_mw"] * _MILLI,
                polled["average_mw"] * _MILLI,
            ),
            states=StateChannel(states["time_ns"], states["throttle_reasons"], states["process_count"]),
        )

    def channels(self, origin_ns: int) -> Mapping[str, Columns]:
        """Every channel as read, in SI units, times in s after `origin_ns` of the raw clock. Missing is NaN."""

        def seconds(times_ns: NDArray[np.int64]) -> NDArray[np.float64]:
            after: NDArray[np.float64] = (times_ns - origin_ns) / NANOSECONDS_PER_SECOND
            return after

        samples, polled = self._sampler.driver_samples(), self._sampler.polled()
        counter, states = self._sampler.counter(), self._sampler.states()
        return {
            "power_samples": {
                "time_s": seconds(samples["time_ns"]),
                "realtime_us": samples["realtime_us"],
                "power_w": samples["power_mw"] * _MILLI,
            },
            "power_polled": {
                "call_s": seconds(polled["begin_ns"]),
                "return_s": seconds(polled["end_ns"]),
                "power_instant_w": polled["instant_mw"] * _MILLI,
                "power_average_w": polled["average_mw"] * _MILLI,
                "instant_code": polled["instant_mw_code"],
                "average_code": polled["average_mw_code"],
            },
            "energy_counter": {
                "call_s": seconds(counter["begin_ns"]),
                "return_s": seconds(counter["end_ns"]),
                "energy_j": counter["energy_mj"] * _MILLI,
                "energy_code": counter["energy_mj_code"],
            },
            "clocks": {
                "time_s": seconds(states["time_ns"]),
                "sm_clock_mhz": states["sm_clock_mhz"],
                "memory_clock_mhz": states["memory_clock_mhz"],
                "temperature_c": states["temperature_c"],
                "throttle_reasons": states["throttle_reasons"],
                "power_limit_w": states["power_limit_mw"] * _MILLI,
                "memory_used_bytes": states["memory_used_bytes"],
                "process_count": states["process_count"],
            },
        }

    def throttled(self, begin_ns: int, end_ns: int) -> list[str]:
        """In words, what lowered the clocks between two times."""
        reasons = self._states_between("throttle_reasons", begin_ns, end_ns).astype(np.int64)
        return [words for bit, words in THROTTLE_BITS.items() if np.any(reasons & bit)]

    def most_processes(self, begin_ns: int, end_ns: int) -> int:
        """The largest number of processes that held the device between two times; 0 where NVML does not tell."""
        return int(self._states_between("process_count", begin_ns, end_ns).max(initial=0))

    def peak_memory_bytes(self) -> tuple[int | None, bool]:
        """The largest device memory seen, and whether it is this process's own (True) or everyone's (False)."""
        states = self._sampler.states()
        for column, own in (("own_memory_bytes", True), ("memory_used_bytes", False)):
            seen = states[column][np.isfinite(states[column])]
            if len(seen):
                return int(seen.max()), own
        return None, False

    def _states_between(self, column: str, begin_ns: int, end_ns: int) -> NDArray[np.float64]:
        """The known values of a column between two times, one interval wider, so that a short window sees one too."""
        states = self._sampler.states()
        inside = (states["time_ns"] >= begin_ns - STATE_INTERVAL_NS) & (states["time_ns"] <= end_ns + STATE_INTERVAL_NS)
        values: NDArray[np.float64] = states[column][inside]
        return values[np.isfinite(values)]
