# SPDX-License-Identifier: Apache-2.0
"""One GPU while it is measured: found by UUID, sampled by the C++ threads, its channels in SI units.

A GPU that cannot be measured is no error: `open_gpu` then gives an `Unavailable` with the reason. It sets nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pybench import _native
from pybench.catalogue.cautions import Caution, CautionCode
from pybench.catalogue.reasons import Reason, ReasonCode
from pybench.measure.board import nvml
from pybench.measure.energy.gpu import METRIC, BoardEnergy, board_energy
from pybench.measure.energy.profile import SensorProfile
from pybench.measure.energy.trace import CounterChannel, PolledChannel, SampleChannel, StateChannel, Trace
from pybench.measure.quantity import Quantity
from pybench.measure.timing.clock import NANOSECONDS_PER_SECOND, gaps_ns
from pybench.measure.timing.windows import Window

# CPU time of one call on an H200 (driver 580): energy counter 3.7 ms, which the driver spins; process list 0.07 ms;
# every other 0.01 to 0.04 ms.
STATE_INTERVAL_NS = 200_000_000  # clocks, temperature and memory move slowly: 0.1 % of a core
# Visits of the counter's ticks. Twice as many cost 0.1 % of a core more and make no window better
# (bench/results/energy-sampler.md).
COUNTER_INTERVAL_S = 10.0
RESERVED_NS = 600_000_000_000  # 10 min of rows: a usual run; a longer one grows in the sampling thread
# The polled fields, in the order of kPowerFields of native/power_fields.hpp: of the GPU, its memory, its module.
POLLED_FIELDS = ("instant", "average", "memory_instant", "memory_average", "module_instant", "module_average")
# Milli- or nano- in the next unit: a division gives the float nearest to the decimal, a product often its neighbour.
_THOUSAND = 1000
_PERCENT = 1e-2
# NVML's utilisation is of its last sample period, 1/6 to 1 s long (nvml.h): so much later none of it was before.
UTILISATION_PERIOD_NS = NANOSECONDS_PER_SECOND


Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Why something cannot be measured here."""

    reason: Reason


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
    opened = nvml.open_nvml(library)
    if opened.reason is not None:
        return Gpus(None, (), str(Reason(ReasonCode.NVML_UNAVAILABLE, opened.reason)))
    return Gpus(opened.driver, tuple(Gpu(board.uuid, board.name) for board in opened.boards), None)


def open_gpu(
    uuid: str, interval_s: float, library: str | None, counter_interval_s: float = COUNTER_INTERVAL_S
) -> GpuSampler | Unavailable:
    """The GPU with this UUID through NVML, not yet sampled. `library`: a path in place of the driver's own.

    `interval_s`: between polls of the power fields; the driver's own samples come whatever it is.
    """
    opened = _native.open_nvml(library or "")
    if not opened.available:
        return Unavailable(Reason(ReasonCode.NVML_UNAVAILABLE, opened.reason))
    devices = opened.devices()
    found = next((device for device in devices if device.uuid == uuid), None)
    if found is None:
        present = ", ".join(device.uuid for device in devices) or "none"
        return Unavailable(Reason(ReasonCode.DEVICE_NOT_FOUND, f"NVML has no device {uuid} (present: {present})"))
    return GpuSampler(opened, found, interval_s, counter_interval_s)


