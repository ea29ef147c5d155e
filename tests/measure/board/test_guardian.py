# SPDX-License-Identifier: Apache-2.0
"""Runs that are killed, what they leave behind, and two runs on one board: it is always as before in the end.

Against the replay library, whose log says what a board was told by any process; never against a GPU.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pybench.catalogue.cautions import CautionCode
from pybench.errors import PybenchError, UsageError
from pybench.measure import BoardSettings
from pybench.measure.board.claim import boot_id
from tests.measure.board.test_settings import CAP, CAPPED_AND_BACK, NOTHING, codes
from tests.measure.replay import SECOND_UUID, UUID, Boards
from tests.support.waiting import wait_for

# --- a run that is killed ---------------------------------------------------------------------------------------------

HOLD = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job's children inherit that they are ignored
signal.signal(signal.SIGHUP, signal.SIG_DFL)
from pybench.measure import BoardSettings
with BoardSettings(sys.argv[1], {"power_limit_w": 300, "sm_clock_mhz": 1200}, lock_wait_s=60) as board:
    print(board._claim._guardian.pid, flush=True)
    time.sleep(600)
"""


def hold(uuid: str = UUID) -> tuple[subprocess.Popen[bytes], int]:
    """A process that holds a board at 300 W and 1200 MHz, and the pid of its guardian."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", HOLD, uuid], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def end(process: subprocess.Popen[bytes]) -> bytes:
    """What a process that was killed has written to stderr, its guardian's words included."""
    _, said = process.communicate(timeout=120)
    return said


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGSEGV])
def test_a_worker_that_a_signal_ends_leaves_the_board_as_it_was(boards: Boards, number: signal.Signals) -> None:
    process, _ = hold()
    os.killpg(process.pid, number)
    end(process)
    assert process.returncode in (-number, 1)
    wait_for(lambda: not boards.record().exists())
    assert boards.told() == ["power_limit_mw 300000", "sm_lock_mhz 1200 1200", "power_limit_mw 700000", "sm_reset"]


