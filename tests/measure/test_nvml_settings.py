# SPDX-License-Identifier: Apache-2.0
"""NVML's setters and their getters, each with NVML's code, against the replay library; never against a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybench import _native
from pybench.measure import board_facts, gpus, may_set
from pybench.measure.board_ranges import read_ranges
from tests.measure.replay import SECOND_UUID, TRACE, UUID, Boards

INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND = 2, 3, 4, 6


def opened(boards: Boards, index: int = 0) -> tuple[_native.NvmlDevice, _native.NvmlSettings]:
    device = _native.open_nvml(boards.library).devices()[index]
    return device, _native.NvmlSettings(device)


def test_several_devices_are_told_apart_by_uuid(boards: Boards) -> None:
    assert [gpu.uuid for gpu in gpus(boards.library).gpus] == [UUID, SECOND_UUID]


def test_a_power_limit_is_set_and_read_back_on_its_own_device_only(boards: Boards) -> None:
    device, settings = opened(boards)
    _, other = opened(boards, 1)
    assert settings.power_limit_mw().value == 700_000
    assert settings.set_power_limit_mw(300_000) == 0
    assert settings.power_limit_mw().value == device.power_limit_mw().value == 300_000
    assert other.power_limit_mw().value == 700_000
    assert (boards.told(UUID), boards.told(SECOND_UUID)) == (["power_limit_mw 300000"], [])


def test_a_limit_out_of_range_is_refused_with_nvmls_code(boards: Boards) -> None:
    _, settings = opened(boards)
    power = settings.power_range()
    assert (power.code, power.minimum_mw, power.maximum_mw) == (0, 200_000, 700_000)
    assert settings.set_power_limit_mw(199_999) == INVALID_ARGUMENT
    assert settings.set_power_limit_mw(700_001) == INVALID_ARGUMENT
    assert boards.told() == []


def test_clocks_are_locked_and_reset(boards: Boards) -> None:
    device, settings = opened(boards)
    unlocked = (device.clock_mhz(1).value, device.clock_mhz(2).value)
    assert unlocked == (1980, 3201)
    assert settings.lock_sm_clock_mhz(1200) == settings.lock_memory_clock_mhz(1593) == 0
    assert (device.clock_mhz(1).value, device.clock_mhz(2).value) == (1200, 1593)
    assert settings.reset_sm_clock() == settings.reset_memory_clock() == 0
    assert (device.clock_mhz(1).value, device.clock_mhz(2).value) == unlocked
    assert boards.told() == ["sm_lock_mhz 1200 1200", "memory_lock_mhz 1593 1593", "sm_reset", "memory_reset"]


def test_the_clocks_that_a_lock_can_ask_for_are_listed_in_order(boards: Boards) -> None:
    _, settings = opened(boards)
    assert settings.memory_clocks_mhz().list_mhz == [1593, 3201]
    sm = settings.sm_clocks_mhz(3201)
    assert (sm.code, sm.list_mhz[0], sm.list_mhz[-1], len(sm.list_mhz)) == (0, 345, 1980, 110)
    assert sm.list_mhz == sorted(sm.list_mhz)
    assert settings.sm_clocks_mhz(1).code == NOT_FOUND


def test_without_permission_every_setter_says_so(boards: Boards, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYBENCH_REPLAY_SETTERS", "0")
    _, settings = opened(boards)
    codes = [
        settings.set_power_limit_mw(300_000),
        settings.lock_sm_clock_mhz(1200),
        settings.reset_sm_clock(),
        settings.lock_memory_clock_mhz(1593),
        settings.reset_memory_clock(),
    ]
    assert codes == [NO_PERMISSION] * 5
    assert boards.told() == []


def test_a_device_that_cannot_be_set_says_so(boards: Boards, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYBENCH_REPLAY_STATE")
    device, settings = opened(boards)
    assert settings.set_power_limit_mw(300_000) == settings.lock_sm_clock_mhz(1200) == NOT_SUPPORTED
    assert (settings.power_limit_mw().value, settings.power_limit_mw().code) == (None, NOT_SUPPORTED)
    assert settings.power_range().code == settings.memory_clocks_mhz().code == NOT_SUPPORTED
    ranges = read_ranges(device)
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
    assert "999" in _native.open_nvml(boards.library).reason
