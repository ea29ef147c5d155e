# SPDX-License-Identifier: Apache-2.0
"""Puts a board's settings back when the run that changed them is over, however it ended: the one place that restores.

    python -I -S guardian.py NVML_MODULE PYNVML_FOLDER NVML_LIBRARY RECORD UUID WORKER_PID      started by `claim`

A process of its own session, so that what kills the worker and its group does not reach it. It opens NVML, says `ready`
on stdout, and sleeps until its stdin closes or the worker is gone. If the board's record is there, it restores what the
record says was before, reads it back, removes the record, and says on stdout what came of it, as JSON. What it cannot
restore stays in the record for the next run on this board, and is written on stderr with the command to do it by hand.
SIGINT, SIGTERM and SIGHUP do not end it: whoever sends them to everything ends the worker too, and then it has work.

It imports the standard library, `nvml` by its path, and pynvml, nothing else, so that it starts in 75 ms and 18 MB
instead of 340 ms and 35 MB. It does not decide what to set: that is `pybench.measure.board.settings`. What kills every
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
    module, folder, library, record_path, uuid, worker = arguments
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    opened = _load(module, folder).open_nvml(library)
    board = opened.board(uuid)
    if board is None:
        _say(f"no board {uuid}: {opened.reason or 'NVML does not find it'}")
        return 1
    watched = [0, *_watch(int(worker))]
    _say("ready")
    if len(watched) > 1:
        select.select(watched, [], [])
    restored = restore_recorded(board, Path(record_path))
    _say(json.dumps(restored))
    for name, each in restored.items():
        if each["problem"]:
            print(f"pybench: {uuid}: {name}: {each['problem']}", file=sys.stderr)
    return 1 if any(each["problem"] for each in restored.values()) else 0


def restore_recorded(board: Any, path: Path) -> Restored:
    """Restores what the record at `path` says, and removes the record when all of it is as it was. {}: no record."""
    record = read_record(path)
    return {} if record is None else restore(board, record["settings"], path)


def restore(board: Any, recorded: Record, path: Path) -> Restored:
    """Restores settings, as they are recorded; removes the record at `path` when all of it is as it was.

    `board`: a `pybench.measure.board.nvml.NvmlBoard`.
    """
    restored = {name: _persistently(board, name, each) for name, each in recorded.items()}
    if not any(each["problem"] for each in restored.values()):
        path.unlink(missing_ok=True)
    return restored


def command_by_hand(uuid: str, name: str, setting: Record) -> str:
    """What an administrator types to do the same."""
    if name == "power_limit_w":
        return f"nvidia-smi -i {uuid} -pl {setting['before_mw'] / 1000:g}"
    return f"nvidia-smi -i {uuid} {'-rgc' if name == 'sm_clock_mhz' else '-rmc'}"


def _persistently(board: Any, name: str, setting: Record) -> dict[str, Any]:
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE_S)
        value, problem = _restore(board, name, setting)
        if problem is None:
            return {"value": value, "problem": None}
    by_hand = command_by_hand(board.uuid, name, setting)
    return {"value": value, "problem": f"could not be put back: {problem}; as root: {by_hand}"}


def _restore(board: Any, name: str, setting: Record) -> tuple[float | None, str | None]:
    """One setting as it was before: its value as read back, and what went wrong. NVML reads no clock lock back."""
    if name == "power_limit_w":
        return _restore_limit(board, setting["before_mw"])
    return None, _problem(board.reset_sm_clock if name == "sm_clock_mhz" else board.reset_memory_clock)


def _restore_limit(board: Any, before_mw: int) -> tuple[float | None, str | None]:
    is_changed = _limit_mw(board) != before_mw
    problem = _problem(board.set_power_limit_mw, before_mw) if is_changed else None
    now_mw = _limit_mw(board)
    value_w = None if now_mw is None else now_mw / 1000
    if problem is None and now_mw != before_mw:
        problem = f"it reads back as {value_w} W and was {before_mw / 1000:g} W"
    return value_w, problem


def _limit_mw(board: Any) -> int | None:
    try:
        return int(board.power_limit_mw())
    except RuntimeError:
        return None


def _problem(set_board: Any, *values: int) -> str | None:
    """What went wrong, if anything. RuntimeError: the NvmlError of a module that was loaded by its path is a class of
    its own."""
    try:
        set_board(*values)
    except RuntimeError as error:
        return str(error)
    return None


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


def _load(module: str, folder_of_pynvml: str) -> Any:
    """pybench.measure.board.nvml without pybench: the package's imports would be most of the start."""
    sys.path.append(folder_of_pynvml)
    spec = importlib.util.spec_from_file_location("nvml", module)
    if spec is None or spec.loader is None:
        raise ImportError(f"{module} is no module")
    nvml = importlib.util.module_from_spec(spec)
    sys.modules["nvml"] = nvml
    spec.loader.exec_module(nvml)
    return nvml


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
