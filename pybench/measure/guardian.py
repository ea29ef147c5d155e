# SPDX-License-Identifier: Apache-2.0
"""Puts a board's settings back when the run that changed them is over, however it ended: the one place that restores.

    python -I -S guardian.py NATIVE_OBJECT NVML_LIBRARY RECORD UUID WORKER_PID         started by board_claim

A process of its own session, so that what kills the worker and its group does not reach it. It opens NVML, says `ready`
on stdout, and sleeps until its stdin closes or the worker is gone. If the board's record is there, it restores what the
record says was before, reads it back, removes the record, and says on stdout what came of it, as JSON. What it cannot
restore stays in the record for the next run on this board, and is written on stderr with the command to do it by hand.
SIGINT, SIGTERM and SIGHUP do not end it: whoever sends them to everything ends the worker too, and then it has work.

It imports the standard library and pybench._native by its path, nothing else, so that it starts in 15 ms and 11 MB
instead of 340 ms and 35 MB. It does not decide what to set: that is `pybench.measure.board_settings`. What kills every
process at once (a container's end, SIGKILL to a whole cgroup) kills it too: then the record is what is left.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any

SCHEMA_VERSION = 1
ATTEMPTS = 3  # to restore one setting: NVML calls fail while a board is being reset
PAUSE_S = 0.3

Record = dict[str, Any]  # {schema_version, boot_id, uuid, worker_pid, settings: {name: {wanted, before_mw}}}
Restored = dict[str, dict[str, Any]]  # name -> {value: as read back, in the name's unit, or None; problem: None or why}


def main(arguments: list[str]) -> int:
    """Waits for the end of the worker, then restores. 0: nothing is left to restore."""
    native_object, library, record_path, uuid, worker = arguments
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    nvml = _load(native_object).open_nvml(library)
    board = find_board(nvml, uuid)
    if board is None:
        _say(f"no board {uuid}: {nvml.reason or 'NVML does not find it'}")
        return 1
    watched = [0, *_watch(int(worker))]
    _say("ready")
    if len(watched) > 1:
        select.select(watched, [], [])
    restored = restore_recorded(sys.modules["_native"], nvml, board, Path(record_path))
    _say(json.dumps(restored))
    for name, each in restored.items():
        if each["problem"]:
            print(f"pybench: {uuid}: {name}: {each['problem']}", file=sys.stderr)
    return 1 if any(each["problem"] for each in restored.values()) else 0


def find_board(nvml: Any, uuid: str) -> Any:
    """The NVML device with this UUID, or None."""
    return next((device for device in nvml.devices() if device.uuid == uuid), None)


def restore_recorded(native: Any, nvml: Any, board: Any, path: Path) -> Restored:
    """Restores what the record at `path` says, and removes the record when all of it is as it was. {}: no record."""
    record = read_record(path)
    return {} if record is None else restore(native, nvml, board, record["settings"], path)


def restore(native: Any, nvml: Any, board: Any, recorded: Record, path: Path) -> Restored:
    """Restores settings, as they are recorded; removes the record at `path` when all of it is as it was."""
    settings = native.NvmlSettings(board)
    restored = {name: _persistently(settings, nvml, board.uuid, name, each) for name, each in recorded.items()}
    if not any(each["problem"] for each in restored.values()):
        path.unlink(missing_ok=True)
    return restored


def command_by_hand(uuid: str, name: str, setting: Record) -> str:
    """What an administrator types to do the same."""
    if name == "power_limit_w":
        return f"nvidia-smi -i {uuid} -pl {setting['before_mw'] / 1000:g}"
    return f"nvidia-smi -i {uuid} {'-rgc' if name == 'sm_clock_mhz' else '-rmc'}"


def _persistently(settings: Any, nvml: Any, uuid: str, name: str, setting: Record) -> dict[str, Any]:
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE_S)
        value, problem = _restore(settings, nvml, name, setting)
        if problem is None:
            return {"value": value, "problem": None}
    by_hand = command_by_hand(uuid, name, setting)
    return {"value": value, "problem": f"could not be put back: {problem}; as root: {by_hand}"}


def _restore(settings: Any, nvml: Any, name: str, setting: Record) -> tuple[float | None, str | None]:
    """One setting as it was before: its value as read back, and what went wrong. NVML reads no clock lock back."""
    if name == "power_limit_w":
        is_changed = settings.power_limit_mw().value != setting["before_mw"]
        code = settings.set_power_limit_mw(setting["before_mw"]) if is_changed else 0
        now = settings.power_limit_mw()
        value = None if now.value is None else now.value / 1000
        if code == 0 and now.value != setting["before_mw"]:
            return value, f"it reads back as {value} W and was {setting['before_mw'] / 1000:g} W"
    else:
        code = settings.reset_sm_clock() if name == "sm_clock_mhz" else settings.reset_memory_clock()
        value = None
    return value, None if code == 0 else str(nvml.describe(code))


# --- the record -------------------------------------------------------------------------------------------------------


def write_record(path: Path, record: Record) -> None:
    """Whole or not at all, and on the disk before anything is set."""
    temporary = path.with_suffix(".new")
    with open(temporary, "w") as file:
        json.dump(record, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def read_record(path: Path) -> Record | None:
    """The record, or None when there is none. Raises ValueError for one that is no record of this version."""
    try:
        record = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    if not isinstance(record, dict) or record.get("schema_version") != SCHEMA_VERSION:
        raise ValueError(f"{path} is not a record of a board's settings")
    return record


# --- the process ------------------------------------------------------------------------------------------------------


def _load(native_object: str) -> Any:
    """pybench._native without pybench: the package's imports would be most of the start."""
    spec = importlib.util.spec_from_file_location("_native", native_object)
    if spec is None or spec.loader is None:
        raise ImportError(f"{native_object} is no extension module")
    native = importlib.util.module_from_spec(spec)
    sys.modules["_native"] = native
    spec.loader.exec_module(native)
    return native


def _watch(worker: int) -> list[int]:
    """A descriptor that tells the worker's end; none when it has ended. Its children may hold the pipe for longer."""
    try:
        descriptor = os.pidfd_open(worker)
    except ProcessLookupError:
        return []
    return [descriptor] if os.getppid() == worker else []


def _say(line: str) -> None:
    with contextlib.suppress(BrokenPipeError):  # a worker that was killed does not listen
        os.write(1, f"{line}\n".encode())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
