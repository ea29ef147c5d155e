# SPDX-License-Identifier: Apache-2.0
"""Energy of a whole edge module in a window, from the power rails that the kernel's hwmon shows.

A rail is a voltage and a current (INA3221: W = V x A), or a power where the driver tells one. C++ reads the files at a
fixed cadence (native/rail_sampler.hpp); the module's row in the catalogue says which rails add up to the whole, so that
none is counted twice. Sources: Documentation/hwmon/ina3221.rst and sysfs-interface.rst of Linux.

Between two readings power is taken as a straight line. The gain of the shunts is not known, so `u_absolute` is null.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import hypot, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pybench import _native
from pybench.catalogue.causes import Cause
from pybench.catalogue.devices import EDGE_DEVICES, EdgeDevice
from pybench.catalogue.reasons import Reason, ReasonCode, invalidate
from pybench.errors import UnsupportedError
from pybench.measure.quantity import Quantity
from pybench.measure.timing.clock import NANOSECONDS_PER_SECOND, gaps_ns
from pybench.measure.timing.windows import Window

METRIC = "module_energy_j"
METHOD = "hwmon-rails"
INTERVAL_S = 0.05  # s: a round over four rails takes about 3 ms of waiting for I2C
RESERVED_S = 600.0  # s of rows: a usual run; a longer one grows in the sampling thread
LONGEST_GAP = 5  # intervals without a good reading, inside a window
FEWEST_UPDATES = 20  # updates of a rail in a window: its two edges are then known within 2 %
FEWEST_READINGS = 10  # of a chip, before unchanged ones say that it is frozen

_VOLT_AMPERE, _WATT = (1e-3, 1e-3), (1e-6,)  # hwmon tells mV and mA, or uW
_LABEL = re.compile(r"(in|power)(\d+)_label")


@dataclass(frozen=True, slots=True)
class Rail:
    """One power rail.

    label: its name, by the driver of its chip
    chip: the folder of the chip that measures it
    files: its voltage and its current, or its power alone
    update_s: how often the chip measures it
    """

    label: str
    chip: Path
    files: tuple[Path, ...]
    update_s: float

    @property
    def scales(self) -> tuple[float, ...]:
        """Of each file's number, to V and A, or to W."""
        return _VOLT_AMPERE if len(self.files) == 2 else _WATT

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the stored columns, one for each file."""
        name = re.sub(r"\W", "_", self.label)
        return (f"{name}_v", f"{name}_a") if len(self.files) == 2 else (f"{name}_w",)


@dataclass(frozen=True, slots=True)
class RailReadings:
    """Rounds over all rails.

    begin_ns, end_ns: int64 [n] ns
    values: float64 [n, files] in V, A or W, NaN where a read failed
    codes: int32 [n, files], 0, errno, or -1 for a torn number
    """

    begin_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    values: NDArray[np.float64]
    codes: NDArray[np.int32]


class PowerRails:
    """The rails of this machine. `device`: the module's row; None where the device tree names none that is known.

    Rails without a row are not read: no number would follow from them.
    """

    def __init__(self, root: Path = Path("/"), interval_s: float = INTERVAL_S) -> None:
        self.device = find_device(root)
        self.rails = find_rails(root)
        self._interval_s = interval_s
        paths = [str(file) for rail in self.rails for file in rail.files]
        intervals = (round(seconds * NANOSECONDS_PER_SECOND) for seconds in (interval_s, RESERVED_S))
        self._sampler = _native.RailSampler(paths, *intervals)

    def start(self) -> None:
        if self.rails and self.device is not None:
            self._sampler.start()

    def stop(self) -> None:
        """Ends sampling, with a last reading of every rail. Does nothing where it was never started."""
        self._sampler.stop()

    def readings(self) -> RailReadings:
        """Everything read so far, in SI units."""
        table = self._sampler.readings()
        scales = np.array([scale for rail in self.rails for scale in rail.scales])
        shape = (-1, max(len(scales), 1))
        codes = table["code"].reshape(shape)
        values = np.where(codes == 0, table["value"].reshape(shape) * scales, np.nan)
        begin_ns, end_ns = table["begin_ns"].reshape(shape), table["end_ns"].reshape(shape)
        return RailReadings(begin_ns[:, 0], end_ns[:, -1], values, codes)

    def energy(self, window: Window) -> Quantity | None:
        """Of the whole module, in J; None where this machine is no module that is known."""
        if self.device is None:
            return None
        scope = " + ".join(self.device.total)
        absent = set(self.device.total).difference(rail.label for rail in self.rails)
        if absent:
            reason = Reason(ReasonCode.RAIL_ABSENT, f"hwmon has no rail {', '.join(sorted(absent))}")
            return Quantity(window=window.name, method=METHOD, scope=scope, reasons=(reason,))
        readings, reasons = self.readings(), list[Reason]()
        parts = [self._of_rail(rail, readings, window) for rail in self.rails if rail.label in self.device.total]
        reasons += [reason for part in parts for reason in part.reasons]
        reasons += self._frozen(readings, window, self.device.total)
        energies = [part.value for part in parts if part.value is not None]
        if len(energies) < len(parts):
            return Quantity(window=window.name, method=METHOD, scope=scope, reasons=tuple(reasons))
        within_j = sum(part.u_standard or 0.0 for part in parts)  # a step of load is in all rails at once
        samples = min(part.samples or 0 for part in parts)
        return Quantity(
            value=sum(energies),
            window=window.name,
            u_standard=within_j,
            samples=samples,
            method=METHOD,
            scope=scope,
            valid=not invalidate(reasons),
            reasons=tuple(dict.fromkeys(reasons)),
        )

    def facts(self) -> dict[str, Any]:
        """What was found and how it was read, for environment.json."""
        readings = self.readings()
        return {
            "device": None if self.device is None else self.device.name,
            "rails": [rail.label for rail in self.rails],
            "total": [] if self.device is None else list(self.device.total),
            "interval_s": self._interval_s,
            "failed_reads": int(np.count_nonzero(readings.codes > 0)),
            "torn_reads": int(np.count_nonzero(readings.codes < 0)),
            "missed_ticks": self._sampler.missed_ticks,
            "sampler_failure": self._sampler.failure or None,
        }

    def channel(self, origin_ns: int) -> dict[str, NDArray[Any]]:
        """Every reading: gaps and lengths, from `origin_ns` of the raw clock on, then each rail's columns, with NaN."""
        readings = self.readings()
        names = (name for rail in self.rails for name in rail.columns)
        return {
            "gap_ns": gaps_ns(readings.begin_ns, readings.end_ns, origin_ns),
            "call_ns": readings.end_ns - readings.begin_ns,
            **dict(zip(names, readings.values.T, strict=False)),
        }

    def _of_rail(self, rail: Rail, readings: RailReadings, window: Window) -> Quantity:
        """The energy of one rail: the integral of the line through its good readings."""
        power_w = np.prod(readings.values[:, self._columns(rail)], axis=1)
        good = np.isfinite(power_w)
        middle_ns = (readings.begin_ns + readings.end_ns) // 2
        times_s = (middle_ns[good] - window.begin_ns) / NANOSECONDS_PER_SECOND
        end_s, power_w = window.duration_s, power_w[good]
        first, last = int(np.searchsorted(times_s, 0.0, "right")), int(np.searchsorted(times_s, end_s))
        if first == 0 or last == len(times_s):
            return Quantity(reasons=(self._uncovered(rail, readings),))
        reasons = []
        if (gap_s := float(np.diff(times_s[first - 1 : last + 1]).max())) > LONGEST_GAP * self._interval_s:
            reasons.append(Reason(ReasonCode.GAP, f"{rail.label} has no good reading for {gap_s:.3g} s"))
        grain_s = max(rail.update_s, self._interval_s)
        if end_s < FEWEST_UPDATES * grain_s:
            needed_s = FEWEST_UPDATES * grain_s
            reasons.append(Reason(ReasonCode.WINDOW_TOO_SHORT, f"{end_s:.3g} s, {rail.label} needs {needed_s:.3g} s"))
        knots_s = np.concatenate(([0.0], times_s[first:last], [end_s]))
        line_w = np.interp(knots_s, times_s, power_w)
        energy_j = float(np.trapezoid(line_w, knots_s))
        # Each edge falls anywhere in one update; between two readings a step of power may be anywhere: rectangular.
        edges_j = energy_j / end_s * rail.update_s / sqrt(6)
        steps_j = float(np.sqrt(np.sum((np.diff(line_w) * np.diff(knots_s)) ** 2) / 12))
        return Quantity(
            value=energy_j, u_standard=hypot(edges_j, steps_j), samples=last - first, reasons=tuple(reasons)
        )

    def _uncovered(self, rail: Rail, readings: RailReadings) -> Reason:
        codes = readings.codes[:, self._columns(rail)]
        if len(codes) and np.all(codes.any(axis=1)):
            return Reason(ReasonCode.RAIL_UNREADABLE, f"{rail.label} gave no number ({len(codes)} readings)")
        return Reason(ReasonCode.NOT_COVERED, f"{rail.label} was not read before and after the window")

    def _frozen(self, readings: RailReadings, window: Window, total: tuple[str, ...]) -> list[Reason]:
        """A reason for each chip with a rail of the total whose numbers are all the same in the window. One quiet
        rail may stand still, and all rails of a chip under load may not."""
        inside = (readings.begin_ns >= window.begin_ns) & (readings.end_ns <= window.end_ns)
        reasons = []
        for chip in dict.fromkeys(rail.chip for rail in self.rails if rail.label in total):
            columns = [column for rail in self.rails if rail.chip == chip for column in self._columns(rail)]
            seen = readings.values[inside][:, columns]
            seen = seen[np.isfinite(seen).all(axis=1)]
            if len(seen) >= FEWEST_READINGS and not np.ptp(seen, axis=0).any():
                detail = f"{len(seen)} readings of {chip.name} are the same"
                reasons.append(Reason(ReasonCode.RAIL_FROZEN, detail))
        return reasons

    def _columns(self, rail: Rail) -> list[int]:
        """Where the files of a rail are among all files."""
        before = sum(len(each.files) for each in self.rails[: self.rails.index(rail)])
        return list(range(before, before + len(rail.files)))


