# SPDX-License-Identifier: Apache-2.0
"""What a run stored about the energy of its GPU board, typed: the budget (energy.json) and the power channels as read.

The budget of every run is read with the campaign; channels are large and read for the runs that are drawn. Format:
docs/formats/rundir.md. Nothing is computed here: `pybench.analysis.findings.joules` and `.power` do that.
"""

from __future__ import annotations

import marshal
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pybench.campaign.directory import CampaignDirectory, RunDirectory
from pybench.campaign.layout import ENERGY, ENERGY_COUNTER, ENVIRONMENT, POWER_POLLED, POWER_SAMPLES
from pybench.catalogue.reasons import Reason, reason_from_text
from pybench.errors import CorruptError

Numbers = NDArray[np.float64]

_NUMBER = frozenset({int, float})  # JSON has no other kinds, and a bool is none
# What drawing and judging need of a sensor's profile; whatever else is stored is kept.
_SENSOR_NUMBERS = ("sample_delay_s", "response_s", "counter_tick_s", "counter_delay_s")
_NUMBERS = ("begin_s", "end_s")
_NUMBERS_OR_NULL = (
    "energy_j",
    "u_within_j",
    "u_absolute_j",
    "idle_before_w",
    "idle_after_w",
    "net_j",
    "u_net_j",
    "tail_j",
    "u_tail_j",
    "tail_end_s",
)
_ONLY_WITH_IDLE = frozenset({"net_j", "u_net_j", "tail_j", "u_tail_j", "tail_end_s"})
_TEXTS = ("window", "method", "scope")
_MAPPINGS = ("parts_j", "plain_j")


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyWindow:
    """One window of energy.json. Times are seconds after the session's begin; `u_...` standard uncertainties;
    `parts_j` add in squares to `u_within_j`; `plain_j`: method -> what it says of the same window."""

    window: str
    begin_s: float
    end_s: float
    iterations: int
    method: str
    scope: str
    energy_j: float | None
    u_within_j: float | None
    u_absolute_j: float | None
    parts_j: Mapping[str, float | None]
    valid: bool
    reasons: tuple[Reason, ...]
    plain_j: Mapping[str, float | None]
    idle_before_w: float | None
    idle_after_w: float | None
    net_j: float | None = None
    u_net_j: float | None = None
    tail_j: float | None = None
    u_tail_j: float | None = None
    tail_end_s: float | None = None

    @classmethod
    def of(cls, stored: Sequence[Any]) -> EnergyWindow:
        """The values of its fields as energy.json has them, in their order."""
        values = dict(zip(cls.__slots__, stored, strict=True))
        return cls(**values | {"reasons": tuple(map(reason_from_text, values["reasons"]))})


@dataclass(frozen=True, slots=True)
class RunEnergy:
    """energy.json of one run.

    directory: of the run
    sensor: the profile as stored
    windows: those whose energy was stored
    spans: name of every window of the run -> (begin, end) in seconds after the session's begin
    power_limit_w: of the board, as the run found it; None: it was not stored
    """

    directory: RunDirectory
    sensor: Mapping[str, Any]
    windows: tuple[EnergyWindow, ...]
    spans: Mapping[str, tuple[float, float]]
    power_limit_w: float | None = None


@dataclass(frozen=True, slots=True)
class CheckedEnergy:
    """energy.json of one run, which `check_energy` found to be as it must. The fields are those of `RunEnergy`;
    `windows`: what `EnergyWindow.of` needs of each."""

    sensor: Mapping[str, Any]
    windows: tuple[tuple[Any, ...], ...]
    spans: dict[str, tuple[float, float]]
    power_limit_w: float | None


class BoardEnergies(Mapping[tuple[str, int], RunEnergy]):
    """(case id, block) -> energy.json of that run, checked when it was read, made of bytes each time it is asked for.

    A report shows one run of each case. The objects of all runs would take a third of the memory of a dataset.
    """

    def __init__(self, campaign: CampaignDirectory) -> None:
        self._campaign = campaign
        self._kept: dict[tuple[str, int], tuple[int, Mapping[str, Any], bytes]] = {}
        """(attempt, sensor, windows with spans and limit)"""

    def add(self, directory: RunDirectory, energy: CheckedEnergy, sensor: Mapping[str, Any]) -> None:
        """`sensor`: equal to that of `energy`, and shared by runs."""
        rest = marshal.dumps((energy.windows, energy.spans, energy.power_limit_w))
        self._kept[directory.case_id, directory.block] = (directory.attempt, sensor, rest)

    def extend(self, other: BoardEnergies) -> None:
        self._kept |= other._kept

    def __getitem__(self, key: tuple[str, int]) -> RunEnergy:
        attempt, sensor, rest = self._kept[key]
        windows, spans, limit_w = marshal.loads(rest)
        directory = self._campaign.attempt(*key, attempt)
        return RunEnergy(directory, sensor, tuple(map(EnergyWindow.of, windows)), spans, limit_w)

    def first(self, key: tuple[str, int], *names: str) -> tuple[Any, ...]:
        """Fields of the first window of a run, as energy.json has them."""
        (window, *_), *_ = marshal.loads(self._kept[key][-1])
        return tuple(window[EnergyWindow.__slots__.index(name)] for name in names)

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)


@dataclass(frozen=True, slots=True)
class PowerRecording:
    """The power channels of one run: float64 in order of time, in s after the session's begin, in W and in joules.

    A channel that was not recorded is empty; failed readings are left out. `counter_s`: [n, 2], call and return."""

    samples_s: Numbers
    samples_w: Numbers
    instant_s: Numbers
    instant_w: Numbers
    counter_s: Numbers
    counter_j: Numbers


