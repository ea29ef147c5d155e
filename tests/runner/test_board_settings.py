# SPDX-License-Identifier: Apache-2.0
"""Campaigns whose cases set a replayed board: what is stored, and the board as before whoever is killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pybench.campaign.directory import CampaignDirectory
from pybench.case import Case
from pybench.cli import main
from pybench.launcher import FileAccess, LocalLauncher
from pybench.launcher.launch import Launched, Output
from pybench.machine import Machine
from pybench.measure import may_set
from tests.measure.replay import UUID, Boards, play_boards
from tests.runner.conftest import Run, plan_content
from tests.runner.machines import WillingMachine
from tests.runner.test_campaign import interrupt_twice, start_runner, worker_pids
from tests.support.waiting import wait_for

CAPPED_AND_BACK = ["power_limit_mw 300000", "power_limit_mw 700000"]


@pytest.fixture
def boards(replay_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Boards:
    return play_boards(replay_library, tmp_path, monkeypatch)


def capped(**factors: Any) -> Case:
    """The board at rest at 300 W."""
    return Case(**{"workload": "noop", "device": UUID, "power_limit_w": 300, "iterations": 10, **factors})


def records(campaign: CampaignDirectory) -> list[dict[str, Any]]:
    return [found.read_run() for found in campaign.runs()]


def test_a_run_stores_what_was_wanted_before_applied_and_restored(
    boards: Boards, campaign: CampaignDirectory, run: Run
) -> None:
    tally, _ = run(plan_content([capped(sm_clock_mhz=1200, energy_window_s=0.5)], 2))
    assert tally.is_success
    for found in campaign.runs():
        measuring = found.read_environment()["measuring"]
        assert measuring["board_settings"] == {
            "uuid": UUID,
            "power_limit_w": {"wanted": 300, "before": 700.0, "applied": 300.0, "restored": 700.0, "is_restored": True},
            "sm_clock_mhz": {"wanted": 1200, "before": None, "applied": 1200.0, "restored": None, "is_restored": True},
        }
        assert (measuring["gpu"]["power_limit_w"], measuring["gpu"]["sm_clock_mhz"]) == (300.0, 1200.0)
        assert found.read_summary()["labels"]["device"] == UUID
        rows = found.file("clocks.csv").read_text().splitlines()
        limits = {row.split(",")[rows[0].split(",").index("power_limit_w")] for row in rows[1:]}
        assert limits == {"300.0"}, "the samples begin and end inside the setting"
    assert boards.told() == ["power_limit_mw 300000", "sm_lock_mhz 1200 1200", "power_limit_mw 700000", "sm_reset"] * 2


def test_a_case_that_asks_for_nothing_sets_nothing(boards: Boards, campaign: CampaignDirectory, run: Run) -> None:
    tally, _ = run(plan_content([capped(power_limit_w=None)], 1))
    assert tally.is_success
    assert boards.told() == []
    assert next(campaign.runs()).read_environment()["measuring"]["board_settings"] is None


def test_without_permission_the_run_is_unsupported(
    boards: Boards, campaign: CampaignDirectory, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYBENCH_REPLAY_SETTERS", "0")
    run(plan_content([capped()], 1))
    [record] = records(campaign)
    assert (record["outcome"], record["reason"]) == ("unsupported", "no_permission")
    assert "run as root" in record["detail"]


def test_what_could_not_be_put_back_is_stored_with_the_run(
    boards: Boards, campaign: CampaignDirectory, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYBENCH_REPLAY_SETTERS", "1")
    run(plan_content([capped()], 1))
    [record] = records(campaign)
    [caution] = [caution for caution in record["cautions"] if caution["code"] == "setting_not_restored"]
    assert f"nvidia-smi -i {UUID} -pl 700" in caution["detail"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_worker_that_is_ended_leaves_the_board_as_before_and_the_run_is_repeated(
    boards: Boards, campaign: CampaignDirectory, number: signal.Signals
) -> None:
    content = plan_content([capped(energy_window_s=100)], 1)
    for attempt in (1, 2):
        process = start_runner(campaign, content)
        wait_for(lambda told=CAPPED_AND_BACK * attempt: boards.told() == told[:-1])
        os.kill(worker_pids(campaign)[0], number)
        assert process.wait(timeout=60) == 1
        wait_for(lambda: not boards.record().exists())
        assert boards.told() == CAPPED_AND_BACK * attempt
        [record] = records(campaign)
        assert (record["attempt"], record["outcome"]) == (attempt, "killed")


def test_a_runner_that_is_killed_leaves_the_board_as_before(boards: Boards, campaign: CampaignDirectory) -> None:
    process = start_runner(campaign, plan_content([capped(energy_window_s=100)], 1))
    wait_for(boards.told)
    process.kill()
    process.wait()
    wait_for(lambda: not boards.record().exists())
    assert boards.told() == CAPPED_AND_BACK
    wait_for(lambda: not worker_pids(campaign))


@dataclass(frozen=True)
class OnceCapped(LocalLauncher):
    """Starts workers, and waits until they have set the board."""

    boards: Boards

    def start(
        self, arguments: Sequence[str], access: FileAccess, stdout: Output, stderr: Output, *, own_session: bool
    ) -> Launched:
        before = self.boards.told()
        worker = super().start(arguments, access, stdout, stderr, own_session=own_session)
        wait_for(lambda: self.boards.told() != before)
        return worker


def test_a_run_that_is_interrupted_or_takes_too_long_leaves_the_board_as_before(
    boards: Boards, campaign: CampaignDirectory, run: Run
) -> None:
    content = plan_content([capped(energy_window_s=100)], 1)
    process = start_runner(campaign, content)
    wait_for(boards.told)
    interrupt_twice(process)
    assert process.wait(timeout=60) == 130
    wait_for(lambda: not boards.record().exists())
    assert boards.told() == CAPPED_AND_BACK
    tally, _ = run(content, timeout_s=0.5, machine=WillingMachine(launcher=OnceCapped(boards)))
    assert dict(tally.outcomes) == {"timeout": 1}
    wait_for(lambda: not boards.record().exists())
    assert boards.told() == CAPPED_AND_BACK * 2


def test_the_probing_worker_says_what_the_board_takes_and_sets_nothing(boards: Boards) -> None:
    cases = [capped(), capped(power_limit_w=100), capped(sm_clock_mhz=1201), capped(memory_clock_mhz=1593)]
    machine = Machine.ask(cases)
    refusals = [machine.unsupported(case) for case in cases]
    codes = [refusal and refusal.reason.stored_code for refusal in refusals]
    assert not boards.log.exists()
    if not may_set():
        assert {*codes} - {None} == {"no_permission"}
        return
    assert codes == [None, "setting_out_of_range", "setting_out_of_range", None]
    assert refusals[1] is not None
    assert "takes 200 to 700 W" in refusals[1].message


PLAN = f"""\
schema_version: 1
name: caps
repetitions: 2
defaults: {{device: {UUID}, iterations: 10, energy_window_s: 0.2}}
matrix:
  - workload: noop
    power_limit_w: [null, 300, 100]
"""


def test_a_plan_of_caps_runs_from_end_to_end(
    boards: Boards, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "caps.yaml"
    plan.write_text(PLAN)
    campaign = CampaignDirectory(tmp_path / "results")
    assert main(["run", str(plan), "--out", str(campaign.path)]) == 0, capsys.readouterr()
    outcomes = {found.read_case().power_limit_w: found.read_run() for found in campaign.runs()}
    assert outcomes[None]["outcome"] == "ok"
    assert outcomes[300]["outcome"] == ("ok" if may_set() else "unsupported")
    assert (outcomes[100]["outcome"], outcomes[100]["reason"]) == (
        "unsupported", "setting_out_of_range" if may_set() else "no_permission"
    )  # fmt: skip
    assert boards.told() == (CAPPED_AND_BACK * 2 if may_set() else [])
    assert main(["check", str(campaign.path)]) == 0
