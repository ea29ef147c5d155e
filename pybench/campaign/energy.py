# SPDX-License-Identifier: Apache-2.0
"""energy.json of one run, checked: what a run stored about the energy of its GPU board has the shape that readers rely
on. docs/formats/rundir.md describes the file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pybench.campaign.directory import RunDirectory
from pybench.campaign.layout import ENERGY, ENVIRONMENT
from pybench.errors import CorruptError

WINDOW_FIELDS = (
    "window",
    "begin_s",
    "end_s",
    "iterations",
    "method",
    "scope",
    "energy_j",
    "u_within_j",
    "u_absolute_j",
    "parts_j",
    "valid",
    "reasons",
    "plain_j",
    "idle_before_w",
    "idle_after_w",
    "net_j",
    "u_net_j",
    "tail_j",
    "u_tail_j",
    "tail_end_s",
)
"""What is kept of a window of energy.json, in this order."""
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


@dataclass(frozen=True, slots=True)
class CheckedEnergy:
    """energy.json of one run, which `check_energy` found to be as it must.

    sensor: the profile as stored
    windows: of each, the values of `WINDOW_FIELDS`
    spans: name of every window of the run -> (begin, end) in seconds after the session's begin
    power_limit_w: of the board, as the run found it; None: it was not stored
    """

    sensor: Mapping[str, Any]
    windows: tuple[tuple[Any, ...], ...]
    spans: dict[str, tuple[float, float]]
    power_limit_w: float | None


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


def _check_window(stored: Mapping[str, Any], file: Path, number: int) -> tuple[Any, ...]:
    """The values of `WINDOW_FIELDS`. Entries that a later pybench adds are no damage."""

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
    return tuple(map(stored.get, WINDOW_FIELDS))


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


def _is_number(value: object) -> bool:
    return type(value) in _NUMBER and math.isfinite(value)  # type: ignore[arg-type]
