# SPDX-License-Identifier: Apache-2.0
"""What the measuring half, the store of profiles and the command line all say of a GPU's power sensor."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pybench.catalogue.rows import Rows
from pybench.errors import InputError

PROFILE_VERSION = 1  # of a stored profile: its `schema_version`
SHORT_LOADS = 30  # twice as many steps: the delay of an H200's samples to 0.1 ms, in 35 s
FEWEST_LOADS = 6  # fewer show too few steps of power


_ORIGINS = ("measured", "trace", "assumed")
_POSITIVE = ("sample_period_s", "response_s", "counter_tick_s")
MEASURE_AGAIN = "measure the board again with `pybench sensor`"


def check_profile(stored: Mapping[str, Any], source: str) -> None:
    """Raises InputError, naming `source`, for what is no stored profile of a sensor: its words and its numbers.

    A number is null where it could not be measured; only `state_ratio` is an allowance, and always there.
    """
    if (version := stored.get("schema_version")) != PROFILE_VERSION:
        what = f"a sensor profile of schema version {version}, not {PROFILE_VERSION}"
        raise InputError(f"{source}: {what}", hint=MEASURE_AGAIN)
    for name, value in stored.items():
        if name.endswith(("_s", "_w", "_ratio")) and (value is not None or name == "state_ratio"):
            _check_number(stored, name, source)
    absent = [name for name in ("uuid", "driver", "name", "measured_at", "sample_delay_s") if name not in stored]
    if absent:
        raise InputError(f"{source}: not a whole sensor profile: it has no {', '.join(absent)}", hint=MEASURE_AGAIN)
    if stored.get("origin") not in _ORIGINS:
        raise _wrong(stored, "origin", source, f"it must be one of {', '.join(_ORIGINS)}")
    reasons = stored.get("reasons", [])
    if not (isinstance(reasons, list) and all(isinstance(reason, str) for reason in reasons)):
        raise _wrong(stored, "reasons", source, "it must be a list of texts")


def _check_number(stored: Mapping[str, Any], name: str, source: str) -> None:
    value = stored[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise _wrong(stored, name, source, "it must be a number of at least 0")
    if name in _POSITIVE and value == 0:
        raise _wrong(stored, name, source, "it must be a number above 0")


def _wrong(stored: Mapping[str, Any], name: str, source: str, hint: str) -> InputError:
    return InputError(f"{source}: {name} is {json.dumps(stored.get(name))}", hint=hint)


@dataclass(frozen=True, slots=True)
class PlainMethod:
    """A way of other tools to compute an energy. `meaning`: who uses it, or what it leaves out."""

    name: str
    label: str
    meaning: str


FUSED = "fused"  # pybench's own method
PLAIN_METHODS = Rows(
    "method of energy",
    (
        PlainMethod(
            "counter-difference", "Counter difference", "readings nearest to the edges, as in Zeus and CodeCarbon"
        ),
        PlainMethod("average-trapezoid", "Polled average power", "the driver's one-second mean, as in nvidia-smi"),
        PlainMethod("instant-trapezoid", "Polled instant power", "the driver's instantaneous power"),
        PlainMethod(
            "samples-trapezoid",
            "Plain samples of the driver",
            "the samples at their time stamps, delay and lag not removed",
        ),
        PlainMethod("counter-interpolated", "Interpolated counter", "readings interpolated to the edges"),
    ),
)
ENERGY_METHODS = (FUSED, *PLAIN_METHODS)
