# SPDX-License-Identifier: Apache-2.0
"""The comparison of ways to measure energy: its reference on a counter that is known, and all of it on 80 s cut from a
live recording of six kernels."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from bench.energy import compare
from bench.energy.compare import FUSED, FUSED_SESSION
from bench.energy.recording import REPORTED, TUNING, Recording, Windows, read_recording
from bench.energy.reference import Reference, find_reference
from pybench.errors import InputError
from pybench.measure.energy.profile import ASSUMED
from pybench.measure.energy.trace import CounterChannel, PolledChannel, Trace
from pybench.measure.sensor.characterise import characterise

SIX_KERNELS = Path(__file__).parents[1] / "measure" / "data" / "h200-six-kernels"
LAG_S = ASSUMED.counter_delay_s
IDLE_W = 120.0
Numbers = NDArray[np.float64]


@cache
def cut() -> Recording:
    return read_recording(SIX_KERNELS)


@cache
def judged(half: str) -> compare.Judged:
    """The cut against the reference of the two whole recordings, with a profile from its own tuning half."""
    with (SIX_KERNELS / "reference.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    keys = [(row["kernel"], float(row["nominal_s"])) for row in rows]
    reference = Reference(
        {row["kernel"]: float(row["long_j"]) for row in rows},
        {key: float(row["first_j"]) for key, row in zip(keys, rows, strict=True)},
        {key: float(row["variation"]) for key, row in zip(keys, rows, strict=True)},
        dict.fromkeys(keys, np.nan),
    )
    profile = characterise(cut().trace, cut().edges_ns(cut().windows.of_half(TUNING)))
    return compare.judge(cut(), half, profile, reference)


@pytest.mark.parametrize("method", [FUSED, FUSED_SESSION])
@pytest.mark.parametrize(("length_s", "most"), [(0.2, 0.02), (0.5, 0.01), (1.0, 0.01)])
def test_six_live_kernels_are_measured_to_one_or_two_percent(method: str, length_s: float, most: float) -> None:
    both = judged("all")
    chosen = both.nominal_s == length_s
    assert chosen.sum() >= 7
    assert compare.median_error(both.error["first", method][chosen])[0] <= most


@pytest.mark.parametrize("method", [FUSED, FUSED_SESSION])
def test_the_interval_holds_the_kernels_own_figure_and_is_not_wide(method: str) -> None:
    both = judged("all")
    assert compare.coverage(both.error["first", method], both.u[method])[0] >= 0.9
    assert compare.half_width(both.u[method][both.nominal_s == 0.5]) <= 0.03


def test_polling_and_other_tools_miss_what_short_windows_cost() -> None:
    both = judged("all")
    working = (both.nominal_s == 0.2) & (both.kernel != "tiny_launches")  # which draws hardly more than at rest
    for method, least in {"average 10 Hz": 0.5, "instant 10 Hz": 0.1, "counter difference": 0.05, "Zeus": 0.05}.items():
        median, count = compare.median_error(both.error["first", method][working])
        assert count > 0
        assert median > least, method


def test_the_halves_share_no_window() -> None:
    windows = cut().windows
    tuning, reported = windows.of_half(TUNING), windows.of_half(REPORTED)
    assert not np.any(tuning & reported)
    assert np.all(tuning | reported)
    assert len(judged(TUNING).kernel) + len(judged(REPORTED).kernel) == len(judged("all").kernel)


def test_a_session_reads_the_counter_seldom_and_at_the_edges() -> None:
    seldom = cut().with_session_counter().counter
    assert len(seldom.call_ns) < 0.04 * len(cut().trace.counter.call_ns)
    assert np.all(np.diff(seldom.call_ns) >= 0)
    before, after = cut().edge_readings()
    dense = cut().trace.counter
    assert np.all(dense.return_ns[before] <= cut().windows.begin_ns)
    assert np.all(dense.call_ns[after] >= cut().windows.end_ns)


def test_a_poller_at_10_hz_polls_ten_times_a_second() -> None:
    time_ns = np.arange(0, 5_000_000_000, 10_000_000)
    power_w = np.arange(500.0)
    trace = Trace(polled=PolledChannel(time_ns, power_w, power_w))
    polled = recording_of(trace).polled_at_10_hz().polled
    np.testing.assert_array_equal(np.diff(polled.time_ns), 100_000_000)
    np.testing.assert_array_equal(polled.instant_w, power_w[::10])


def recording_of(trace: Trace, windows: Windows | None = None, progress: list[tuple[Numbers, Numbers]] | None = None
) -> Recording:  # fmt: skip
    none = np.empty(0)
    nothing = Windows(np.empty(0, str), none, none.astype(np.int64), none.astype(np.int64), none, {})
    return Recording("made up", "board", trace, windows or nothing, progress or [])


def recorded(kernel: str, power_w: Numbers, step_s: float, begins_s: list[float], length_s: float, period_s: float
) -> Recording:  # fmt: skip
    """A board whose power is given in steps, and a counter that shows its energy behind a first-order lag."""
    kept = np.exp(-step_s / LAG_S)
    shown_w = np.empty_like(power_w)
    state_w = IDLE_W
    for index, each_w in enumerate(power_w):
        state_w = each_w + (state_w - each_w) * kept
        shown_w[index] = state_w
    at_s = np.arange(len(power_w) + 1) * step_s
    counted_j = np.concatenate(([0.0], np.cumsum(shown_w) * step_s))
    middle_s = np.arange(0.0, at_s[-1], 0.0069)
    energy_j = np.interp(np.floor((middle_s - 0.043) / 0.1) * 0.1 + 0.043, at_s, counted_j)
    call_ns = np.round((middle_s - 0.0015) * 1e9).astype(np.int64)
    begin_s = np.array(begins_s)
    iterations = np.full(len(begin_s), np.floor(length_s / period_s))
    windows = Windows(
        np.full(len(begin_s), kernel), np.full(len(begin_s), length_s), np.round(begin_s * 1e9).astype(np.int64),
        np.round((begin_s + length_s) * 1e9).astype(np.int64), iterations, {},
    )  # fmt: skip
    share = np.linspace(0, 1, round(iterations[0]) * 10 + 1)
    progress = [(each + share * length_s, share * iterations[0]) for each in begin_s]
    trace = Trace(counter=CounterChannel(call_ns, call_ns + 3_000_000, energy_j))
    return recording_of(trace, windows, progress)


def test_the_reference_finds_what_a_steady_kernel_costs_from_the_counter_alone() -> None:
    step_s = 0.0005
    power_w = np.full(round(60 / step_s), IDLE_W)
    for begin_s in (5.013, 30.078):
        power_w[round(begin_s / step_s) : round((begin_s + 10) / step_s)] = 600.0
    recording = recorded("memory", power_w, step_s, [5.013, 30.078], 10.0, 0.001)
    reference = find_reference([recording], ASSUMED, [0.2, 1.0])
    assert reference.long_j["memory"] == pytest.approx(0.6, rel=5e-4)
    assert reference.first_j["memory", 1.0] == pytest.approx(0.6, rel=2e-3)
    assert reference.first_j["memory", 0.2] == pytest.approx(0.6, rel=6e-3)
    assert reference.first_variation["memory", 0.2] < 6e-3
    assert reference.long_variation["memory", 0.2] < 6e-3


def test_a_kernels_own_variation_against_long_windows_holds_what_they_gain_with_time() -> None:
    # From 594 W to 606 W within the first second, then steady: short windows cost less an iteration than long ones.
    step_s = 0.0005
    power_w = np.full(round(60 / step_s), IDLE_W)
    for begin_s in (5.013, 30.078):
        first = round(begin_s / step_s)
        rising = np.minimum(594.0 + 12.0 * np.arange(round(10 / step_s)) * step_s, 606.0)
        power_w[first : first + len(rising)] = rising
    recording = recorded("memory", power_w, step_s, [5.013, 30.078], 10.0, 0.001)
    reference = find_reference([recording], ASSUMED, [0.5, 5.0])
    assert reference.first_variation["memory", 0.5] < 2e-3
    assert reference.long_variation["memory", 0.5] == pytest.approx(0.014, rel=0.2)
    assert reference.long_variation["memory", 5.0] < 3e-3


@pytest.mark.parametrize("begin_s", [5.013, 5.044, 5.071])
def test_the_reference_sees_through_a_kernel_that_alternates_with_the_counter(begin_s: float) -> None:
    # 50 ms at 700 W and 50 ms at 200 W, in step with a tick of 100 ms: every tick sees the same place of an iteration.
    step_s = 0.0005
    power_w = np.full(round(60 / step_s), IDLE_W)
    begins_s = [begin_s, begin_s + 20.0275]
    for each_s in begins_s:
        time_s = np.arange(round(10 / step_s)) * step_s
        first = round(each_s / step_s)
        power_w[first : first + len(time_s)] = np.where(np.mod(time_s + 1e-9, 0.1) < 0.05, 700.0, 200.0)
    recording = recorded("bursts_50", power_w, step_s, begins_s, 10.0, 0.1)
    reference = find_reference([recording], ASSUMED, [0.2, 0.5])
    assert reference.long_j["bursts_50"] == pytest.approx(45.0, rel=3e-3)
    assert reference.first_j["bursts_50", 0.2] == pytest.approx(45.0, rel=0.02)
    assert reference.first_j["bursts_50", 0.5] == pytest.approx(45.0, rel=0.01)


def test_the_interval_of_a_coverage_is_clopper_and_pearsons() -> None:
    error = np.array([0.0] * 9 + [0.5])
    share, low, high = compare.coverage(error, np.full(10, 0.01))
    assert share == 0.9
    assert low == pytest.approx(0.5550, abs=1e-4)  # Clopper and Pearson (1934), 9 of 10
    assert high == pytest.approx(0.9975, abs=1e-4)


def test_a_window_that_a_tool_did_not_measure_does_not_count() -> None:
    assert compare.median_error(np.array([0.1, np.nan, -0.3])) == (pytest.approx(0.2), 2)
    assert compare.median_error(np.array([np.nan]))[1] == 0


def test_every_table_and_row_is_written(tmp_path: Path) -> None:
    lines = compare.report(judged("all"), "all")
    assert sum("| all | 0.2 |" in line for line in lines) == 4
    assert sum(line.endswith(("| yes |", "| no |")) for line in lines) == 2 * 2 * 4
    compare.write_csv(tmp_path / "figures.csv", judged("all"))
    with (tmp_path / "figures.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    kinds = {(row["kernel"], row["nominal_s"]) for row in rows}
    assert len(rows) == len(kinds) * len(compare.METHODS) * 2
    assert {row["coverage"] == "" for row in rows if row["method"] == "Zeus"} == {True}


def test_the_command_takes_older_recordings_and_a_stored_profile(tmp_path: Path) -> None:
    older = SIX_KERNELS.parent / "h200-kernels"
    stored = tmp_path / "profile.json"
    stored.write_text(json.dumps(ASSUMED.as_json()))
    command = [
        sys.executable,
        "-P",
        str(Path(__file__).parents[2] / "bench" / "energy" / "compare.py"),
        str(older),
        "--profile",
        str(stored),
        "--half",
        "all",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "| resnet50_fp16_b32 | 5 |" in done.stdout
    assert "`fused` against the bounds" in done.stdout


def test_a_folder_without_a_counter_is_named(tmp_path: Path) -> None:
    (tmp_path / "samples.csv").write_text("t_us,power_w\n0,100\n20000,101\n40000,102\n")
    with pytest.raises(InputError, match="no counter"):
        read_recording(tmp_path)
