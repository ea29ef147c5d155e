# SPDX-License-Identifier: Apache-2.0
"""What is known of a board's power sensor: its delays, periods and noise, each in SI units, with where it came from.

Profiles belong to one board under one driver, (UUID, driver version), never to a product name: Yang et al. (SC'24)
found different averaging windows on boards of one product. `ASSUMED` stands in where nothing was measured; its
uncertainties span what was published for data-centre boards, and everything computed with it says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from pybench.catalogue.reasons import Reason, reason_from_text
from pybench.catalogue.sensors import PROFILE_VERSION, check_profile
from pybench.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class SensorProfile:
    """The model: a sample stamped t reads y(t) = first-order lag (time constant `response_s`) of the board's power,
    `sample_delay_s` late. The counter steps every `counter_tick_s` to the energy spent until `counter_delay_s` before.

    `u_...` are standard uncertainties of the value they are named after. None: that channel or property was not there.
    A number that is never None and could not be measured is named in `missing`: it holds what `ASSUMED` says, and is
    stored as null. `reasons` says why, and what else is doubtful.
    """

    uuid: str | None = None
    driver: str | None = None
    name: str | None = None
    origin: Literal["measured", "trace", "assumed"]
    measured_at: str | None = None  # UTC, ISO 8601

    # The driver's sample buffer (nvmlDeviceGetSamples, TOTAL_POWER).
    sample_period_s: float = 0.020
    u_sample_period_s: float | None = None
    sample_delay_s: float
    u_sample_delay_s: float
    response_s: float
    u_response_s: float
    stamp_jitter_s: float  # root mean square of how much older a sample can be than its stamp says
    sample_noise_w: float  # standard deviation at constant load
    sample_gain_ratio: float | None = None  # energy by the samples over energy by the counter, at constant load
    u_sample_gain_ratio: float | None = None

    # The energy counter.
    counter_tick_s: float
    u_counter_tick_s: float | None = None
    counter_tick_jitter_s: float  # standard deviation of a tick around its grid
    counter_delay_s: float
    u_counter_delay_s: float
    counter_call_s: float | None = None  # median length of one call

    # What the board's own state (temperature, leakage, clocks) adds to a ratio of two short windows with the same work;
    # longer windows carry less (`integration.state_share`). In two H200 recordings the counter's power is off by 0.5 to
    # 1.5 % in a load's first second. Windows of 10 s of the same kernel differ by 0.1 to 0.9 %.
    state_ratio: float = 0.011

    # The polled fields: the update period of both, and how late the "instant" one is when it is refreshed (in the sense
    # of `sample_delay_s`). For the "average" one also the length over which it averages.
    instant_period_s: float | None = None
    instant_delay_s: float | None = None
    u_instant_delay_s: float | None = None
    average_period_s: float | None = None
    average_window_s: float | None = None
    u_average_window_s: float | None = None

    steps: int | None = None  # of power that the delay and the response were found from
    missing: tuple[str, ...] = ()
    reasons: tuple[Reason, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The stored form: what is missing is null."""
        stored = {"schema_version": PROFILE_VERSION, **asdict(self), **dict.fromkeys(self.missing)}
        del stored["missing"]
        return {**stored, "reasons": [str(reason) for reason in self.reasons]}

    def what_is_assumed(self, *, samples: bool, counter: bool) -> str | None:
        """Says for which numbers of the channels that are read `ASSUMED` stands in; None where for none."""
        if self.origin == "assumed":
            return "this board's sensor was not characterised (`pybench sensor`)"
        used = (*(OF_SAMPLES if samples else ()), *(OF_COUNTER if counter else ()))
        absent = [name for name in self.missing if name in used]
        return f"`pybench sensor` could not measure {', '.join(absent)}" if absent else None


def profile_from_json(stored: Mapping[str, Any], source: str) -> SensorProfile:
    """The inverse of `as_json`. Raises InputError, naming `source`, for anything that is not such a profile."""
    check_profile(stored, source)
    known = {field.name for field in fields(SensorProfile)} - {"missing"}
    values = {name: value for name, value in stored.items() if name != "schema_version"}
    unknown = sorted(set(values) - known)
    if unknown:
        raise InputError(
            f"{source}: unknown entries {', '.join(unknown)}", hint="it should be what `pybench sensor` wrote"
        )
    absent = {name: getattr(ASSUMED, name) for name in NEVER_NULL if name in values and values[name] is None}
    reasons = tuple(map(reason_from_text, values.get("reasons", [])))
    try:
        return SensorProfile(**{**values, **absent, "missing": tuple(absent), "reasons": reasons})
    except TypeError as error:
        raise InputError(f"{source}: not a whole sensor profile ({error})") from error


ASSUMED = SensorProfile(
    origin="assumed",
    sample_delay_s=0.005,
    u_sample_delay_s=0.005,
    response_s=0.013,
    u_response_s=0.006,
    stamp_jitter_s=0.003,
    sample_noise_w=3.0,
    counter_tick_s=0.1,
    counter_tick_jitter_s=0.003,
    counter_delay_s=0.010,
    u_counter_delay_s=0.005,
)

# What an integrator cannot do without: where one of these was not measured, `ASSUMED` stands in.
SAMPLE_TIMING = ("sample_delay_s", "u_sample_delay_s", "response_s", "u_response_s", "stamp_jitter_s")
COUNTER_GRID = ("counter_tick_s", "counter_tick_jitter_s")
COUNTER_DELAY = ("counter_delay_s", "u_counter_delay_s")
OF_SAMPLES = ("sample_period_s", "sample_noise_w", *SAMPLE_TIMING)
OF_COUNTER = (*COUNTER_GRID, *COUNTER_DELAY)
NEVER_NULL = (*OF_SAMPLES, *OF_COUNTER)
