# SPDX-License-Identifier: Apache-2.0
"""energy.json and power channels for tests of the reading half, in the format that docs/formats/rundir.md describes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pybench.campaign import extract
from pybench.campaign.directory import RunDirectory
from pybench.campaign.layout import ENERGY, ENERGY_COUNTER, POWER_POLLED, POWER_SAMPLES
from pybench.campaign.storage import write_json, write_text
from pybench.measure.quantity import Quantity
from tests.support.campaigns import ENVIRONMENT_CONTENT, finish_again

ON_A_BOARD = {**ENVIRONMENT_CONTENT, "measuring": {"begin_ns": 0}}
SENSOR = {
    "origin": "measured",
    "driver": "580.1",
    "measured_at": "2026-01-01T00:00:00Z",
    "sample_delay_s": 0.0036,
    "u_sample_delay_s": 0.0005,
    "response_s": 0.0128,
    "counter_tick_s": 0.1,
    "counter_delay_s": 0.0115,
}


def energy_window(energy_j: float | None = 600.0, **changes: Any) -> dict[str, Any]:
    """One second at 600 W; its parts are 3 and 4 J, so 5 J within the board, and 13 J with a gain of 12 J."""
    return {
        "window": "timing",
        "begin_s": 0.0,
        "end_s": 1.0,
        "iterations": 100,
        "method": "fused",
        "scope": "board",
        "energy_j": energy_j,
        "u_within_j": 5.0,
        "u_absolute_j": 13.0,
        "parts_j": {"sampling": 3.0, "board_state": 4.0},
        "valid": True,
        "reasons": [],
        "plain_j": {"counter-difference": 540.0, "average-trapezoid": None},
        "idle_before_w": 100.0,
        "idle_after_w": 102.0,
        "net_j": 499.0,
        "u_net_j": 6.0,
        "tail_j": -1.0,
        "u_tail_j": 2.0,
        "tail_end_s": 1.3,
        **changes,
    }


def energy_metrics(energy_j: float = 600.0) -> dict[str, Quantity]:
    """What summary.json says of the same window."""
    return {
        "gpu_energy_j": Quantity(value=energy_j, window="timing", u_standard=5.0, u_absolute=13.0),
        "gpu_net_energy_j": Quantity(value=energy_j - 101, window="timing", u_standard=6.0, u_absolute=12.0),
        "gpu_tail_energy_j": Quantity(value=-1.0, window="timing", u_standard=2.0, u_absolute=2.5),
        "gpu_idle_power_before_w": Quantity(value=100.0, window="idle_before", u_standard=0.5, u_absolute=3.0),
    }


def times_s(channel: Mapping[str, NDArray[Any]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Begin and end of each row of a channel of gaps, in s after the origin."""
    length_ns = channel.get("call_ns", np.zeros_like(channel["gap_ns"]))
    end_ns = np.cumsum(channel["gap_ns"] + length_ns)
    return (end_ns - length_ns) * 1e-9, end_ns * 1e-9


def store_energy(directory: RunDirectory, window: dict[str, Any], sensor: dict[str, Any] = SENSOR) -> None:
    """Adds energy.json and one second of every power channel to a run."""
    write_json(directory.file(ENERGY), {"schema_version": 1, "sensor": sensor, "windows": [window]})
    times_ns = [20_000_000 * tick for tick in range(-10, 71)]
    gaps_ns = np.diff(times_ns, prepend=0)
    samples = "".join(
        f"{gap_ns},{600.0 if 0 <= time_ns < 1e9 else 100.0}\n"
        for gap_ns, time_ns in zip(gaps_ns, times_ns, strict=True)
    )
    write_text(directory.file(POWER_SAMPLES), "gap_ns,power_w\n" + samples)
    polled = "".join(f"{99_900_000 if tick else 0},100000,,600.0,3,0\n" for tick in range(10))
    header = "gap_ns,call_ns,power_instant_w,power_average_w,instant_code,average_code\n"
    write_text(directory.file(POWER_POLLED), header + polled)
    counter = "".join(f"{496_000_000 if tick else 0},4000000,{300.0 * tick},0\n" for tick in range(5))
    write_text(directory.file(ENERGY_COUNTER), "gap_ns,call_ns,energy_j,energy_code\n" + counter)
    if directory.is_complete:
        finish_again(directory.path)
        extract.store(directory)
