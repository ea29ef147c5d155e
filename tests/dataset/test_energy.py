# SPDX-License-Identifier: Apache-2.0
"""energy.json as it is read: whole, or corrupt by name; runs without one are as good as before."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pybench.campaign.directory import RunDirectory
from pybench.campaign.layout import ENERGY, ENERGY_COUNTER, POWER_POLLED, POWER_SAMPLES
from pybench.case import Case
from pybench.dataset import load
from pybench.dataset.energy import read_recording
from pybench.errors import CorruptError
from tests.support.campaigns import CampaignBuilder
from tests.support.energies import ON_A_BOARD, SENSOR, energy_metrics, energy_window, store_energy

INFER = Case(workload="infer", model="digits-cnn", runtime="torch")


def one_run(folder: Path, **options: Any) -> tuple[CampaignBuilder, RunDirectory]:
    builder = CampaignBuilder(folder / "c", [INFER], repetitions=1)
    directory = builder.run(INFER, 1, energy_metrics(), **{"environment": ON_A_BOARD, **options})
    store_energy(directory, energy_window())
    return builder, directory


def test_a_runs_budget_is_read_with_the_campaign(tmp_path: Path) -> None:
    builder, directory = one_run(tmp_path)
    board = load(builder.path).energies[INFER.id, 1]
    assert board.directory == directory
    assert board.sensor == SENSOR
    assert board.spans == {"timing": (0.0, 1.0)}
    (window,) = board.windows
    stored = energy_window()
    assert {name: getattr(window, name) for name in stored} == stored | {"reasons": ()}


def test_a_run_without_a_gpu_has_no_budget(tmp_path: Path) -> None:
    builder = CampaignBuilder(tmp_path / "c", [INFER], repetitions=1)
    builder.run(INFER, 1, {"latency_mean_ms": 1.0})
    assert load(builder.path).energies == {}


def test_a_window_without_idle_windows_has_no_net_and_no_tail(tmp_path: Path) -> None:
    builder, directory = one_run(tmp_path)
    window = {name: value for name, value in energy_window().items() if not name.endswith(("net_j", "tail_j"))}
    del window["tail_end_s"]
    store_energy(directory, window | {"idle_before_w": None, "idle_after_w": None})
    read = load(builder.path).energies[INFER.id, 1].windows[0]
    assert (read.net_j, read.u_net_j, read.tail_j, read.tail_end_s, read.idle_before_w) == (None,) * 5


def test_what_a_later_version_adds_does_not_break_reading(tmp_path: Path) -> None:
    builder, directory = one_run(tmp_path)
    store_energy(directory, energy_window(colour="blue"), SENSOR | {"humidity_ratio": 0.4})
    assert load(builder.path).energies[INFER.id, 1].sensor["humidity_ratio"] == 0.4


@pytest.mark.parametrize(
    "edit",
    [
        lambda stored: stored.update(schema_version=99),
        lambda stored: stored.pop("sensor"),
        lambda stored: stored.update(windows=[]),
        lambda stored: stored.update(windows={}),
        lambda stored: stored["sensor"].pop("response_s"),
        lambda stored: stored["sensor"].update(response_s=0.0),
        lambda stored: stored["windows"][0].pop("window"),
        lambda stored: stored["windows"][0].pop("energy_j"),
        lambda stored: stored["windows"][0].update(energy_j="600"),
        lambda stored: stored["windows"][0].update(energy_j=float("nan")),
        lambda stored: stored["windows"][0].update(iterations=1.5),
        lambda stored: stored["windows"][0].update(valid=1),
        lambda stored: stored["windows"][0].update(reasons="none"),
        lambda stored: stored["windows"][0].update(parts_j={"edges": "small"}),
        lambda stored: stored["windows"][0].update(end_s=-1.0),
        lambda stored: stored["windows"][0].update(tail_j=[]),
    ],
)
def test_a_budget_of_the_wrong_shape_is_corrupt_and_named(tmp_path: Path, edit: Callable[[Any], Any]) -> None:
    builder, directory = one_run(tmp_path)
    stored = json.loads(directory.file(ENERGY).read_text())
    edit(stored)
    directory.file(ENERGY).write_text(json.dumps(stored))
    with pytest.raises(CorruptError, match=ENERGY):
        load(builder.path)


def test_a_truncated_budget_is_corrupt(tmp_path: Path) -> None:
    builder, directory = one_run(tmp_path)
    directory.file(ENERGY).write_bytes(directory.file(ENERGY).read_bytes()[:100])
    with pytest.raises(CorruptError, match=ENERGY):
        load(builder.path)


def test_a_budget_whose_times_count_from_nowhere_is_corrupt(tmp_path: Path) -> None:
    builder, _ = one_run(tmp_path, environment={"schema_version": 1})
    with pytest.raises(CorruptError, match="begin_ns"):
        load(builder.path)


def test_failed_readings_are_left_out_and_a_channel_that_was_not_recorded_is_empty(tmp_path: Path) -> None:
    _, directory = one_run(tmp_path)
    recording = read_recording(directory)
    assert len(recording.samples_s) == 81
    assert recording.instant_w.size == 0
    assert recording.counter_s.shape == (5, 2)
    directory.file(POWER_SAMPLES).unlink()
    assert read_recording(directory).samples_w.size == 0


def test_times_are_the_sums_of_gaps_and_lengths_also_over_a_failed_reading(tmp_path: Path) -> None:
    _, directory = one_run(tmp_path)
    table = "gap_ns,call_ns,energy_j,energy_code\n-3000000,1000000,1.5,0\n5000000,7000000,,9\n100,200,2.5,0\n"
    directory.file(ENERGY_COUNTER).write_text(table)
    recording = read_recording(directory)
    assert recording.counter_s.tolist() == [[-0.003, -0.002], [0.0100001, 0.0100003]]
    assert recording.counter_j.tolist() == [1.5, 2.5]


def test_the_absolute_times_of_an_older_pybench_are_read_as_well(tmp_path: Path) -> None:
    _, directory = one_run(tmp_path)
    directory.file(POWER_SAMPLES).write_text("time_s,power_w\n-0.25,100.0\n0.5,120.5\n")
    directory.file(POWER_POLLED).write_text("call_s,return_s,power_instant_w\n0.25,0.75,90.0\n1.0,1.5,\n")
    recording = read_recording(directory)
    assert (recording.samples_s.tolist(), recording.samples_w.tolist()) == ([-0.25, 0.5], [100.0, 120.5])
    assert (recording.instant_s.tolist(), recording.instant_w.tolist()) == ([0.5], [90.0])


def test_a_channel_that_is_no_table_of_numbers_is_corrupt_and_named(tmp_path: Path) -> None:
    _, directory = one_run(tmp_path)
    for content in (
        "gap_ns,power_w\n,1.5\n100,2.5\n",
        "gap_ns,power_w\n100,many\n",
        "gap_ns\n100\n",
        "gap_ns,power_w\nmany,1\n",
        "power_w\n1\n",
        "",
    ):
        directory.file(POWER_SAMPLES).write_text(content)
        with pytest.raises(CorruptError, match=POWER_SAMPLES):
            read_recording(directory)


def test_the_absolute_uncertainty_is_a_column_like_the_others(tmp_path: Path) -> None:
    builder, _ = one_run(tmp_path)
    frame = load(builder.path).frame
    rows = frame.filter(metric="gpu_energy_j").select("value", "u_standard", "u_absolute").rows()
    assert rows == [(600.0, 5.0, 13.0)]