def module_energy_source(root: Path = Path("/")) -> dict[str, Any]:
    """The module that this machine is, and its rails: those of the sum, those inside them, and any others.

    Raises UnsupportedError where there is no sum.
    """
    device, labels = find_device(root), [rail.label for rail in find_rails(root)]
    if device is None and not labels:
        raise UnsupportedError(
            "hwmon shows no power rail here",
            code=Cause.NO_POWER_RAILS,
            hint=f"measure on one of these modules: {', '.join(EDGE_DEVICES)}",
        )
    if device is None:
        raise UnsupportedError(
            f"hwmon shows the rails {', '.join(labels)}, and which of them add up is not known for this machine",
            code=Cause.NO_POWER_RAILS,
            hint="add a row for this machine to pybench/catalogue/devices.py, from its maker's documentation",
        )
    absent = [label for label in device.total if label not in labels]
    if absent:
        raise UnsupportedError(
            f"{device.name}: hwmon has no rail {', '.join(absent)}",
            code=Cause.NO_POWER_RAILS,
            hint="load the driver of the power monitor (ina3221), and show /sys/class/hwmon to the container, if any",
        )
    added = {*device.total, *device.inside}
    return {
        "device": device.name,
        "total": list(device.total),
        "inside": [label for label in labels if label in device.inside],
        "other": [label for label in labels if label not in added],
    }


