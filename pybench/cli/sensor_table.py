# SPDX-License-Identifier: Apache-2.0
"""A sensor profile as a table: value, standard uncertainty, unit, and what it means. It computes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

# (name in the profile, unit as shown, factor, meaning)
ROWS = (
    ("sample_period_s", "ms", 1e3, "driver's samples: time between two samples"),
    ("sample_delay_s", "ms", 1e3, "driver's samples: delay"),
    ("response_s", "ms", 1e3, "driver's samples: time constant of their first-order lag"),
    ("stamp_jitter_s", "ms", 1e3, "driver's samples: age at the time stamp (rms)"),
    ("sample_noise_w", "W", 1.0, "driver's samples: noise at constant load"),
    ("sample_gain_ratio", "", 1.0, "driver's samples: energy relative to the counter"),
    ("counter_tick_s", "ms", 1e3, "energy counter: time between two steps"),
    ("counter_tick_jitter_s", "ms", 1e3, "energy counter: deviation of steps from a regular grid"),
    ("counter_delay_s", "ms", 1e3, "energy counter: delay of the energy at a step"),
    ("counter_call_s", "ms", 1e3, "energy counter: duration of one call (median)"),
    ("instant_period_s", "ms", 1e3, "instant power (field 186): time between two refreshes"),
    ("instant_delay_s", "ms", 1e3, "instant power (field 186): delay at a refresh"),
    ("average_period_s", "ms", 1e3, "average power (field 185): time between two refreshes"),
    ("average_window_s", "ms", 1e3, "average power (field 185): length of the average"),
)


def describe_profile(profile: Mapping[str, Any]) -> Iterator[str]:
    """The lines of one profile."""
    yield f"{profile['name']}  {profile['uuid']}  driver {profile['driver']}  measured {profile['measured_at']}"
    for name, unit, factor, meaning in ROWS:
        value, u = profile.get(name), profile.get(f"u_{name}")
        yield f"{_number(value, u, factor):>20} {unit:<2}  {meaning}"
    if profile.get("steps"):
        yield f"from {profile['steps']} steps of power; ± is the standard uncertainty"
    for reason in profile.get("reasons", ()):
        yield f"! {reason}"


def _number(value: float | None, u: float | None, factor: float) -> str:
    """Two digits of the uncertainty, and as many places of the value; three digits of a value without one."""
    if value is None:
        return "not measured"
    if not u:
        return f"{value * factor:.3g}"
    places = max(0, 1 - _exponent(u * factor))
    return f"{value * factor:.{places}f} ± {u * factor:.{places}f}"


def _exponent(number: float) -> int:
    """Of ten, in scientific notation."""
    return int(f"{number:e}".partition("e")[2])
