# SPDX-License-Identifier: Apache-2.0
"""A board is set, read back, and as before afterwards, however the run ends. Against the replay library; never a GPU.

The log of the replay library says what a board was told by any process; its last word is what the board is at.
"""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest

from pybench.catalogue.cautions import CautionCode
from pybench.errors import PybenchError, UnsupportedError
from pybench.measure import BoardSettings
from tests.measure.replay import SECOND_UUID, TRACE, UUID, Boards

pytestmark = pytest.mark.process  # a guardian, beside each board that is set

CAP = {"power_limit_w": 300, "sm_clock_mhz": None, "memory_clock_mhz": None}
ALL = {"power_limit_w": 300, "sm_clock_mhz": 1200, "memory_clock_mhz": 1593}
NOTHING = dict.fromkeys(CAP)
CAPPED_AND_BACK = ["power_limit_mw 300000", "power_limit_mw 700000"]


def codes(board: BoardSettings) -> list[CautionCode]:
    return [caution.code for caution in board.cautions()]


# --- a run that ends by itself ----------------------------------------------------------------------------------------


def test_all_settings_are_in_force_inside_and_as_before_outside(boards: Boards) -> None:
    with BoardSettings(UUID, ALL) as board:
        assert boards.told() == ["power_limit_mw 300000", "sm_lock_mhz 1200 1200", "memory_lock_mhz 1593 1593"]
        assert json.loads(boards.record().read_text())["settings"]["power_limit_w"]["before_mw"] == 700_000
        board.check()
    assert boards.told()[3:] == ["power_limit_mw 700000", "sm_reset", "memory_reset"]
    assert board.cautions() == []
    assert not boards.record().exists()
    clock = {"before": None, "restored": None, "is_restored": True}
    assert board.facts() == {
        "uuid": UUID,
        "power_limit_w": {"wanted": 300, "before": 700.0, "applied": 300.0, "restored": 700.0, "is_restored": True},
        "sm_clock_mhz": {"wanted": 1200, "applied": 1200.0, **clock},
        "memory_clock_mhz": {"wanted": 1593, "applied": 1593.0, **clock},
    }


def test_only_what_is_asked_for_is_set(boards: Boards) -> None:
    with BoardSettings(UUID, {**NOTHING, "sm_clock_mhz": 1200}):
        pass
    assert boards.told() == ["sm_lock_mhz 1200 1200", "sm_reset"]
    with BoardSettings(UUID, NOTHING) as untouched:
        untouched.check()
    assert len(boards.told()) == 2
    assert (untouched.facts(), untouched.cautions()) == (None, [])


def test_a_limit_that_was_not_the_default_is_what_comes_back(boards: Boards) -> None:
    boards.log.write_text(f"{UUID} 1 power_limit_mw 450500\n")
    with BoardSettings(UUID, CAP):
        pass
    assert boards.told()[-1] == "power_limit_mw 450500"


def test_an_exception_passes_through_and_the_board_is_as_before(boards: Boards) -> None:
    with pytest.raises(RuntimeError, match="out of luck"), BoardSettings(UUID, CAP):
        raise RuntimeError("out of luck")
    assert boards.told() == CAPPED_AND_BACK


def test_it_waits_until_the_board_shows_what_was_set(boards: Boards, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYBENCH_REPLAY_SETTING_DELAY_MS", "300")
    begin = time.monotonic()
    with BoardSettings(UUID, ALL) as board:
        assert time.monotonic() - begin >= 0.3
        assert board.facts()["sm_clock_mhz"]["applied"] == 1200  # type: ignore[index]


def test_two_boards_are_set_at_the_same_time(boards: Boards) -> None:
    with BoardSettings(UUID, CAP), BoardSettings(SECOND_UUID, {**NOTHING, "power_limit_w": 250}):
        assert (boards.told(UUID)[-1], boards.told(SECOND_UUID)[-1]) == (
            "power_limit_mw 300000",
            "power_limit_mw 250000",
        )
    assert boards.told(UUID)[-1] == boards.told(SECOND_UUID)[-1] == "power_limit_mw 700000"


# --- what cannot be set -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "takes"),
    [
        ({"power_limit_w": 199}, "takes 200 to 700 W"),
        ({"power_limit_w": 701}, "takes 200 to 700 W"),
        ({"sm_clock_mhz": 1201}, "takes 345, 360, ..., 1965, 1980 MHz"),
        ({"memory_clock_mhz": 9999}, "takes 1593, 3201 MHz"),
    ],
)
def test_what_the_board_does_not_take_is_refused_with_what_it_takes(
    boards: Boards, wanted: dict[str, int], takes: str
) -> None:
    with pytest.raises(UnsupportedError, match=takes) as refused, BoardSettings(UUID, wanted):
        pass
    assert refused.value.reason.stored_code == "setting_out_of_range"
    assert boards.told() == []


