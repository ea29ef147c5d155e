# SPDX-License-Identifier: Apache-2.0
"""Tasks are shared with processes beside this one, and nothing of these stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import ClassVar

import pytest

from pybench.errors import CorruptError, PybenchError
from pybench.processes import Processes, usable_cpus
from tests.support.waiting import wait_for

_ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}


def own_number(wait_s: float) -> int:
    time.sleep(wait_s)
    return os.getpid()


def refuse(name: str) -> str:
    raise CorruptError(f"{name} is broken", hint="restore it")


def is_child() -> bool:
    return os.getppid() == int(os.environ["PARENT"])


def leave(status: int) -> None:
    """Ends a child: with a status, or a negative signal."""
    if is_child() and status < 0:
        os.kill(os.getpid(), -status)
    if is_child():
        os._exit(status)
    time.sleep(0.5)


class OddError(Exception):
    def __init__(self, first: int, second: int) -> None:
        super().__init__(f"{first} and {second}")


def raise_odd(number: int) -> None:
    if is_child():
        raise OddError(number, number + 1)
    time.sleep(0.5)


def divide(number: int) -> None:
    if is_child():
        print(1 // number)
    time.sleep(0.5)


def open_lock(_: int) -> object:
    if is_child():
        return threading.Lock()
    return time.sleep(0.5)


class Written:
    """Says which thread makes its pickle."""

    by: ClassVar[list[int]] = []

    def __reduce__(self) -> tuple[type[Written], tuple[()]]:
        self.by.append(threading.get_ident())
        return Written, ()

    def __call__(self, task: object) -> int:
        time.sleep(0.1)
        return os.getpid()


def fail_in_parent(wait_s: float) -> str:
    time.sleep(wait_s / 2)
    if not is_child():
        raise KeyError(wait_s)
    time.sleep(wait_s)
    return "an old answer"


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


@pytest.mark.parametrize(("how", "end"), [(3, "ended with status 3"), (-9, "was killed by SIGKILL")])
def test_a_process_that_ends_early_is_an_error_with_a_hint(how: int, end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARENT", str(os.getpid()))
    processes = Processes(2)
    try:
        with pytest.raises(PybenchError, match=end) as caught:
            processes.map(leave, [how] * 4)
        assert "taskset -c 0" in str(caught.value.hint)
        assert len(set(processes.map(own_number, [0.2] * 4))) == 2  # others start in its place
    finally:
        processes.close()


def test_a_process_that_died_between_two_lists_is_an_error_and_no_broken_pipe() -> None:
    processes = Processes(2)
    try:
        (other,) = set(processes.map(own_number, [0.2] * 4)) - {os.getpid()}
        os.kill(other, signal.SIGKILL)
        wait_for(lambda: not _is_alive(other))
        with pytest.raises(PybenchError, match="was killed by SIGKILL"):
            processes.map(own_number, [0.2] * 4)
    finally:
        processes.close()


def test_an_error_that_no_pickle_can_pass_on_is_told_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARENT", str(os.getpid()))
    processes = Processes(2)
    try:
        with pytest.raises(RuntimeError, match="OddError: 7 and 8") as caught:
            processes.map(raise_odd, [7, 7])
        assert "in raise_odd" in str(caught.value)
        with pytest.raises(ZeroDivisionError) as divided:
            processes.map(divide, [0, 0])
        assert "in divide" in "".join(divided.value.__notes__)
        with pytest.raises(TypeError, match="cannot pickle"):
            processes.map(open_lock, [0, 0])
    finally:
        processes.close()


def test_after_an_error_of_this_process_no_answer_to_an_old_task_is_taken_for_a_new_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PARENT", str(os.getpid()))
    processes = Processes(2)
    try:
        with pytest.raises(KeyError):
            processes.map(fail_in_parent, [1.0, 1.0])
        assert processes.map(abs, [-3, -2, -1]) == [3, 2, 1]
    finally:
        processes.close()


def test_an_interrupted_command_leaves_no_process_behind_and_no_trace() -> None:
    program = (
        "import sys; from tests.test_processes import own_number; from pybench.processes import all_cores\n"
        "with all_cores() as processes:\n"
        "    try:\n"
        "        print(*set(processes.map(own_number, [0.2] * 8)), flush=True); processes.map(own_number, [60.0] * 2)\n"
        "    except KeyboardInterrupt: sys.exit(130)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=_ENVIRONMENT, process_group=0,
    ) as command:  # fmt: skip
        assert command.stdout is not None
        assert command.stderr is not None
        others = {int(number) for number in command.stdout.readline().split()} - {command.pid}
        time.sleep(0.2)
        os.killpg(command.pid, signal.SIGINT)  # as a terminal does
        assert command.wait(30) == 130
        assert not any(_is_alive(other) for other in others)
        assert command.stderr.read() == ""


def test_a_killed_command_leaves_no_process_behind() -> None:
    program = (
        "from tests.test_processes import own_number; from pybench.processes import Processes\n"
        "numbers = set(Processes(2).map(own_number, [0.2] * 8))\n"
        "print(*numbers, flush=True); import time; time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=_ENVIRONMENT
    ) as command:
        assert command.stdout is not None
        (other,) = {int(number) for number in command.stdout.readline().split()} - {command.pid}
        assert Path(f"/proc/{other}").exists()
        command.kill()
    wait_for(lambda: not _is_alive(other))


def test_a_control_groups_quota_leaves_a_part_of_the_cpus(tmp_path: Path) -> None:
    groups = tmp_path / "sys/fs/cgroup"
    (groups / "slice/job").mkdir(parents=True)
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/slice/job\n")
    (groups / "slice/job/cpu.max").write_text("max 100000\n")
    assert usable_cpus(tmp_path) == len(os.sched_getaffinity(0))
    (groups / "slice/cpu.max").write_text("50000 100000\n")
    assert usable_cpus(tmp_path) == 0.5


def test_without_control_groups_the_affinity_counts(tmp_path: Path) -> None:
    assert usable_cpus(tmp_path) == len(os.sched_getaffinity(0))


def _is_alive(number: int) -> bool:
    """Whether a process runs; one that nobody waited for does not."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def is_imported(module: str) -> bool:
    time.sleep(0.2)
    return module in sys.modules