def find_device(root: Path) -> EdgeDevice | None:
    """The row of the module that the device tree names."""
    try:
        names = (root / "proc/device-tree/compatible").read_text().split("\0")
    except OSError:
        return None
    rows = EDGE_DEVICES.values()
    return next((row for row in rows if any(name.startswith(row.compatible) for name in names)), None)


def find_rails(root: Path) -> list[Rail]:
    """Labelled rails of hwmon that tell a power, or both a voltage and a current, and are not switched off.

    The labelled sum of an INA3221's shunt voltages has no current of its number, so it is none.
    """
    rails: dict[str, Rail] = {}
    for file in sorted((root / "sys/class/hwmon").glob("hwmon*/*_label")):
        found = _LABEL.fullmatch(file.name)
        if found is None:
            continue
        chip, number = file.parent, found[2]
        power, pair = chip / f"power{number}_input", (chip / f"in{number}_input", chip / f"curr{number}_input")
        files = (power,) if power.exists() else pair
        label = _read_text(file)
        is_off = _read_text(chip / f"in{number}_enable") == "0"
        if label and label not in rails and not is_off and all(each.exists() for each in files):
            rails[label] = Rail(label, chip, files, _update_s(chip))
    return list(rails.values())


def _update_s(chip: Path) -> float:
    """How often a chip measures all its rails, s; where it does not tell, as often as it is read."""
    text = _read_text(chip / "update_interval")
    return int(text) * 1e-3 if text.isdigit() and int(text) > 0 else INTERVAL_S


def _read_text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