def check_energy(
    directory: RunDirectory,
    content: Mapping[str, Any],
    windows: Mapping[str, Mapping[str, Any]],
    environment: Mapping[str, Any],
) -> CheckedEnergy:
    """energy.json, `content`, with what summary.json and environment.json say of the same run. Raises CorruptError for
    a file that is not as docs/formats/rundir.md says."""
    file = directory.file(ENERGY)
    sensor, stored = content["sensor"], content["windows"]
    if not isinstance(sensor, dict) or not all(_is_number(sensor.get(name)) for name in _SENSOR_NUMBERS):
        raise CorruptError(f"{file}: `sensor` must be an object with the numbers {', '.join(_SENSOR_NUMBERS)}")
    if sensor["response_s"] <= 0 or sensor["counter_tick_s"] <= 0:
        raise CorruptError(f"{file}: response_s and counter_tick_s of `sensor` must be above 0")
    if not isinstance(stored, list) or not stored or not all(isinstance(window, dict) for window in stored):
        raise CorruptError(f"{file}: `windows` must be a list of at least one object")
    checked = tuple(_check_window(window, file, number) for number, window in enumerate(stored, start=1))
    return CheckedEnergy(sensor, checked, _spans(directory, windows, environment), _power_limit_w(environment))


def read_recording(directory: RunDirectory) -> PowerRecording:
    """The power channels of a run. Raises CorruptError, naming the file, for one that cannot be read."""
    samples = _read_columns(directory.file(POWER_SAMPLES), ("time_s", "power_w"))
    polled = _read_columns(directory.file(POWER_POLLED), ("call_s", "return_s", "power_instant_w"))
    counter = _read_columns(directory.file(ENERGY_COUNTER), ("call_s", "return_s", "energy_j"))
    return PowerRecording(
        samples[:, 0], samples[:, 1], (polled[:, 0] + polled[:, 1]) / 2, polled[:, 2], counter[:, :2], counter[:, 2]
    )


def _check_window(stored: Mapping[str, Any], file: Path, number: int) -> tuple[Any, ...]:
    """The values of the fields of an `EnergyWindow`. Entries that a later pybench adds are no damage."""

    def refuse(name: str, wanted: str) -> CorruptError:
        return CorruptError(f"{file}: window {number}: {name} must be {wanted}")

    for name in _TEXTS:
        if not isinstance(stored.get(name), str):
            raise refuse(name, "a text")
    for name in _NUMBERS:
        if not _is_number(stored.get(name)):
            raise refuse(name, "a number")
    for name in _NUMBERS_OR_NULL:
        present = name in stored or name in _ONLY_WITH_IDLE
        if not present or not (stored.get(name) is None or _is_number(stored[name])):
            raise refuse(name, "a number or null")
    for name in _MAPPINGS:
        values = stored.get(name)
        if not isinstance(values, dict) or not all(value is None or _is_number(value) for value in values.values()):
            raise refuse(name, "an object of numbers and nulls")
    if type(stored.get("iterations")) is not int or type(stored.get("valid")) is not bool:
        raise refuse("iterations, valid", "a whole number and true or false")
    reasons = stored.get("reasons")
    if not isinstance(reasons, list) or not all(isinstance(reason, str) for reason in reasons):
        raise refuse("reasons", "a list of texts")
    if stored["end_s"] <= stored["begin_s"]:
        raise refuse("end_s", "after begin_s")
    return tuple(map(stored.get, EnergyWindow.__slots__))


def _spans(
    directory: RunDirectory, windows: Mapping[str, Mapping[str, Any]], environment: Mapping[str, Any]
) -> dict[str, tuple[float, float]]:
    measuring = environment.get("measuring")
    origin_ns = measuring.get("begin_ns") if isinstance(measuring, dict) else None
    if not _is_number(origin_ns):
        raise CorruptError(
            f"{directory.file(ENVIRONMENT)} lacks measuring.begin_ns, from which the times of {ENERGY} count"
        )
    return {
        name: ((window["begin_ns"] - origin_ns) * 1e-9, (window["end_ns"] - origin_ns) * 1e-9)
        for name, window in windows.items()
        if _is_number(window.get("begin_ns")) and _is_number(window.get("end_ns"))
    }


def _power_limit_w(environment: Mapping[str, Any]) -> float | None:
    """As the sampler first read it, after the run had set what its case asks for."""
    gpu = environment["measuring"].get("gpu")
    limit_w = gpu.get("power_limit_w") if isinstance(gpu, dict) else None
    return float(limit_w) if limit_w is not None and _is_number(limit_w) else None


def _read_columns(file: Path, names: tuple[str, ...]) -> Numbers:
    """float64 [rows, columns] without the rows that miss a value; no rows without the file."""
    if not file.exists():
        return np.empty((0, len(names)))
    try:
        read = pl.read_csv(file, columns=list(names), schema_overrides=dict.fromkeys(names, pl.Float64))
    except (OSError, UnicodeDecodeError, pl.exceptions.PolarsError) as error:
        raise CorruptError(f"{file} cannot be read: {str(error).splitlines()[0]}") from error
    return read.select(names).drop_nulls().to_numpy().astype(np.float64)


def _is_number(value: object) -> bool:
    return type(value) in _NUMBER and math.isfinite(value)  # type: ignore[arg-type]
