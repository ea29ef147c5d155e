# SPDX-License-Identifier: Apache-2.0
"""Tasks are shared with processes beside this one, and nothing of these stays."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pybench.errors import CorruptError
from pybench.processes import Processes
from tests.support.waiting import wait_for


def own_number(wait_s: float) -> int:
    time.sleep(wait_s)
    return os.getpid()


def refuse(name: str) -> str:
    raise CorruptError(f"{name} is broken", hint="restore it")


def leave(status: int) -> None:
    if os.getppid() == int(os.environ["PARENT"]):
        os._exit(status)
    time.sleep(0.5)


def test_two_processes_share_the_tasks_and_results_are_in_order() -> None:
    processes = Processes(2)
    try:
        assert processes.map(abs, [-3, 2, -1]) == [3, 2, 1]
        numbers = set(processes.map(own_number, [0.2] * 8))
        assert len(numbers) == 2
        assert os.getpid() in numbers
        assert set(processes.map(own_number, [0.2] * 8)) == numbers  # the same ones again
    finally:
        processes.close()
    (other,) = numbers - {os.getpid()}
    assert not Path(f"/proc/{other}").exists()


def test_one_process_and_one_task_start_nothing() -> None:
    assert set(Processes(1).map(own_number, [0.0] * 3)) == {os.getpid()}
    assert Processes(8).map(own_number, [0.0]) == [os.getpid()]


def test_an_error_of_a_task_reaches_the_caller_whole() -> None:
    processes = Processes(2)
    try:
        with pytest.raises(CorruptError, match="is broken") as caught:
            processes.map(refuse, ["a", "b", "c"])
        assert caught.value.hint == "restore it"
    finally:
        processes.close()


def test_an_index_error_of_a_task_is_not_taken_for_the_end_of_the_list() -> None:
    with pytest.raises(IndexError):
        Processes(1).map([].pop, [0])


def test_a_process_that_ends_early_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARENT", str(os.getpid()))
    processes = Processes(2)
    try:
        with pytest.raises(RuntimeError, match="ended with status 3"):
            processes.map(leave, [3, 3, 3, 3])
    finally:
        processes.close()


def test_a_killed_command_leaves_no_process_behind() -> None:
    program = (
        "from tests.test_processes import own_number; from pybench.processes import Processes\n"
        "numbers = set(Processes(2).map(own_number, [0.2] * 8))\n"
        "print(*numbers, flush=True); import time; time.sleep(60)"
    )
    paths = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=paths) as command:
        assert command.stdout is not None
        (other,) = {int(number) for number in command.stdout.readline().split()} - {command.pid}
        assert Path(f"/proc/{other}").exists()
        command.kill()
    wait_for(lambda: not _is_alive(other))


def _is_alive(number: int) -> bool:
    """Whether a process runs; one that nobody waited for does not."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
