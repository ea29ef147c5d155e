# SPDX-License-Identifier: Apache-2.0
"""energy.json of one run, checked: what a run stored about the energy of its GPU board has the shape that readers rely
on. docs/formats/rundir.md describes the file."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pybench.campaign.directory import RunDirectory
from pybench.campaign.layout import ENERGY, ENVIRONMENT
from pybench.errors import CorruptError

_Check = Callable[[Any], bool]


def _is_number(value: object) -> bool:
    return type(value) is int or (isinstance(value, float) and math.isfinite(value))  # a bool is none


def _is_number_or_null(value: object) -> bool:
    return value is None or _is_number(value)


def _is_mapping(value: object) -> bool:
    return isinstance(value, dict) and all(map(_is_number_or_null, value.values()))


def _is_list_of_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


_TEXT: tuple[_Check, str] = (lambda value: isinstance(value, str), "a text")
_NUMBER: tuple[_Check, str] = (_is_number, "a number")
_NUMBER_OR_NULL: tuple[_Check, str] = (_is_number_or_null, "a number or null")
_MAPPING: tuple[_Check, str] = (_is_mapping, "an object of numbers and nulls")

# What is kept of a window of energy.json: field -> what it must be, in this order.
_WINDOW: Mapping[str, tuple[_Check, str]] = {
    "window": _TEXT,
    "begin_s": _NUMBER,
    "end_s": _NUMBER,
    "iterations": (lambda value: type(value) is int, "a whole number"),
    "method": _TEXT,
    "scope": _TEXT,
    "energy_j": _NUMBER_OR_NULL,
    "u_within_j": _NUMBER_OR_NULL,
    "u_absolute_j": _NUMBER_OR_NULL,
    "parts_j": _MAPPING,
    "valid": (lambda value: type(value) is bool, "true or false"),
    "reasons": (_is_list_of_texts, "a list of texts"),
    "plain_j": _MAPPING,
    "idle_before_w": _NUMBER_OR_NULL,
    "idle_after_w": _NUMBER_OR_NULL,
    "net_j": _NUMBER_OR_NULL,
    "u_net_j": _NUMBER_OR_NULL,
    "tail_j": _NUMBER_OR_NULL,
    "u_tail_j": _NUMBER_OR_NULL,
    "tail_end_s": _NUMBER_OR_NULL,
}
WINDOW_FIELDS = tuple(_WINDOW)
_ONLY_WITH_IDLE = frozenset({"net_j", "u_net_j", "tail_j", "u_tail_j", "tail_end_s"})
# What drawing and judging need of a sensor's profile; whatever else is stored is kept.
_SENSOR_NUMBERS = ("sample_delay_s", "response_s", "counter_tick_s", "counter_delay_s")


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
    for name, (is_right, wanted) in _WINDOW.items():
        is_missing = name not in stored and name not in _ONLY_WITH_IDLE
        if is_missing or not is_right(stored.get(name)):
            raise CorruptError(f"{file}: window {number}: {name} must be {wanted}")
    if stored["end_s"] <= stored["begin_s"]:
        raise CorruptError(f"{file}: window {number}: end_s must be after begin_s")
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
