# SPDX-License-Identifier: Apache-2.0
"""The sensor profiles of a campaign: stored, else measured, else assumed; once, and the same when it is continued."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from pybench import runner
from pybench.campaign import storage
from pybench.campaign.directory import CampaignDirectory, read_json
from pybench.campaign.recipe import Recipe
from pybench.campaign.resolved_plan import parse_resolved_plan
from pybench.case import Case
from pybench.catalogue.causes import Cause
from pybench.errors import UnsupportedError
from pybench.machine import profiles
from pybench.machine.sensor import Board
from pybench.measure import ASSUMED
from tests.runner.conftest import Run, noop_cases, plan_content
from tests.runner.listening import Quiet
from tests.runner.machines import WillingMachine

BOARD = Board(0, "GPU-1", "A board", "580.1")
MEASURED = replace(ASSUMED, uuid="GPU-1", driver="580.1", origin="measured", name="A board").as_json()


@pytest.fixture(autouse=True)
def _store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(profiles.FOLDER_VARIABLE, str(tmp_path / "sensors"))


@dataclass(frozen=True)
class Bench(WillingMachine):
    """Measures boards, and remembers."""

    error: UnsupportedError | None = None
    takes_s: float = 0.0
    measured: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    def measure_sensor(self, board: Board) -> profiles.Profile:
        self.measured.append(board.uuid)
        time.sleep(self.takes_s)
        if self.error:
            raise self.error
        return {**MEASURED, "uuid": board.uuid, "steps": len(self.measured)}

    def source(self, *, wanted: bool = True) -> runner.SensorSource:
        return runner.SensorSource(self, wanted, self.told.append, lambda: False)


def test_a_board_without_a_profile_is_measured_once_and_kept_twice(campaign: CampaignDirectory) -> None:
    bench = Bench()
    for _ in range(2):
        runner.prepare_sensors(campaign, [BOARD], bench.source())
    assert bench.measured == ["GPU-1"]
    assert read_json(campaign.sensor("GPU-1"))["steps"] == 1
    assert profiles.find("GPU-1", "580.1") == read_json(campaign.sensor("GPU-1"))
    assert bench.told == ["measuring the power sensor of A board once, about a minute (--no-sensor: assume one)"]
    assert [entry.name for entry in campaign.sensor("GPU-1").parent.iterdir()] == ["GPU-1.json"], "no claim stays"


def test_a_stored_profile_is_used_and_said_nothing_of(campaign: CampaignDirectory) -> None:
    profiles.store(MEASURED)
    bench = Bench()
    runner.prepare_sensors(campaign, [BOARD], bench.source(wanted=False))
    assert read_json(campaign.sensor("GPU-1")) == MEASURED
    assert bench.measured == bench.told == []


def test_a_continued_campaign_keeps_its_profile_when_the_board_was_measured_again(campaign: CampaignDirectory) -> None:
    profiles.store(MEASURED)
    runner.prepare_sensors(campaign, [BOARD], Bench().source())
    profiles.store({**MEASURED, "steps": 99})
    runner.prepare_sensors(campaign, [BOARD], Bench().source())
    assert read_json(campaign.sensor("GPU-1")) == MEASURED


def test_a_profile_of_another_driver_is_not_used_and_it_says_so(campaign: CampaignDirectory) -> None:
    profiles.store({**MEASURED, "driver": "570.9"})
    bench = Bench()
    runner.prepare_sensors(campaign, [BOARD], bench.source())
    assert bench.measured == ["GPU-1"]
    assert bench.told[0] == "GPU-1 was measured under driver 570.9, but this machine has driver 580.1"


def test_a_campaign_that_goes_on_under_another_driver_measures_the_board_again(campaign: CampaignDirectory) -> None:
    profiles.store(MEASURED)
    runner.prepare_sensors(campaign, [BOARD], Bench().source())
    later = {**MEASURED, "driver": "590.1"}
    profiles.store(later)
    for _ in range(2):
        runner.prepare_sensors(campaign, [replace(BOARD, driver="590.1")], Bench().source(wanted=False))
    assert list(campaign.read_sensors().values()) == [MEASURED, later]


def test_without_measuring_nothing_is_stored_and_it_says_that_one_is_assumed(campaign: CampaignDirectory) -> None:
    bench = Bench()
    runner.prepare_sensors(campaign, [BOARD], bench.source(wanted=False))
    assert not campaign.sensor("GPU-1").exists()
    assert bench.measured == []
    assert bench.told[0].startswith("the power sensor of GPU-1 is assumed, not measured")


def test_a_board_that_cannot_be_measured_stops_no_campaign(campaign: CampaignDirectory) -> None:
    bench = Bench(error=UnsupportedError("2 other processes use this GPU", code=Cause.GPU_BUSY))
    runner.prepare_sensors(campaign, [BOARD, replace(BOARD, uuid="GPU-2")], bench.source())
    assert bench.measured == ["GPU-1", "GPU-2"]
    assert bench.told[1] == "the power sensor of GPU-1 is assumed, not measured: 2 other processes use this GPU"


def test_an_unreadable_stored_profile_is_measured_again(campaign: CampaignDirectory) -> None:
    profiles.store(MEASURED).write_text("half a f")
    bench = Bench()
    runner.prepare_sensors(campaign, [BOARD], bench.source())
    assert bench.measured == ["GPU-1"]
    assert "cannot be read" in bench.told[0]
    assert profiles.find("GPU-1", "580.1") is not None


def test_of_two_runners_one_measures_and_the_other_waits(campaign: CampaignDirectory, monkeypatch: Any) -> None:
    bench, other = Bench(takes_s=0.8), Bench()
    first = threading.Thread(target=runner.prepare_sensors, args=(campaign, [BOARD], bench.source()))
    first.start()
    while not bench.measured:
        time.sleep(0.01)
    # A claim of the asker's own counts as dead: the second runner is another process.
    monkeypatch.setattr("pybench.runner.sensors.is_dead", lambda path, claimant: False)
    runner.prepare_sensors(campaign, [BOARD], other.source())
    first.join()
    assert (bench.measured, other.measured) == (["GPU-1"], [])


def test_the_dead_claim_of_a_killed_runner_is_passed_over(campaign: CampaignDirectory) -> None:
    held = campaign.sensor("GPU-1").with_name(".GPU-1.attempt-01.claim")
    held.parent.mkdir(parents=True)
    held.write_text("{}")
    bench = Bench()
    runner.prepare_sensors(campaign, [BOARD], bench.source())
    assert bench.measured == ["GPU-1"]


@dataclass(frozen=True)
class OneBoard(Bench):
    """Has one board, and takes every case to use it."""

    asked: list[list[Case]] = field(default_factory=list)
    before: CampaignDirectory | None = None
    """The campaign, which must not have begun when the boards are asked for."""

    def boards(self, cases: Sequence[Case]) -> list[Board]:
        assert self.before is None or list(self.before.started()) == []
        self.asked.append(list(cases))
        return [BOARD]

    def recipes(self, case: Case) -> Mapping[str, Recipe]:
        assert self.asked, "making an engine has an energy, which needs the sensor"
        return {}


def test_sensors_are_prepared_before_artefacts_and_runs_and_only_when_something_is_to_do(
    campaign: CampaignDirectory, run: Run
) -> None:
    cases, machine = noop_cases(2), OneBoard(before=campaign)
    for _ in range(2):
        assert run(plan_content(cases, 1), machine)[0].is_success
    assert [{case.id for case in each} for each in machine.asked] == [{case.id for case in cases}]
    assert machine.measured == ["GPU-1"]
    assert campaign.sensor("GPU-1").exists()


def test_sensors_are_prepared_where_only_artefacts_are_made(campaign: CampaignDirectory) -> None:
    machine, plan = OneBoard(), parse_resolved_plan(plan_content(noop_cases(1), 1))
    assert runner.make_artefacts(campaign, plan, runner.Options(), machine, Quiet()) == ({}, None)
    assert machine.measured == ["GPU-1"]


def test_who_wants_no_measuring_is_told_that_a_sensor_is_assumed(run: Run) -> None:
    machine = OneBoard()
    _, listener = run(plan_content(noop_cases(1), 1), machine, may_measure_sensors=False)
    assert machine.measured == []
    assert listener.notes == [
        "the power sensor of GPU-1 is assumed, not measured: no profile is stored, and --no-sensor was given"
    ]


def test_a_damaged_profile_in_the_campaign_fails_the_run_and_is_named(campaign: CampaignDirectory, run: Run) -> None:
    content = plan_content(noop_cases(1), 1)
    runner.open_for_running(campaign, content, "")
    storage.make_folder(campaign.sensor("GPU-1").parent)
    storage.write_json(campaign.sensor("GPU-1"), {**MEASURED, "sample_delay_s": "soon"})
    tally, _ = run(content)
    (record,) = campaign.runs()
    assert not tally.is_success
    assert record.read_run()["outcome"] == "build_failed"
    assert 'GPU-1.json: sample_delay_s is "soon"' in str(record.read_run())