def test_a_child_of_the_worker_that_lives_on_does_not_keep_the_board_changed(boards: Boards) -> None:
    """A process forked by a framework holds the worker's descriptors, and yet the guardian sees its end."""
    forking = HOLD.replace("    time.sleep(600)", "    import os\n    os.fork() or os.setsid()\n    time.sleep(600)")
    process = subprocess.Popen([sys.executable, "-P", "-c", forking, UUID], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    wait_for(lambda: len(children.read_text().split()) == 2)
    time.sleep(0.1)
    family = [int(pid) for pid in children.read_text().split()]
    process.kill()
    try:
        wait_for(lambda: boards.told()[-1:] == ["sm_reset"])
    finally:
        for pid in family:
            if is_python_child(pid):
                os.kill(pid, signal.SIGKILL)
        process.stdout.close()
        process.wait()


def is_python_child(pid: int) -> bool:
    try:
        return b"BoardSettings" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def test_the_signals_of_a_shutdown_do_not_end_the_guardian(boards: Boards) -> None:
    process, guardian = hold()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(guardian, number)
    process.kill()
    end(process)
    wait_for(lambda: not boards.record().exists())
    assert boards.told()[-1] == "sm_reset"


def test_a_worker_whose_guardian_was_killed_restores_by_itself(boards: Boards) -> None:
    with BoardSettings(UUID, CAP) as board:
        assert board._claim is not None
        assert board._claim._guardian is not None
        board._claim._guardian.kill()
        board._claim._guardian.wait()
    assert boards.told() == CAPPED_AND_BACK
    assert board.facts()["power_limit_w"]["is_restored"] is True  # type: ignore[index]


def test_a_record_that_somebody_removed_during_the_run_is_not_needed_by_it(boards: Boards) -> None:
    with BoardSettings(UUID, CAP) as board:
        boards.record().unlink()
    assert boards.told() == CAPPED_AND_BACK
    assert board.facts()["power_limit_w"]["is_restored"] is True  # type: ignore[index]


def test_the_guardian_leads_a_session_and_imports_nothing_heavy(boards: Boards) -> None:
    process, guardian = hold()
    try:
        assert os.getsid(guardian) == guardian
        mapped = Path(f"/proc/{guardian}/maps").read_text()
        assert "libpybench_replay_nvml" in mapped, "without NVML this would prove nothing"
        assert "numpy" not in mapped
    finally:
        process.kill()
        end(process)


def test_a_guardian_that_cannot_restore_says_how_to_do_it_by_hand(
    boards: Boards, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYBENCH_REPLAY_SETTERS", "2")
    process, _ = hold()
    process.kill()
    said = end(process).decode()
    assert f"nvidia-smi -i {UUID} -pl 700" in said
    assert boards.record().exists()


# --- what a killed run leaves behind ----------------------------------------------------------------------------------


def kill_all() -> int:
    """A run and its guardian killed at once, as by the end of a container; returns the run's pid."""
    process, guardian = hold()
    os.kill(guardian, signal.SIGKILL)
    process.kill()
    end(process)
    return process.pid


def test_the_next_run_restores_the_original_and_not_what_the_killed_one_had_set(boards: Boards) -> None:
    pid = kill_all()
    assert boards.told()[-1] == "sm_lock_mhz 1200 1200"
    with BoardSettings(UUID, {**NOTHING, "power_limit_w": 250}) as board:
        assert board.facts()["power_limit_w"]["before"] == 700  # type: ignore[index]
    assert boards.told()[2:] == ["power_limit_mw 700000", "sm_reset", "power_limit_mw 250000", "power_limit_mw 700000"]
    [caution] = board.cautions()
    assert caution.code is CautionCode.SETTINGS_LEFT_BEHIND
    assert f"process {pid}" in caution.detail


def test_a_run_that_sets_nothing_restores_what_was_left_behind_too(boards: Boards) -> None:
    kill_all()
    with BoardSettings(SECOND_UUID, NOTHING):
        assert boards.told()[-1] == "sm_lock_mhz 1200 1200"
    with BoardSettings(UUID, NOTHING) as board:
        assert boards.told()[-2:] == ["power_limit_mw 700000", "sm_reset"]
    assert codes(board) == [CautionCode.SETTINGS_LEFT_BEHIND]
    assert not boards.record().exists()


def test_a_limit_that_somebody_has_set_since_is_left_to_them(boards: Boards) -> None:
    kill_all()
    with boards.log.open("a") as log:
        log.write(f"{UUID} 1 power_limit_mw 500000\n")
    with BoardSettings(UUID, NOTHING):
        pass
    assert boards.told()[-2:] == ["power_limit_mw 500000", "sm_reset"]
    assert not boards.record().exists()


def test_a_record_of_before_a_restart_is_forgotten(boards: Boards) -> None:
    kill_all()
    boards.record().write_text(boards.record().read_text().replace(boot_id(), "another boot"))
    with BoardSettings(UUID, NOTHING) as board:
        pass
    assert board.cautions() == []
    assert boards.told()[-1] == "sm_lock_mhz 1200 1200"
    assert not boards.record().exists()


def test_what_was_left_behind_and_cannot_be_restored_stops_a_run_that_would_set_more(
    boards: Boards, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_all()
    monkeypatch.setenv("PYBENCH_REPLAY_SETTERS", "2")
    with pytest.raises(PybenchError, match="not as it was before a run that was killed") as stopped:
        BoardSettings(UUID, CAP).__enter__()
    assert "-pl 700" in str(stopped.value)
    with BoardSettings(UUID, NOTHING) as board:
        pass
    assert codes(board) == [CautionCode.SETTING_NOT_RESTORED]


def test_a_record_that_cannot_be_read_is_not_guessed_at(boards: Boards) -> None:
    kill_all()
    boards.record().write_text("{}")
    with pytest.raises(PybenchError, match="are unknown"):
        BoardSettings(UUID, CAP).__enter__()


# --- two runs on one board --------------------------------------------------------------------------------------------


def test_a_board_that_another_run_holds_is_refused_with_its_process(boards: Boards) -> None:
    process, _ = hold()
    try:
        with pytest.raises(UsageError, match=rf"held by another run \(process {process.pid}\)"):
            BoardSettings(UUID, CAP, lock_wait_s=0.2).__enter__()
        with BoardSettings(SECOND_UUID, CAP):
            pass
        with BoardSettings(UUID, NOTHING, lock_wait_s=0.2) as board:
            pass
    finally:
        process.kill()
        end(process)
    assert codes(board) == [CautionCode.SETTINGS_OF_ANOTHER_RUN]
    assert boards.told()[2:] in ([], ["power_limit_mw 700000", "sm_reset"])


def test_a_run_waits_for_the_guardian_of_one_that_was_killed(boards: Boards) -> None:
    process, _ = hold()
    process.kill()
    with BoardSettings(UUID, {**NOTHING, "power_limit_w": 250}, lock_wait_s=60) as board:
        assert boards.told()[2:] == ["power_limit_mw 700000", "sm_reset", "power_limit_mw 250000"]
    end(process)
    assert board.facts()["power_limit_w"]["before"] == 700  # type: ignore[index]
    assert board.cautions() == []


def test_six_runs_at_once_take_turns_and_leave_the_board_as_it_was(boards: Boards) -> None:
    turn = HOLD.replace("time.sleep(600)", "time.sleep(0.05)")
    runs = [subprocess.Popen([sys.executable, "-P", "-c", turn, UUID], stdout=subprocess.DEVNULL) for _ in range(6)]
    assert [run.wait(timeout=120) for run in runs] == [0] * 6
    one = ["power_limit_mw 300000", "sm_lock_mhz 1200 1200", "power_limit_mw 700000", "sm_reset"]
    assert boards.told() == one * 6