def test_without_permission_nothing_is_set_and_the_hint_says_how_to_get_it(
    boards: Boards, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYBENCH_REPLAY_SETTERS", "0")
    for wanted, what in ((CAP, "power limit of 300 W"), ({"sm_clock_mhz": 1200}, "SM clock of 1200 MHz")):
        with pytest.raises(UnsupportedError, match=f"no permission to set the {what}") as refused:
            BoardSettings(UUID, wanted).__enter__()
        assert refused.value.reason.stored_code == "no_permission"
        assert "run as root" in str(refused.value)
    assert boards.told() == []


def test_what_was_set_before_a_refusal_is_put_back(boards: Boards, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYBENCH_REPLAY_REFUSED", "sm_")
    with pytest.raises(UnsupportedError) as refused:
        BoardSettings(UUID, {**CAP, "sm_clock_mhz": 1200}).__enter__()
    assert refused.value.reason.stored_code == "no_permission"
    assert boards.told() == CAPPED_AND_BACK
    assert not boards.record().exists()


def test_a_board_that_cannot_be_set_at_all_is_unsupported(boards: Boards, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYBENCH_REPLAY_STATE")
    with pytest.raises(UnsupportedError, match="cannot be set: power limit") as refused, BoardSettings(UUID, CAP):
        pass
    assert refused.value.reason.stored_code == "setting_unsupported"


@pytest.mark.parametrize(("uuid", "code"), [(None, "no_gpu"), ("GPU-1", "no_such_board")])
def test_a_case_without_a_board_cannot_set_one(boards: Boards, uuid: str | None, code: str) -> None:
    with pytest.raises(UnsupportedError) as refused, BoardSettings(uuid, CAP):
        pass
    assert refused.value.reason.stored_code == code


def test_a_board_without_nvml_cannot_be_set(boards: Boards) -> None:
    with pytest.raises(UnsupportedError, match="libabsent") as refused:
        BoardSettings(UUID, CAP, nvml_library="libabsent.so").__enter__()
    assert refused.value.reason.stored_code == "no_nvml"


def test_a_limit_that_reads_back_as_another_is_an_error_and_is_put_back(
    boards: Boards, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYBENCH_REPLAY_POWER_STEP_W", "50")
    with pytest.raises(PybenchError, match=r"power limit of 333 W: the board .* reads back 300\.0 W"):
        BoardSettings(UUID, {"power_limit_w": 333}).__enter__()
    assert boards.told() == CAPPED_AND_BACK


def test_a_clock_that_the_board_does_not_show_and_does_not_explain_is_an_error(
    boards: Boards, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYBENCH_REPLAY_SM_CEILING_MHZ", "1500")
    with pytest.raises(PybenchError, match=r"SM clock of 1800 MHz: .* took it and shows 1500 MHz"):
        BoardSettings(UUID, {"sm_clock_mhz": 1800}).__enter__()
    assert boards.told() == ["sm_lock_mhz 1800 1800", "sm_reset"]


def with_reasons(folder: Path, reasons: int) -> str:
    """The trace, with one clocks event reason throughout."""
    shutil.copytree(TRACE, folder)
    rows = "".join(f"{time_us},1980,50,{reasons}\n" for time_us in (0, 3_500_000))
    (folder / "clocks.csv").write_text(f"t_us,sm_mhz,temperature_c,event_reasons\n{rows}")
    return str(folder)


def test_a_clock_that_the_power_cap_lowers_is_a_caution(
    boards: Boards, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYBENCH_REPLAY_TRACE", with_reasons(tmp_path / "capped", 0x04))
    monkeypatch.setenv("PYBENCH_REPLAY_SM_CEILING_MHZ", "1500")
    with BoardSettings(UUID, {"sm_clock_mhz": 1800}) as board:
        board.check()
    [caution] = board.cautions()
    assert caution.code is CautionCode.SETTING_NOT_HELD
    assert caution.detail == "SM clock 1800 MHz asked for, 1500 shown (software power cap)"
    assert board.facts()["sm_clock_mhz"]["applied"] == 1500  # type: ignore[index]


def test_an_idle_board_need_not_show_its_clock(boards: Boards, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYBENCH_REPLAY_TRACE", with_reasons(tmp_path / "idle", 0x01))
    monkeypatch.setenv("PYBENCH_REPLAY_SM_CEILING_MHZ", "345")
    with BoardSettings(UUID, {"sm_clock_mhz": 1800}) as board:
        board.check()
    assert board.cautions() == []
    assert board.facts()["sm_clock_mhz"]["applied"] is None  # type: ignore[index]


def test_a_limit_that_somebody_changes_during_the_run_is_a_caution(boards: Boards) -> None:
    with BoardSettings(UUID, CAP) as board:
        with boards.log.open("a") as log:
            log.write(f"{UUID} 1 power_limit_mw 400000\n")
        board.check()
    assert codes(board) == [CautionCode.SETTING_NOT_HELD]
    assert boards.told()[-1] == "power_limit_mw 700000"


# --- what cannot be put back ------------------------------------------------------------------------------------------


def test_what_cannot_be_put_back_is_a_loud_caution_with_the_command(
    boards: Boards, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYBENCH_REPLAY_SETTERS", "2")
    with BoardSettings(UUID, {**CAP, "sm_clock_mhz": 1200}) as board:
        pass
    [caution] = board.cautions()
    assert caution.code is CautionCode.SETTING_NOT_RESTORED
    assert f"nvidia-smi -i {UUID} -pl 700" in caution.detail
    assert f"nvidia-smi -i {UUID} -rgc" in caution.detail
    assert "Insufficient Permissions" in caution.detail
    assert board.facts()["power_limit_w"] | {"before": 700.0} == {  # type: ignore[index]
        "wanted": 300, "before": 700.0, "applied": 300.0, "restored": 300.0, "is_restored": False,
    }  # fmt: skip
    assert boards.record().exists()


def test_after_an_error_a_board_that_is_not_as_before_is_the_error(
    boards: Boards, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYBENCH_REPLAY_SETTERS", "1")
    with pytest.raises(PybenchError, match=r"out of luck.*not as before.*-pl 700"), BoardSettings(UUID, CAP):
        raise RuntimeError("out of luck")