class GpuSampler:
    """Samples one device through NVML, in C++ threads, between `start` and `stop`.

    What was read can be asked for at any time.
    """

    def __init__(
        self, library: _native.NvmlLibrary, device: _native.NvmlDevice, interval_s: float, counter_interval_s: float
    ) -> None:
        power_ns, counter_ns = (round(each * NANOSECONDS_PER_SECOND) for each in (interval_s, counter_interval_s))
        self._library = library
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
        return str(self._library.driver_version) or None

    def other_processes(self) -> list[int]:
        """Ids of the processes that compute on the board now, but for this one; none where NVML does not tell.

        In a container that does not show how the host counts processes, one that may be this one is among them.
        """
        listed = [process.process_id for process in self._device.processes()[1]]
        own = _native.OwnProcess()
        return [each for each in listed if not own.of(each, listed)]

    def start(self) -> None:
        self._sampler.start()

    def stop(self) -> None:
        """Ends sampling, with a last reading of everything. Does nothing where it was never started."""
        self._sampler.stop()

    def facts(self) -> dict[str, Any]:
        """What was found, for environment.json; power limit and clocks as first read, null where NVML gives none."""
        states = self._sampler.states()

        def first(name: str, divisor: float) -> float | None:
            column = states[name]
            return float(column[0]) / divisor if len(column) and np.isfinite(column[0]) else None

        return {
            "power_limit_w": first("power_limit_mw", _THOUSAND),
            "sm_clock_mhz": first("sm_clock_mhz", 1.0),
            "memory_clock_mhz": first("memory_clock_mhz", 1.0),
            "uuid": self._device.uuid,
            "name": self._device.name,
            "driver_version": self._library.driver_version,
            "nvml_library": self._library.path,
            "missed_ticks": self._sampler.missed_ticks,
            "sampler_failure": self._sampler.failure or None,
            **self._drain_facts(),
            **self._tick_facts(),
        }

    def _drain_facts(self) -> dict[str, Any]:
        drains, samples = self._sampler.drains(), self._sampler.driver_samples()["time_ns"]
        gap_s = float(np.diff(samples).max()) / NANOSECONDS_PER_SECOND if len(samples) > 1 else None
        return {
            "power_samples_code": self._sampler.samples_code,
            "power_samples_lost": int(np.count_nonzero(drains["lost"])),
            "power_samples_longest_gap_s": gap_s,
            "realtime_steps_s": [float(each) / NANOSECONDS_PER_SECOND for each in drains["stepped_ns"] if each],
        }

    def _tick_facts(self) -> dict[str, float | None]:
        grid = self._sampler.tick_grid
        if grid is None:
            return {"counter_tick_s": None, "counter_tick_known_within_s": None}
        period_ns = (grid.shortest_period_ns + grid.longest_period_ns) / 2
        known_ns = (grid.latest.high_ns - grid.latest.low_ns) / 2
        return {
            "counter_tick_s": period_ns / NANOSECONDS_PER_SECOND,
            "counter_tick_known_within_s": known_ns / NANOSECONDS_PER_SECOND,
        }

    def read_counter(self) -> None:
        """One reading of the energy counter, now: 3 to 16 ms, for the edges of windows."""
        self._sampler.read_counter()

    def track_counter(self, seconds: float) -> None:
        """Finds the counter's ticks and reads around each for so long; afterwards seldom, keeping their phase."""
        self._sampler.track_counter(round(seconds * NANOSECONDS_PER_SECOND))

    def energy(
        self,
        window: Window,
        before: Window | None,
        after: Window | None,
        profile: SensorProfile,
        origin_ns: int,
        followed_by: str | None,
    ) -> BoardEnergy:
        """The board's energy in a window; the others as in `board_energy`."""
        return board_energy(self.trace(), window, before, after, profile, origin_ns, followed_by=followed_by)

    def cautions(self, begin_ns: int, end_ns: int, profile: SensorProfile) -> list[Caution]:
        """Doubts about the energy between two times that come from how it was sampled."""
        cautions = []
        if profile.origin == "assumed":
            cautions.append(Caution(CautionCode.SENSOR_ASSUMED, self.uuid, METRIC))
        drains = self._sampler.drains()
        # A drain tells of the time since the one before it, so the first one after the window counts too.
        first, last = np.searchsorted(drains["time_ns"], [begin_ns, end_ns])
        lost, stepped = (drains[column][first : last + 1] for column in ("lost", "stepped_ns"))
        if np.any(lost):
            detail = f"{np.count_nonzero(lost)} times the driver's buffer had run over before it was read"
            cautions.append(Caution(CautionCode.POWER_SAMPLES_LOST, detail, METRIC))
        if np.any(stepped):
            steps = ", ".join(f"{step / NANOSECONDS_PER_SECOND:+.3g} s" for step in stepped[stepped != 0])
            cautions.append(Caution(CautionCode.REALTIME_STEPPED, f"realtime was stepped by {steps}", METRIC))
        return cautions

    def trace(self) -> Trace:
        """Everything read so far that energy is computed from."""
        samples, polled, counter = self._sampler.driver_samples(), self._sampler.polled(), self._sampler.counter()
        return Trace(
            samples=SampleChannel(samples["time_ns"], samples["power_mw"] / _THOUSAND),
            counter=CounterChannel(counter["begin_ns"], counter["end_ns"], counter["energy_mj"] / _THOUSAND),
            polled=PolledChannel(
                (polled["begin_ns"] + polled["end_ns"]) // 2,
                polled["instant_mw"] / _THOUSAND,
                polled["average_mw"] / _THOUSAND,
            ),
            states=self.states(),
        )

    def states(self) -> StateChannel:
        """The board's state over time: what lowered its clocks, and how many processes held it."""
        states = self._sampler.states()
        return StateChannel(states["time_ns"], states["throttle_reasons"], states["process_count"])

    def channels(self, origin_ns: int) -> Mapping[str, Columns]:
        """Every channel as read, in SI units, as the tables of a run have it (docs/formats/rundir.md). Missing is NaN.

        origin_ns: of the raw clock; times are s after it, and the first gap of a channel counts from it
        """

        def seconds(times_ns: NDArray[np.int64]) -> NDArray[np.float64]:
            after: NDArray[np.float64] = (times_ns - origin_ns) / NANOSECONDS_PER_SECOND
            return after

        samples, drains, polled = self._sampler.driver_samples(), self._sampler.drains(), self._sampler.polled()
        counter, states, processes = self._sampler.counter(), self._sampler.states(), self._sampler.processes()
        return {
            "power_samples": {
                "gap_ns": gaps_ns(samples["time_ns"], samples["time_ns"], origin_ns),
                "power_w": samples["power_mw"] / _THOUSAND,
            },
            "power_drains": {
                "time_s": seconds(drains["time_ns"]),
                "realtime_us": drains["realtime_ns"] / _THOUSAND,
                "anchor_uncertainty_s": drains["anchor_uncertainty_ns"] / NANOSECONDS_PER_SECOND,
                "samples": drains["samples"],
                "lost": drains["lost"],
                "realtime_step_s": drains["stepped_ns"] / NANOSECONDS_PER_SECOND,
                "code": drains["code"],
            },
            "power_polled": {
                "gap_ns": gaps_ns(polled["begin_ns"], polled["end_ns"], origin_ns),
                "call_ns": polled["end_ns"] - polled["begin_ns"],
                **_field_columns(polled, drains),
            },
            "energy_counter": {
                "gap_ns": gaps_ns(counter["begin_ns"], counter["end_ns"], origin_ns),
                "call_ns": counter["end_ns"] - counter["begin_ns"],
                "energy_j": counter["energy_mj"] / _THOUSAND,
                "energy_code": counter["energy_mj_code"],
            },
            "clocks": {"time_s": seconds(states["time_ns"]), **_state_columns(states)},
            "gpu_processes": {
                "time_s": seconds(processes["time_ns"]),
                "process_id": processes["process_id"],
                "used_bytes": processes["used_bytes"],
                "own": processes["own"],
                "code": processes["process_id_code"],
                "used_code": processes["used_bytes_code"],
            },
        }

    def utilisation(self, window: Window) -> Quantity:
        """Share of time in which a kernel ran: the mean of the readings whose sample period is inside the window."""
        states = self._sampler.states()
        times_ns, codes = states["time_ns"], states["utilisation_percent_code"]
        inside = (times_ns >= window.begin_ns + UTILISATION_PERIOD_NS) & (times_ns <= window.end_ns)
        seen = states["utilisation_percent"][inside & (codes == 0)] * _PERCENT
        method = "nvml-utilisation"
        if not len(seen):
            unanswered = np.count_nonzero(inside)
            detail = (
                f"NVML answered none of {unanswered} readings inside the window"
                if unanswered
                else f"no sample period, which is up to 1 s, fits into the window of {window.duration_s:.3g} s"
            )
            reason = Reason(ReasonCode.UTILISATION_UNREAD, detail)
            return Quantity(window=window.name, method=method, scope="board", reasons=(reason,))
        return Quantity(
            value=float(seen.mean()), window=window.name, samples=len(seen), method=method, scope="board", valid=True
        )

    def peak_memory_bytes(self) -> tuple[int | None, bool]:
        """The largest device memory seen, and whether it is this process's own (True) or everyone's (False)."""
        states = self._sampler.states()
        for column, own in (("own_memory_bytes", True), ("memory_used_bytes", False)):
            seen = states[column][np.isfinite(states[column])]
            if len(seen):
                return int(seen.max()), own
        return None, False


