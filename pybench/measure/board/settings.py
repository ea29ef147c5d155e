# SPDX-License-Identifier: Apache-2.0
"""A board's power limit and clocks while one run is measured: set what the case asks, read back, put back afterwards.

    with BoardSettings(uuid, {"power_limit_w": 300, "sm_clock_mhz": None, "memory_clock_mhz": None}) as board:
        ...                       # the limit is in force here
        board.check()             # after a window: does the board still hold it?
    board.facts(), board.cautions()

Nothing is set that the case leaves at null. Before anything is set the board is claimed, what was before is on the
disk, and a guardian is ready to restore it (`claim`, `guardian`). It is restored at the end of the context, by an
exception, and when the worker is killed. Where the guardian was killed as well, the next run restores what was left
behind. Values that such a run changed are never taken for the original ones.

NVML reads a power limit back exactly. It does not read a clock lock back at all: what is compared is the clock itself.
What was locked before is not known, so a lock of the administrator's is gone after the run. A lock is no promise
either: at the power cap, or hot, the board lowers the clock; then the run carries a caution.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from types import TracebackType
from typing import Any, Self

from pybench.catalogue.causes import Cause
from pybench.catalogue.cautions import Caution, CautionCode
from pybench.errors import PybenchError, UnsupportedError, UsageError
from pybench.measure.board import guardian, nvml
from pybench.measure.board.claim import LOCK_WAIT_S, BoardClaim, is_changed, read_leftover
from pybench.measure.board.guardian import Record, Restored
from pybench.measure.board.nvml import THROTTLE_BITS, told
from pybench.measure.board.ranges import MILLI, UNITS, WORDS, read_ranges

IN_FORCE_WAIT_S = (
    2.0  # the driver applies a limit or lock within some 10 ms; an idle board may not show its clock at all
)
POLL_S = 0.01
CLOCK_STEP_MHZ = 15  # the step of NVIDIA's SM clocks: what is nearer is the same clock
IDLE_BIT = 0x01  # nvmlClocksEventReasonGpuIdle: the clock shown is the idle one
EXPLAINING_BITS = IDLE_BIT | sum(THROTTLE_BITS)
LIMIT_STEP_W = 1.0  # a board may keep a limit in whole watts; what is nearer was set by the run that recorded it

PERMISSION_HINT = "run as root (in a container with CAP_SYS_ADMIN), or leave the factor out of the plan"


class BoardSettings:
    """One board around one measurement. `uuid` None: the case runs on no GPU, which is an error if it asks for one."""

    def __init__(
        self,
        uuid: str | None,
        wanted: Mapping[str, int | None],
        *,
        nvml_library: str | None = None,
        lock_wait_s: float = LOCK_WAIT_S,
    ) -> None:
        self._uuid = uuid
        self._wanted = {name: value for name, value in wanted.items() if value is not None}
        self._library = nvml_library
        self._lock_wait_s = lock_wait_s
        self._claim: BoardClaim | None = None
        self._settings: dict[str, dict[str, Any]] = {}
        self._cautions: list[Caution] = []

    def __enter__(self) -> Self:
        if not self._wanted:
            self._look_after_others()
            return self
        library, self._board = self._open()
        self._claim = BoardClaim(self._board.uuid, library, self._lock_wait_s)
        try:
            self._put_back_leftover(self._claim)
            self._refuse_impossible()
            before = self._read_before()
            self._claim.guard()
            for name, setting in before.items():
                self._set(self._claim, name, setting)
            self._await_force()
        except BaseException as error:
            self._release(error)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._release(error)

    def check(self) -> None:
        """Whether the board holds what was set, now: for the end of a window. What it does not hold is a caution."""
        if self._claim is not None:
            self._doubt(self._deviations())

    def facts(self) -> dict[str, Any] | None:
        """What was wanted, before, applied and restored, for environment.json; None where nothing was asked for.

        `applied`: as read back once in force; null for a clock that an idle board did not show. `before` and
        `restored` of a clock are null: NVML has no reading of a lock. `is_restored`: NVML took it, and the power limit
        reads as before.
        """
        return {"uuid": self._uuid, **self._settings} if self._settings else None

    def cautions(self) -> list[Caution]:
        """What the settings give reason to doubt."""
        return list(dict.fromkeys(self._cautions))

    # --- before ------------------------------------------------------------------------------------------------------

    def _open(self) -> tuple[str, nvml.NvmlBoard]:
        """The path of NVML's library, and the board."""
        asked = ", ".join(self._wanted)
        if self._uuid is None:
            raise UnsupportedError(f"{asked} sets a GPU's board, and this case runs on the CPU", code=Cause.NO_GPU)
        opened = nvml.open_nvml(self._library)
        if opened.reason is not None:
            raise UnsupportedError(
                f"{asked} is set through NVML, which is not available: {opened.reason}", code=Cause.NO_NVML
            )
        board = opened.board(self._uuid)
        if board is None:
            raise UnsupportedError(f"{asked}: NVML finds no board {self._uuid}", code=Cause.NO_SUCH_BOARD)
        return opened.path, board

    def _refuse_impossible(self) -> None:
        ranges = read_ranges(self._board, self._wanted)
        for name, value in self._wanted.items():
            if not ranges.allows(name, value):
                what = f"{WORDS[name]} of {value} {UNITS[name]}: the board {self._board.name} {self._uuid} takes "
                raise UnsupportedError(what + str(ranges.takes(name)), code=Cause.SETTING_OUT_OF_RANGE)

    def _read_before(self) -> Record:
        """What is to be restored, as the record keeps it. Raises where that cannot be known."""
        before: Record = {name: {"wanted": value} for name, value in self._wanted.items()}
        self._settings = {
            name: {"wanted": value, "before": None, "applied": None, "restored": None, "is_restored": None}
            for name, value in self._wanted.items()
        }
        if "power_limit_w" in before:
            try:
                limit_mw = self._board.power_limit_mw()
            except nvml.NvmlError as error:
                raise self._refused("power_limit_w", error) from error
            before["power_limit_w"]["before_mw"] = limit_mw
            self._settings["power_limit_w"]["before"] = limit_mw * MILLI
        return before

    def _look_after_others(self) -> None:
        """For a run that asks for nothing: is the board as it was before some other run, or made so again?"""
        if self._uuid is None or not is_changed(self._uuid):
            return
        opened = nvml.open_nvml(self._library)
        board = opened.board(self._uuid)
        if board is None:
            return
        self._board = board
        try:
            claim = BoardClaim(self._uuid, opened.path, self._lock_wait_s)
        except UsageError as error:
            self._cautions.append(Caution(CautionCode.SETTINGS_OF_ANOTHER_RUN, error.message))
            return
        try:
            self._put_back_leftover(claim)
        finally:
            claim.release(board)

    def _put_back_leftover(self, claim: BoardClaim) -> None:
        """Restores what a run left whose guardian was killed too. A limit that somebody has set since is theirs."""
        record = read_leftover(claim.uuid)
        if record is None:
            return
        left: Record = record["settings"]
        now_w, limit = _watts(told(self._board.power_limit_mw)), left.get("power_limit_w")
        if limit is not None and now_w is not None and abs(now_w - limit["wanted"]) >= LIMIT_STEP_W:
            del left["power_limit_w"]
        restored = guardian.restore(self._board, left, claim.record)
        self._report_failures(restored)
        if restored and not any(each["problem"] for each in restored.values()):
            detail = f"{', '.join(restored)}, changed by process {record['worker_pid']}, put back before this run"
            self._cautions.append(Caution(CautionCode.SETTINGS_LEFT_BEHIND, detail))
        elif restored and self._wanted:
            raise PybenchError(
                f"the board {claim.uuid} is not as it was before a run that was killed: {self._cautions[-1].detail}",
                hint="nothing is set on it before that is put right",
            )

    # --- setting -----------------------------------------------------------------------------------------------------

    def _set(self, claim: BoardClaim, name: str, setting: Record) -> None:
        claim.will_set(name, setting)
        board, value = self._board, self._wanted[name]
        try:
            if name == "power_limit_w":
                board.set_power_limit_mw(value * 1000)
            elif name == "sm_clock_mhz":
                board.lock_sm_clock_mhz(value)
            else:
                board.lock_memory_clock_mhz(value)
        except nvml.NvmlError as error:
            claim.was_refused(name)
            raise self._refused(name, error) from error
        kept_w = _watts(told(board.power_limit_mw)) if name == "power_limit_w" else value
        if kept_w != value:
            raise PybenchError(
                f"{WORDS[name]} of {value} {UNITS[name]}: the board {self._uuid} reads back {kept_w} {UNITS[name]}",
                hint="use a value that the board keeps",
            )

    def _refused(self, name: str, error: nvml.NvmlError) -> PybenchError:
        what = f"{WORDS[name]} of {self._wanted[name]} {UNITS[name]} on {self._board.name} {self._uuid}"
        if error.code == nvml.NO_PERMISSION:
            return UnsupportedError(f"no permission to set the {what}", code=Cause.NO_PERMISSION, hint=PERMISSION_HINT)
        if error.code in (nvml.NOT_SUPPORTED, nvml.FUNCTION_NOT_FOUND):
            return UnsupportedError(f"the board cannot be set: {what}: {error}", code=Cause.SETTING_UNSUPPORTED)
        if error.code == nvml.INVALID_ARGUMENT:
            return UnsupportedError(f"the board does not take it: {what}: {error}", code=Cause.SETTING_OUT_OF_RANGE)
        return PybenchError(f"the {what} could not be set: {error}")

    def _await_force(self) -> None:
        """Waits until the board shows what was set. An idle board may not; one that is throttled gets a caution."""
        until = time.monotonic() + IN_FORCE_WAIT_S
        while (off := self._deviations()) and time.monotonic() < until:
            time.sleep(POLL_S)
        for name, shown in off.items():
            if name == "power_limit_w" or not self._reasons() & EXPLAINING_BITS:
                raise PybenchError(
                    f"{WORDS[name]} of {self._wanted[name]} {UNITS[name]}: the board {self._uuid} took it and shows "
                    f"{shown:g} {UNITS[name]} {IN_FORCE_WAIT_S:g} s later",
                )
        self._doubt(off)
        for name in self._wanted:
            self._settings[name]["applied"] = off.get(name, float(self._wanted[name]))
            if name in off and self._reasons() & IDLE_BIT:
                self._settings[name]["applied"] = None

    def _deviations(self) -> dict[str, float]:
        """Name -> what the board shows, where that is not what was set. What NVML does not tell is no deviation."""
        shown = {
            "power_limit_w": _watts(told(self._board.limit_in_force_mw)),
            "sm_clock_mhz": told(partial(self._board.clock_mhz, nvml.SM_CLOCK)),
            "memory_clock_mhz": told(partial(self._board.clock_mhz, nvml.MEMORY_CLOCK)),
        }
        near = {"power_limit_w": LIMIT_STEP_W, "sm_clock_mhz": CLOCK_STEP_MHZ, "memory_clock_mhz": CLOCK_STEP_MHZ}
        return {
            name: float(value)
            for name, wanted in self._wanted.items()
            if (value := shown[name]) is not None and abs(value - wanted) >= near[name]
        }

    def _reasons(self) -> int:
        return told(self._board.throttle_reasons) or 0

    def _doubt(self, off: Mapping[str, float]) -> None:
        reasons = self._reasons() if off else 0
        for name, shown in off.items():
            if name != "power_limit_w" and reasons & IDLE_BIT:
                continue  # between iterations the board may fall back to its idle clock
            why = ", ".join(words for bit, words in THROTTLE_BITS.items() if reasons & bit) or "no reason given"
            detail = f"{WORDS[name]} {self._wanted[name]} {UNITS[name]} asked for, {shown:g} shown ({why})"
            self._cautions.append(Caution(CautionCode.SETTING_NOT_HELD, detail))

    # --- after -------------------------------------------------------------------------------------------------------

    def _release(self, error: BaseException | None) -> None:
        """Restores. What fails is a caution of the run; after an error, where there is no run to carry it, an error."""
        claim, self._claim = self._claim, None
        if claim is None:
            return
        restored = claim.release(self._board)
        for name, each in restored.items():
            self._settings[name] |= {"restored": each["value"], "is_restored": each["problem"] is None}
        failures = self._report_failures(restored)
        if failures and isinstance(error, Exception):
            raise PybenchError(
                f"after an error ({error}) the board {self._uuid} is not as before: {failures}"
            ) from error

    def _report_failures(self, restored: Restored) -> str:
        failures = "; ".join(f"{WORDS[name]} {each['problem']}" for name, each in restored.items() if each["problem"])
        if failures:
            self._cautions.append(Caution(CautionCode.SETTING_NOT_RESTORED, failures))
        return failures


def _watts(power_mw: float | None) -> float | None:
    return None if power_mw is None else power_mw * MILLI