def test_other_processes_import_what_they_are_prepared_for_and_what_cannot_be_is_no_error() -> None:
    module = "xml.dom.pulldom"
    assert module not in sys.modules
    processes = Processes(2)
    try:
        processes.prepare("no.such.module", module)
        assert set(processes.map(is_imported, [module] * 4)) == {True, False}
    finally:
        processes.close()


def test_other_processes_import_what_comes_after_tasks_when_none_is_left() -> None:
    module = "xml.dom.expatbuilder"
    assert module not in sys.modules
    processes = Processes(2)
    try:
        processes.prepare_after(module)
        assert not any(processes.map(is_imported, [module] * 4))
        assert set(processes.map(is_imported, [module] * 4)) == {True, False}
    finally:
        processes.close()


def test_tasks_that_come_later_are_begun_before_all_are_known() -> None:
    processes = Processes(2)
    try:
        begun = processes.open(own_number)
        begun.add([0.0])
        wait_for(lambda: bool(begun._results))
        begun.add([0.2] * 4)
        first, *later = begun.finish()
        assert first != os.getpid()
        assert set(later) == {first, os.getpid()}
        assert processes.open(own_number).finish() == []
    finally:
        processes.close()


def test_of_two_lists_the_other_processes_do_the_first_one_first() -> None:
    processes = Processes(2)
    try:
        first = processes.begin(own_number, [0.2, 0.0])
        second = processes.begin(abs, [-1, -2])
        wait_for(lambda: len(second._results) == 2)
        assert len(first._results) == 2
        assert second.finish() == [1, 2]
        assert os.getpid() not in first.finish()
    finally:
        processes.close()


def test_few_tasks_are_left_to_the_other_processes() -> None:
    processes = Processes(2)
    try:
        assert os.getpid() not in processes.begin(own_number, [0.1] * 3).finish(leaving=3)
        assert os.getpid() in processes.begin(own_number, [0.1] * 5).finish(leaving=3)
        assert Processes(1).begin(own_number, [0.0]).finish(leaving=3) == [os.getpid()]
    finally:
        processes.close()


def test_a_failure_before_all_tasks_are_known_is_raised_at_the_end() -> None:
    processes = Processes(2)
    begun = processes.open(refuse)
    begun.add(["run.json"])
    wait_for(lambda: bool(begun._failures))
    begun.add(["case.json"])
    with pytest.raises(CorruptError, match=r"run\.json is broken"):
        begun.finish()


def test_whoever_closes_leaves_no_thread_that_waits_for_tasks() -> None:
    processes = Processes(2)
    begun = processes.open(own_number)
    processes.close()
    for hand in begun._hands:
        hand.join(timeout=10)
        assert not hand.is_alive()


class Counted:
    """How often a function was read from a pickle, for its tasks to tell."""

    times = 0

    def __setstate__(self, state: object) -> None:
        Counted.times += 1

    def __getstate__(self) -> object:
        return 1

    def __call__(self, task: int) -> tuple[int, int]:
        time.sleep(0.1)
        return task, Counted.times


def test_a_function_travels_once_for_all_of_its_tasks_and_the_next_one_takes_its_place() -> None:
    processes = Processes(2)
    try:
        found = processes.map(Counted(), list(range(6)))
        assert [task for task, _ in found] == list(range(6))
        assert {times for _, times in found} == {0, 1}
        assert processes.map(abs, [-1, -2]) == [1, 2]
        assert {times for _, times in processes.map(Counted(), list(range(6)))} == {0, 2}
    finally:
        processes.close()


def test_pickles_are_made_in_the_callers_thread() -> None:
    """Another thread would write objects while the caller changes them, such as what a case remembers."""
    processes = Processes(2)
    Written.by.clear()
    assert len(set(processes.map(Written(), [Written() for _ in range(4)]))) == 2
    processes.close()
    assert Written.by == [threading.get_ident()] * 5  # the function's and each task's
