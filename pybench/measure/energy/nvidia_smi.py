# SPDX-License-Identifier: Apache-2.0
"""GPU power from `nvidia-smi`, only where NVML cannot be opened or tells no power: labelled, and with wide bounds.

A child process prints a line every 0.1 s or more (`--query-gpu=... --loop-ms=N`); a thread stamps each line on the raw
clock as it arrives. There is no energy counter and there are no driver samples, so the energy is a trapezoid over what
was polled, and its uncertainty has to cover how late a line may be:

    u_edges    = sqrt(2) * D * (highest - lowest power around the window) / sqrt(3)
    u_sampling = s * dt * sqrt(n / 6)             s^2 = variance of the difference of two neighbours / 2
    u_within   = sqrt(u_edges^2 + u_sampling^2)
    u_absolute = sqrt(u_within^2 + (0.05 E)^2 / 3)

D bounds the delay: a poll, the sensor's update (0.1 s) and the way through the pipe (0.1 s); for the averaging fields
another second. Fields that this nvidia-smi does not know are left out; `[N/A]` and the like are missing, never 0.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import hypot, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pybench.catalogue.cautions import Caution, CautionCode
from pybench.measure.energy.gpu import METRIC, BoardEnergy
from pybench.measure.energy.integration import BOARD_GAIN, SCOPE
from pybench.measure.energy.plain_methods import WANTED_RELATIVE, trapezoid_j
from pybench.measure.energy.profile import SensorProfile
from pybench.measure.energy.sampler import Columns, Unavailable
from pybench.measure.energy.trace import PolledChannel, StateChannel, Trace
from pybench.measure.quantity import Quantity
from pybench.measure.timing.clock import NANOSECONDS_PER_SECOND, monotonic_ns
from pybench.measure.timing.windows import Window

PROGRAM = "nvidia-smi"
SHORTEST_INTERVAL_S = 0.1  # s: a query takes some ms of CPU in another process, beside the work
UPDATE_S, PIPE_S = 0.1, 0.1  # s: bounds, see above
AVERAGING_S = 1.0  # s: NVML's documented averaging window
GAP_INTERVALS = 5.0
BURST_SHARE = 0.2  # of an interval: lines nearer than this came out of a buffer, and their stamps mean nothing
ANSWER_S = 10.0  # s: loading the driver's state takes seconds where persistence mode is off

_LABELS = {"power.draw.instant": "instant", "power.draw": "draw", "power.draw.average": "average"}
_REASONS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")  # the newer name, then the older
_FIELDS = (*_LABELS, "power.limit", "clocks.sm", "clocks.mem", "temperature.gpu", "memory.used", *_REASONS)
_MEBIBYTE = 1 << 20
_UNKNOWN_FIELD = re.compile(r'Field "([^"]+)" is not a valid field')


@dataclass(frozen=True, slots=True)
class ListedGpu:
    """One line of the list of GPUs."""

    uuid: str
    name: str
    driver: str


def list_gpus() -> list[ListedGpu] | Unavailable:
    """Every GPU that nvidia-smi knows."""
    answer = _ask(["uuid", "name", "driver_version"])
    if isinstance(answer, Unavailable):
        return answer
    rows = [[cell.strip() for cell in line.split(",")] for line in answer.splitlines() if line.strip()]
    return [ListedGpu(*row) for row in rows if len(row) == 3]


def open_nvidia_smi(uuid: str, interval_s: float) -> NvidiaSmiSampler | Unavailable:
    """The GPU with this UUID, read through nvidia-smi."""
    listed = list_gpus()
    if isinstance(listed, Unavailable):
        return listed
    found = next((gpu for gpu in listed if gpu.uuid == uuid), None)
    if found is None:
        return Unavailable(f"device_not_found: nvidia-smi knows no device {uuid}")
    known = _known_fields(uuid)
    if isinstance(known, Unavailable):
        return known
    fields, first = known
    powers = [name for name in _LABELS if np.isfinite(first.get(name, np.nan))]
    if not powers:
        return Unavailable("power_unsupported: nvidia-smi tells no power of this device")
    return NvidiaSmiSampler(found, fields, powers[0], max(interval_s, SHORTEST_INTERVAL_S))


def parse_number(cell: str) -> float:
    """A number as nvidia-smi prints it without units, or a bit mask in hexadecimal; NaN for `[N/A]` and all else."""
    text = cell.strip()
    try:
        return float(int(text, 16)) if text.startswith("0x") else float(text)
    except ValueError:
        return float("nan")


def _command(fields: Sequence[str], uuid: str | None) -> list[str]:
    chosen = [] if uuid is None else [f"--id={uuid}"]
    return [PROGRAM, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits", *chosen]


def _ask(fields: Sequence[str], uuid: str | None = None) -> str | Unavailable:
    """One answer's text."""
    if shutil.which(PROGRAM) is None:
        return Unavailable("nvidia_smi_absent: no nvidia-smi on PATH")
    try:
        done = subprocess.run(_command(fields, uuid), capture_output=True, text=True, timeout=ANSWER_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Unavailable(f"nvidia_smi_failed: {error}")
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip() or f"exit status {done.returncode}"
        return Unavailable(f"nvidia_smi_failed: {said}")
    return done.stdout


def _known_fields(uuid: str) -> tuple[list[str], dict[str, float]] | Unavailable:
    """The fields that this nvidia-smi knows, and what it says of them now."""
    fields = list(_FIELDS)
    while True:
        answer = _ask(fields, uuid)
        if not isinstance(answer, Unavailable):
            return fields, _parse_line(fields, answer.strip()) or {}
        unknown = set(_UNKNOWN_FIELD.findall(answer.reason)) & set(fields)
        if not unknown or len(unknown) == len(fields):
            return answer
        fields = [name for name in fields if name not in unknown]


def _parse_line(fields: Sequence[str], line: str) -> dict[str, float] | None:
    """The numbers of one line; None for a line that is not a whole row."""
    cells = line.split(",")
    if len(cells) != len(fields):
        return None
    return {name: parse_number(cell) for name, cell in zip(fields, cells, strict=True)}


@dataclass
class _Lines:
    """What the reading thread has seen so far; guarded by `lock`."""

    lock: threading.Condition = field(default_factory=threading.Condition)
    times_ns: list[int] = field(default_factory=list)
    rows: list[dict[str, float]] = field(default_factory=list)
    malformed: int = 0
    ended: bool = False


class NvidiaSmiSampler:
    """Polls one board through a child process. Keeps `sampler.Sampler`."""

    def __init__(self, gpu: ListedGpu, fields: list[str], power: str, interval_s: float) -> None:
        self._gpu, self._fields, self._power, self._interval_s = gpu, fields, power, interval_s
        self._lines = _Lines()
        self._child: subprocess.Popen[str] | None = None
        self._thread: threading.Thread | None = None
        self._exit_status: int | None = None

    @property
    def uuid(self) -> str:
        return self._gpu.uuid

    @property
    def method(self) -> str:
        return f"nvidia-smi-{_LABELS[self._power]}"

    def start(self) -> None:
        command = [*_command(self._fields, self.uuid), f"--loop-ms={round(self._interval_s * 1000)}"]
        # Should this process be killed, the child's next line meets a closed pipe, and SIGPIPE ends it.
        self._child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._thread = threading.Thread(target=self._read, name="nvidia-smi", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Waits for the line after now, so that the last window is covered, then ends the child."""
        if self._child is None or self._thread is None:
            return
        lines, asked_ns = self._lines, monotonic_ns()
        with lines.lock:
            lines.lock.wait_for(
                lambda: lines.ended or (lines.times_ns and lines.times_ns[-1] > asked_ns), 3 * self._interval_s + 1
            )
            ended_by_itself = lines.ended
        self._child.terminate()
        status = self._child.wait()
        self._exit_status = status if ended_by_itself else None
        self._thread.join()
        if self._child.stdout is not None:
            self._child.stdout.close()
        self._child = None

    def read_counter(self) -> None:
        """There is none."""

    def track_counter(self, seconds: float) -> None:
        """There is none."""

    def energy(
        self, window: Window, before: Window | None, after: Window | None, profile: SensorProfile, origin_ns: int
    ) -> BoardEnergy:
        """The trapezoid; idle windows and the sensor's profile are of no use to it."""
        quantity, parts = self._integrate(window)
        budget = {
            "window": window.name,
            "begin_s": (window.begin_ns - origin_ns) * 1e-9,
            "end_s": (window.end_ns - origin_ns) * 1e-9,
            "iterations": window.iterations,
            "method": self.method,
            "scope": SCOPE,
            "energy_j": quantity.value,
            "u_within_j": quantity.u_standard,
            "u_absolute_j": quantity.u_absolute,
            "parts_j": parts,
            "valid": bool(quantity.valid),
            "reasons": list(quantity.reasons),
            "plain_j": {},
            "idle_before_w": None,
            "idle_after_w": None,
        }
        return BoardEnergy({METRIC: quantity}, budget)

    def channels(self, origin_ns: int) -> Mapping[str, Columns]:
        times_ns, rows = self._table()
        time_s = (times_ns - origin_ns) / NANOSECONDS_PER_SECOND
        polled = {f"power_{label}_w": rows[name] for name, label in _LABELS.items()}
        return {
            "power_polled": {"call_s": np.full(len(time_s), np.nan), "return_s": time_s, **polled},
            "clocks": {
                "time_s": time_s,
                "sm_clock_mhz": rows["clocks.sm"],
                "memory_clock_mhz": rows["clocks.mem"],
                "temperature_c": rows["temperature.gpu"],
                "throttle_reasons": self._throttle_reasons(rows),
                "power_limit_w": rows["power.limit"],
                "memory_used_bytes": rows["memory.used"] * _MEBIBYTE,
            },
        }

    def states(self) -> StateChannel:
        """Processes are not asked for: listing them is a query of its own."""
        times_ns, rows = self._table()
        return StateChannel(times_ns, self._throttle_reasons(rows), np.full(len(times_ns), np.nan))

    def peak_memory_bytes(self) -> tuple[int | None, bool]:
        used = self._table()[1]["memory.used"]
        used = used[np.isfinite(used)]
        return (int(used.max()) * _MEBIBYTE if len(used) else None), False

    def cautions(self, begin_ns: int, end_ns: int, profile: SensorProfile) -> list[Caution]:
        return [Caution(CautionCode.ENERGY_FROM_NVIDIA_SMI, f"{self.method} every {self._interval_s:g} s", METRIC)]

    def facts(self) -> dict[str, Any]:
        times_ns, rows = self._table()

        def first(name: str) -> float | None:
            known = rows[name][np.isfinite(rows[name])]
            return float(known[0]) if len(known) else None

        return {
            "power_limit_w": first("power.limit"),
            "sm_clock_mhz": first("clocks.sm"),
            "memory_clock_mhz": first("clocks.mem"),
            "uuid": self.uuid,
            "name": self._gpu.name,
            "driver_version": self._gpu.driver,
            "power_source": self.method,
            "nvidia_smi_fields": self._fields,
            "nvidia_smi_lines": len(times_ns),
            "nvidia_smi_malformed_lines": self._lines.malformed,
            "nvidia_smi_exit_status": self._exit_status,
        }

    def _read(self) -> None:
        lines = self._lines
        stream = None if self._child is None else self._child.stdout
        for line in stream or ():
            now_ns = monotonic_ns()
            row = _parse_line(self._fields, line)
            with lines.lock:
                if row is None:
                    lines.malformed += 1
                else:
                    lines.times_ns.append(now_ns)
                    lines.rows.append(row)
                lines.lock.notify_all()
        with lines.lock:
            lines.ended = True
            lines.lock.notify_all()

    def _table(self) -> tuple[NDArray[np.int64], dict[str, NDArray[np.float64]]]:
        """All rows so far as columns; a field that is not known is all NaN."""
        with self._lines.lock:
            times_ns = np.array(self._lines.times_ns, np.int64)
            rows = list(self._lines.rows)
        return times_ns, {name: np.array([row.get(name, np.nan) for row in rows], float) for name in _FIELDS}

    def _throttle_reasons(self, rows: dict[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        newer, older = (rows[name] for name in _REASONS)
        return np.where(np.isfinite(newer), newer, older)

    def _integrate(self, window: Window) -> tuple[Quantity, dict[str, float]]:
        times_ns, rows = self._table()
        known = np.isfinite(rows[self._power])
        times_ns, power_w = times_ns[known], rows[self._power][known]
        channel = Trace(polled=PolledChannel(times_ns, power_w, power_w))
        edges = (np.array([window.begin_ns]), np.array([window.end_ns]))
        energy_j = float(trapezoid_j("instant-trapezoid", channel, *edges)[0])
        if not np.isfinite(energy_j):
            reason = "not_covered: nvidia-smi told no power before, or none after the window"
            return Quantity(window=window.name, method=self.method, scope=SCOPE, reasons=(reason,)), {}
        delay_s = self._interval_s + UPDATE_S + PIPE_S + (0.0 if self._power == "power.draw.instant" else AVERAGING_S)
        margin_ns = round((delay_s + self._interval_s) * NANOSECONDS_PER_SECOND)
        near = (times_ns >= window.begin_ns - margin_ns) & (times_ns <= window.end_ns + margin_ns)
        parts = _parts_j(power_w[near], delay_s, window.duration_s)
        within_j = hypot(*parts.values())
        absolute_j = hypot(within_j, BOARD_GAIN * energy_j / sqrt(3))
        reasons = _doubts(np.diff(times_ns[near]) * 1e-9, self._interval_s)
        if within_j > WANTED_RELATIVE * abs(energy_j):
            reasons += (f"window_too_short: standard uncertainty {within_j:.3g} J of {energy_j:.3g} J",)
        quantity = Quantity(
            value=energy_j, window=window.name, u_standard=within_j, u_absolute=absolute_j, method=self.method,
            scope=SCOPE, valid=not reasons, reasons=reasons,
        )  # fmt: skip
        return quantity, parts


def _parts_j(power_w: NDArray[np.float64], delay_s: float, length_s: float) -> dict[str, float]:
    steps = np.diff(power_w)
    spacing_s = length_s / max(1, len(steps))
    return {
        "edges": sqrt(2 / 3) * delay_s * float(np.ptp(power_w)),
        "sampling": sqrt(float(np.mean(steps**2)) / 2 * len(steps) / 6) * spacing_s,
    }


def _doubts(spacings_s: NDArray[np.float64], interval_s: float) -> tuple[str, ...]:
    reasons: tuple[str, ...] = ()
    if np.any(spacings_s > GAP_INTERVALS * interval_s):
        reasons += (f"gap: nvidia-smi was silent for {spacings_s.max():.3g} s",)
    if np.count_nonzero(spacings_s < BURST_SHARE * interval_s) > len(spacings_s) / 4:
        reasons += ("lines_in_bursts: nvidia-smi's lines came out of a buffer, so their times are not known",)
    return reasons
