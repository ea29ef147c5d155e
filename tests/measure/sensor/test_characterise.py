# SPDX-License-Identifier: Apache-2.0
"""A sensor's profile from recordings of a real board, and from a made-up board whose sensor is known."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from pybench.errors import InputError
from pybench.measure import ASSUMED, SensorProfile, Trace, profile_from_json, read_trace
from pybench.measure.sensor.characterise import RecordedBoard, characterise
from tests.measure.synthetic_sensor import Sensor, record, switch, to_ns

DATA = Path(__file__).parents[1] / "data"
LONG = 8.6  # s: from the last short load's begin of rest to the long load's end


def recorded(name: str) -> tuple[Trace, NDArray[np.int64]]:
    """A committed recording and its loads."""
    loads_us = [(int(row["start_us"]), int(row["end_us"])) for row in windows_of(name)]
    return read_trace(DATA / name), np.array(loads_us, np.int64) * 1000


def windows_of(name: str) -> list[dict[str, str]]:
    with (DATA / name / "windows.csv").open() as file:
        return list(csv.DictReader(file))


def made_up(seed: int, sensor: Sensor, count: int = 16) -> tuple[Trace, NDArray[np.int64]]:
    """A recording of `count` short loads and a long one."""
    rng = np.random.default_rng(seed)
    loads_s = switch(rng, count)
    loads_s = np.vstack((loads_s, (loads_s[-1, 1] + 0.6, loads_s[-1, 1] + LONG)))
    return record(rng, replace(sensor, tick_phase_s=rng.uniform(0, sensor.tick_s)), loads_s), to_ns(loads_s)


TRUTH = {
    "sample_period_s": "period_s",
    "sample_delay_s": "delay_s",
    "response_s": "response_s",
    "counter_tick_s": "tick_s",
    "counter_delay_s": "counter_delay_s",
    "average_window_s": "window_s",
    "sample_gain_ratio": "gain",
}


def wrong_in_u(profile: SensorProfile, sensor: Sensor) -> dict[str, float]:
    """How far each estimate is from the truth, in its own standard uncertainty."""
    return {
        name: abs(getattr(profile, name) - getattr(sensor, of)) / getattr(profile, f"u_{name}")
        for name, of in TRUTH.items()
    }


@pytest.mark.parametrize("name", ["h200-windows", "h200-kernels"])
def test_two_recordings_of_one_board_give_one_sensor(name: str) -> None:
    profile = characterise(*recorded(name))
    assert profile.origin == "trace"
    assert profile.reasons == profile.missing == ()
    assert profile.sample_period_s == pytest.approx(0.0201, abs=0.0002)
    assert profile.sample_delay_s == pytest.approx(0.0034, abs=0.0006)
    assert profile.response_s == pytest.approx(0.0131, abs=0.0006)
    assert profile.sample_delay_s + profile.response_s == pytest.approx(0.0165, abs=0.0003)
    assert 0.001 < profile.stamp_jitter_s < 0.005
    assert profile.counter_tick_s == pytest.approx(0.1, abs=2e-6)
    assert profile.counter_tick_jitter_s < 0.001
    assert profile.counter_delay_s == pytest.approx(0.0100, abs=0.001)
    assert 0.0003 < profile.u_counter_delay_s < 0.0015
    assert profile.counter_call_s == pytest.approx(0.004, abs=0.0015)
    assert profile.sample_gain_ratio == pytest.approx(1.0006, abs=0.0006)
    assert profile.instant_period_s == pytest.approx(0.101, abs=0.001)
    assert profile.average_period_s == pytest.approx(0.101, abs=0.001)
    assert profile.average_window_s == pytest.approx(1.0, abs=0.01)
    assert profile.steps is not None
    assert profile.steps >= 20


def test_a_load_that_runs_into_the_power_cap_gives_no_steps() -> None:
    trace, loads_ns = recorded("h200-kernels")
    loads_ns = loads_ns[:29]  # 90 s
    capped = np.array([row["kernel"] in ("matrix_cap", "tiny_launches") for row in windows_of("h200-kernels")[:29]])
    with_them, without = characterise(trace, loads_ns).steps, characterise(trace, loads_ns[~capped]).steps
    assert with_them is not None
    assert without is not None
    assert 0 <= with_them - without <= 3, "only ends of such loads, after they have settled, may be level"


@pytest.mark.parametrize(
    "sensor",
    [
        Sensor(),
        Sensor(delay_s=0.0, response_s=0.006),
        Sensor(delay_s=0.012, response_s=0.030, counter_delay_s=0.004, tick_s=0.02, call_s=0.0005),
        Sensor(stale_share=0.0, tick_jitter_s=0.002, window_s=0.1),
    ],
    ids=["like an H200", "fast", "slow, with a fast counter", "jittering counter, short average"],
)
def test_a_known_sensor_is_found_within_three_uncertainties(sensor: Sensor) -> None:
    profile = characterise(*made_up(7, sensor, count=24))
    assert {name: value for name, value in wrong_in_u(profile, sensor).items() if value > 3.3} == {}
    assert profile.reasons == ()
    assert profile.counter_tick_jitter_s == pytest.approx(max(sensor.tick_jitter_s, 1e-4), rel=0.4)
    assert profile.sample_noise_w == pytest.approx(sensor.noise_w, rel=0.2)
    assert profile.instant_period_s == pytest.approx(sensor.refresh_s, rel=1e-3)
    assert profile.instant_delay_s == pytest.approx(sensor.delay_s + sensor.instant_age_s, abs=0.003)
    expected_s = sensor.stale_s * np.sqrt(sensor.stale_share / 3)
    assert profile.stamp_jitter_s == pytest.approx(expected_s, abs=0.0012)


@pytest.mark.slow
@pytest.mark.parametrize("count", [3, 14], ids=["8 steps", "30 steps"])
def test_uncertainties_cover_the_truth_as_often_as_they_say(count: int) -> None:
    """Of 100 repetitions, within 1 and 2 standard uncertainties (68 and 95 for normal errors, binomial 3 sigma)."""
    sensor = Sensor()
    wrong = [wrong_in_u(characterise(*made_up(seed, sensor, count)), sensor) for seed in range(100)]
    for name in ("sample_delay_s", "response_s", "average_window_s", "sample_gain_ratio"):
        errors = np.array([each[name] for each in wrong])
        assert np.count_nonzero(errors < 2) >= 88, name
        assert np.count_nonzero(errors < 1) >= 54, name
        assert np.median(errors) > 0.2, f"{name}: uncertainties are far too large"
    assert np.max([each["counter_delay_s"] for each in wrong]) < 3


def test_fewer_steps_give_larger_uncertainties() -> None:
    few, many = (characterise(*made_up(5, Sensor(), count)) for count in (3, 40))
    assert few.u_sample_delay_s > 1.5 * many.u_sample_delay_s
    assert few.u_response_s > 1.5 * many.u_response_s


def test_a_sensor_of_another_kind_is_told_and_its_uncertainty_grows() -> None:
    usual = characterise(*made_up(3, Sensor(noise_w=0.5)))
    box = characterise(*made_up(3, Sensor(box_s=0.06, noise_w=0.5)))
    assert [reason.code for reason in box.reasons] == ["not_first_order"]
    assert box.u_response_s > 0.002 > 20 * usual.u_response_s
    assert box.u_counter_delay_s > 0.002


def test_stale_stamps_are_seen_and_do_not_move_the_delay() -> None:
    clean, stale = (characterise(*made_up(11, Sensor(stale_share=share))) for share in (0.0, 0.15))
    assert clean.stamp_jitter_s < 0.0003
    assert stale.stamp_jitter_s > 0.0015
    assert stale.sample_delay_s == pytest.approx(clean.sample_delay_s, abs=0.0001)


def test_without_a_counter_its_numbers_are_null() -> None:
    trace, loads_ns = made_up(1, Sensor())
    profile = characterise(replace(trace, counter=Trace().counter), loads_ns)
    stored = profile.as_json()
    assert [name for name in stored if name.startswith(("counter_", "u_counter_")) and stored[name] is not None] == []
    assert stored["sample_gain_ratio"] is None
    assert stored["sample_delay_s"] == pytest.approx(0.0036, abs=0.0003)
    assert profile.counter_tick_s == ASSUMED.counter_tick_s, "who must go on has something to go on with"
    assert [reason.code for reason in profile.reasons] == ["counter_unreadable"]
    assert profile_from_json(stored, "stored") == profile


def test_without_samples_the_counter_and_the_fields_are_still_measured() -> None:
    trace, loads_ns = made_up(1, Sensor())
    profile = characterise(replace(trace, samples=Trace().samples), loads_ns)
    stored = profile.as_json()
    assert stored["counter_tick_s"] == pytest.approx(0.1, abs=1e-5)
    assert stored["instant_period_s"] == pytest.approx(0.1017, abs=1e-4)
    assert [stored[name] for name in ("sample_delay_s", "response_s", "sample_period_s", "counter_delay_s")] == [
        None
    ] * 4
    assert [stored[name] for name in ("instant_delay_s", "average_window_s", "steps")] == [None] * 3


def test_without_polled_fields_theirs_are_null() -> None:
    trace, loads_ns = made_up(1, Sensor())
    stored = characterise(replace(trace, polled=Trace().polled), loads_ns).as_json()
    assert [name for name in stored if name.startswith(("instant", "average")) and stored[name] is not None] == []


def test_a_counter_that_is_read_too_seldom_shows_no_tick() -> None:
    trace, loads_ns = made_up(1, Sensor())
    every = slice(None, None, 60)
    channel = trace.counter
    seldom = type(channel)(channel.call_ns[every], channel.return_ns[every], channel.energy_j[every])
    profile = characterise(replace(trace, counter=seldom), loads_ns)
    assert {"counter_tick_s", "counter_delay_s"} <= set(profile.missing)
    assert profile.counter_call_s is not None
    assert [reason.code for reason in profile.reasons] == ["counter_tick_unseen"]


def test_no_steps_are_an_error_that_says_what_is_needed() -> None:
    trace, loads_ns = made_up(1, Sensor())
    with pytest.raises(InputError, match="too few usable steps of power among 0 edges"):
        characterise(trace, np.empty((0, 2), np.int64))
    with pytest.raises(InputError, match="6 are needed"):
        characterise(trace, loads_ns[:2])
    flat = record(np.random.default_rng(1), Sensor(), (loads_ns - loads_ns[0, 0]) * 1e-9 + 2, high_w=121.0)
    with pytest.raises(InputError, match="too few usable steps"):
        characterise(flat, loads_ns)


def test_loads_that_overlap_or_an_empty_recording_are_refused() -> None:
    trace, loads_ns = made_up(1, Sensor(), count=4)
    with pytest.raises(InputError, match="not intervals in order"):
        characterise(trace, loads_ns[::-1])
    with pytest.raises(InputError, match="recording is empty"):
        characterise(Trace(), loads_ns)


def test_whose_recording_it_is_stands_in_the_profile() -> None:
    trace, loads_ns = made_up(2, Sensor())
    profile = characterise(
        trace, loads_ns, RecordedBoard("GPU-1", "580.1", "A board", "2026-01-01T00:00:00Z"), live=True
    )
    assert (profile.uuid, profile.driver, profile.name, profile.origin) == ("GPU-1", "580.1", "A board", "measured")
    assert profile_from_json(profile.as_json(), "stored") == profile
