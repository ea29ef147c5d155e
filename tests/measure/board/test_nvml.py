# SPDX-License-Identifier: Apache-2.0
"""NVML's facts and setters through pynvml, each with NVML's code, against the replay library; never against a GPU."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pybench import _native
from pybench.measure import board_facts, gpus, may_set
from pybench.measure.board.nvml import (
    INVALID_ARGUMENT,
    MEMORY_CLOCK,
    NO_PERMISSION,
    NOT_FOUND,
    NOT_SUPPORTED,
    SM_CLOCK,
    NvmlBoard,
    NvmlError,
    open_nvml,
)
from pybench.measure.board.ranges import read_ranges
from tests.measure.replay import SECOND_UUID, TRACE, UUID, Boards


def opened(boards: Boards, uuid: str = UUID) -> NvmlBoard:
    board = open_nvml(boards.library).board(uuid)
    assert board is not None
    return board


def code_of(ask: Callable[..., object], *arguments: int) -> int:
    """NVML's code for refusing a call."""
    with pytest.raises(NvmlError) as refused:
        ask(*arguments)
    return refused.value.code


def test_several_devices_are_told_apart_by_uuid(boards: Boards) -> None:
    assert [gpu.uuid for gpu in gpus(boards.library).gpus] == [UUID, SECOND_UUID]
    assert open_nvml(boards.library).board("GPU-1") is None


def test_python_and_cpp_open_the_same_library_and_know_the_same_boards(boards: Boards) -> None:
    """The environment names it: the sampler and the settings must not talk to two drivers."""
    ours, theirs = open_nvml(), _native.open_nvml()
    assert ours.path == theirs.path == boards.library
    assert ours.driver == theirs.driver_version == "replay"
    assert [(b.uuid, b.name) for b in ours.boards] == [(d.uuid, d.name) for d in theirs.devices()]


@pytest.mark.parametrize(("library", "why"), [("libabsent.so", "libabsent.so"), ("libm.so.6", "NVML code 13")])
def test_what_is_no_nvml_has_no_boards_and_says_why(library: str, why: str) -> None:
    found = open_nvml(library)
    assert found.boards == ()
    assert why in (found.reason or "")


def test_another_library_takes_the_place_of_the_one_before(boards: Boards) -> None:
    assert open_nvml("libm.so.6").boards == ()
    assert len(open_nvml(boards.library).boards) == 2


def test_a_worker_that_sets_no_board_does_not_import_pynvml() -> None:
    asked = "import sys, pybench.measure; sys.exit('pynvml' in sys.modules)"
    assert subprocess.run([sys.executable, "-P", "-c", asked]).returncode == 0


def test_a_power_limit_is_set_and_read_back_on_its_own_device_only(boards: Boards) -> None:
    board, other = opened(boards), opened(boards, SECOND_UUID)
    assert board.power_limit_mw() == 700_000
    board.set_power_limit_mw(300_000)
    assert board.power_limit_mw() == board.limit_in_force_mw() == 300_000
    assert other.power_limit_mw() == 700_000
    assert (boards.told(UUID), boards.told(SECOND_UUID)) == (["power_limit_mw 300000"], [])


def test_a_limit_out_of_range_is_refused_with_nvmls_code(boards: Boards) -> None:
    board = opened(boards)
    assert board.power_range_mw() == (200_000, 700_000)
    assert code_of(board.set_power_limit_mw, 199_999) == INVALID_ARGUMENT
    assert code_of(board.set_power_limit_mw, 700_001) == INVALID_ARGUMENT
    assert boards.told() == []


def test_clocks_are_locked_and_reset(boards: Boards) -> None:
    board = opened(boards)

    def clocks() -> tuple[int, int]:
        return board.clock_mhz(SM_CLOCK), board.clock_mhz(MEMORY_CLOCK)

    unlocked = clocks()
    assert unlocked == (1980, 3201)
    board.lock_sm_clock_mhz(1200)
    board.lock_memory_clock_mhz(1593)
    assert clocks() == (1200, 1593)
    board.reset_sm_clock()
    board.reset_memory_clock()
    assert clocks() == unlocked
    assert boards.told() == ["sm_lock_mhz 1200 1200", "memory_lock_mhz 1593 1593", "sm_reset", "memory_reset"]


def test_the_clocks_that_a_lock_can_ask_for_are_listed_in_order(boards: Boards) -> None:
    board = opened(boards)
    assert board.memory_clocks_mhz() == [1593, 3201]
    sm = board.sm_clocks_mhz(3201)
    assert (sm[0], sm[-1], len(sm)) == (345, 1980, 110)
    assert sm == sorted(sm)
    assert code_of(board.sm_clocks_mhz, 1) == NOT_FOUND


def test_without_permission_every_setter_says_so(boards: Boards, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYBENCH_REPLAY_SETTERS", "0")
    board = opened(boards)
    codes = [
        code_of(board.set_power_limit_mw, 300_000),
        code_of(board.lock_sm_clock_mhz, 1200),
        code_of(board.reset_sm_clock),
        code_of(board.lock_memory_clock_mhz, 1593),
        code_of(board.reset_memory_clock),
    ]
    assert codes == [NO_PERMISSION] * 5
    assert boards.told() == []


def test_a_device_that_cannot_be_set_says_so(boards: Boards, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYBENCH_REPLAY_STATE")
    board = opened(boards)
    asked = (board.power_limit_mw, board.power_range_mw, board.memory_clocks_mhz)
    assert {code_of(ask) for ask in asked} == {NOT_SUPPORTED}
    assert code_of(board.set_power_limit_mw, 300_000) == code_of(board.lock_sm_clock_mhz, 1200) == NOT_SUPPORTED
    ranges = read_ranges(board)
    assert ranges.as_json() == {}
    assert ranges.allows("power_limit_w", 1)


def test_what_a_board_takes_is_found_without_setting_anything(boards: Boards) -> None:
    ranges = board_facts(boards.library)[SECOND_UUID]["ranges"]
    assert ranges["power_limit_w"] == {"takes": "200 to 700 W", "range": (200.0, 700.0)}
    assert ranges["sm_clock_mhz"]["takes"] == "345, 360, ..., 1965, 1980 MHz"
    assert ranges["memory_clock_mhz"] == {"takes": "1593, 3201 MHz", "clocks": (1593, 3201)}
    assert not boards.log.exists()


@pytest.mark.parametrize(("mask", "allowed"), [("000001ffffffffff", True), ("00000000a80425fb", False), ("0", False)])
def test_who_may_set_is_asked_of_the_kernel(tmp_path: Path, mask: str, allowed: bool) -> None:
    """The second mask is that of root in a container without further rights: all of Docker's default capabilities."""
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/status").write_text(f"Name:\tx\nCapEff:\t{mask}\n")
    assert may_set(tmp_path) is allowed


def test_a_trace_that_cannot_be_played_fails_the_library_for_all_devices(
    boards: Boards, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYBENCH_REPLAY_TRACE", f"{TRACE}:/nonexistent")
    assert open_nvml(boards.library).reason == f"{boards.library}: NVML code 999 (Unknown Error)"