def _field_columns(polled: Columns, drains: Columns) -> Columns:
    """What each field gave, its code, and the driver's own stamp of it: us of the realtime clock after the call."""
    call_us = _realtime_us(polled["begin_ns"], drains)
    columns: Columns = {}
    for name in POLLED_FIELDS:
        stamps_us, code = polled[f"{name}_realtime_us"], polled[f"{name}_code"]
        stamped = (code == 0) & (stamps_us > 0) & (call_us > 0)
        columns[f"power_{name}_w"] = polled[f"{name}_mw"] / _THOUSAND
        columns[f"{name}_code"] = code
        columns[f"{name}_stamp_us"] = np.where(stamped, (stamps_us - call_us).astype(str), "")
    return columns


def _realtime_us(times_ns: NDArray[np.int64], drains: Columns) -> NDArray[np.int64]:
    """Times of the raw clock on the realtime clock, by the drain before, or by the first; 0 before there is one."""
    if not len(drains["time_ns"]):
        return np.zeros(len(times_ns), np.int64)
    by = np.maximum(np.searchsorted(drains["time_ns"], times_ns, "right") - 1, 0)
    realtime_us: NDArray[np.int64] = (drains["realtime_ns"][by] + times_ns - drains["time_ns"][by]) // _THOUSAND
    return realtime_us


def _state_columns(states: Columns) -> Columns:
    return {
        "sm_clock_mhz": states["sm_clock_mhz"],
        "memory_clock_mhz": states["memory_clock_mhz"],
        "temperature_c": states["temperature_c"],
        "throttle_reasons": states["throttle_reasons"],
        "power_limit_w": states["power_limit_mw"] / _THOUSAND,
        "memory_used_bytes": states["memory_used_bytes"],
        "own_memory_bytes": states["own_memory_bytes"],
        "process_count": states["process_count"],
        "utilisation_ratio": states["utilisation_percent"] * _PERCENT,
    }
