# SPDX-License-Identifier: Apache-2.0
"""The live procedure against a replayed board: NVML plays a trace whose loads are known, in real time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pybench.errors import UnsupportedError, UsageError
from pybench.measure.sensor.procedure import LEVELS, duration_s, measure_sensor, plan_pulses
from tests.measure.replay import UUID
from tests.measure.replayed_board import SHORT_LOADS, GpuLoad, write_board
from tests.measure.synthetic_sensor import Sensor


def test_the_pulses_are_seeded_and_hit_every_phase_of_the_sensor() -> None:
    pulses = plan_pulses(1)
    assert pulses == plan_pulses(1) != plan_pulses(2)
    short = pulses[1:-1]
    assert 2 * len(short) >= 24
    assert {pulse.level for pulse in short} == set(LEVELS)
    assert abs(sum(pulse.level == LEVELS[0] for pulse in short) - len(short) / 2) <= 1
    edges_s = np.cumsum([length for pulse in pulses for length in (pulse.rest_s, pulse.load_s)])[2:-2]
    for period_s in (0.02, 0.1):
        filled = np.histogram(edges_s % period_s, bins=4, range=(0, period_s))[0]
        assert filled.min() >= 5, "a quarter of the period has hardly an edge"
    assert 40 < duration_s(pulses) < 75


def test_too_few_loads_are_refused() -> None:
    with pytest.raises(UsageError, match="3 loads show too few steps"):
        plan_pulses(1, 3)


@pytest.mark.slow
def test_a_live_board_is_measured(tmp_path: Path, replay_library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sensor = Sensor(delay_s=0.005, response_s=0.015, call_s=0.001)
    write_board(tmp_path / "trace", sensor, long_s=2.5)
    monkeypatch.setenv("PYBENCH_REPLAY_TRACE", str(tmp_path / "trace"))
    monkeypatch.setenv("PYBENCH_NVML_LIBRARY", str(replay_library))
    monkeypatch.delenv("PYBENCH_REPLAY_SPEED", raising=False)
    told: list[str] = []
    profile = measure_sensor(UUID, GpuLoad, loads=SHORT_LOADS, tell=told.append)
    assert (profile.uuid, profile.driver, profile.name, profile.origin) == (
        UUID,
        "replay",
        "Replayed trace",
        "measured",
    )
    assert profile.measured_at is not None
    assert profile.sample_delay_s == pytest.approx(sensor.delay_s, abs=0.0007)
    assert profile.response_s == pytest.approx(sensor.response_s, abs=0.001)
    assert profile.counter_tick_s == pytest.approx(sensor.tick_s, abs=1e-4)
    assert profile.counter_delay_s == pytest.approx(sensor.counter_delay_s, abs=0.002)
    assert profile.average_window_s == pytest.approx(sensor.window_s, abs=0.03)
    assert profile.sample_gain_ratio == pytest.approx(sensor.gain, abs=0.005)
    assert profile.steps is not None
    assert profile.steps >= 2 * SHORT_LOADS
    assert profile.reasons == ()
    assert told[0].startswith("Replayed trace: switching a load on and off")


def test_a_board_with_company_is_refused_unless_forced(
    tmp_path: Path, replay_library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_board(tmp_path / "trace", Sensor(), processes=3)
    monkeypatch.setenv("PYBENCH_REPLAY_TRACE", str(tmp_path / "trace"))

    def never(uuid: str) -> GpuLoad:
        raise ConnectionError("the load was opened")

    with pytest.raises(UnsupportedError, match=r"2 other processes use this GPU \(process ids 1, 2\)") as caught:
        measure_sensor(UUID, never, nvml_library=str(replay_library))
    assert caught.value.reason.stored_code == "gpu_busy"
    assert "--force" in str(caught.value)
    with pytest.raises(ConnectionError, match="the load was opened"):
        measure_sensor(UUID, never, nvml_library=str(replay_library), force=True)


@pytest.mark.slow
def test_a_board_that_does_not_follow_the_load_is_not_characterised(replayed_gpu: str) -> None:
    class Idle(GpuLoad):
        def __init__(self, uuid: str) -> None:
            self.runs = 0

        def run(self, seconds: float, *, level: float = 1.0) -> tuple[int, int]:  # type: ignore[override]
            from pybench import measure

            begin_ns = measure.monotonic_ns()
            measure.sleep_until_ns(begin_ns + 50_000_000)
            return begin_ns, measure.monotonic_ns()

    with pytest.raises(UnsupportedError, match="does not follow a load: too few usable steps") as caught:
        measure_sensor(UUID, Idle, loads=SHORT_LOADS, nvml_library=replayed_gpu)
    assert caught.value.reason.stored_code == "sensor_unclear"


def test_without_nvml_or_without_the_board_it_says_so() -> None:
    with pytest.raises(UnsupportedError, match="power cannot be read: libabsent-nvml") as caught:
        measure_sensor("GPU-1", GpuLoad, nvml_library="libabsent-nvml.so")
    assert caught.value.reason.stored_code == "nvml_unavailable"
