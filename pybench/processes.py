# SPDX-License-Identifier: Apache-2.0
"""The processor's cores for one command: tasks that this process and processes beside it take from one list.

`multiprocessing` is not used: its children import the caller's main module again, which a user's script need not
survive, and they stay when the parent is killed. A child here reads tasks from its standard input and ends with it.
Tasks, functions and results travel as pickles, so a function is one of a module, or a `functools.partial` of it.
A function travels once to each child, before the first of its tasks, so what all of them need belongs to it.
Functions and tasks become pickles when they are given, in the caller's thread: objects that remember what they were
asked would change under a thread that writes them.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import pickle
import signal
import subprocess
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from pybench.collector import no_collection
from pybench.errors import PybenchError

Task = TypeVar("Task")
Result = TypeVar("Result")
_MOST = 8
_SERVE = "from pybench.processes import serve; serve()"
_HINT = "if memory ran out, use one core, which needs the least memory: put `taskset -c 0` before the command"


class Processes:
    """This process and some beside it, which start with the first tasks and stay until `close`."""

    def __init__(self, count: int) -> None:
        """`count`: of processes in all; with 1 nothing is started."""
        self._count = count
        self._children: list[subprocess.Popen[bytes]] = []
        self._then: tuple[str, ...] = ()
        self._begun: list[RunningTasks[Any, Any]] = []

    def map(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> list[Result]:
        """`function` of each task, in the order of the tasks.

        Raises what `function` raises, and PybenchError where a process ends before its task does.
        """
        return self.begin(function, tasks).finish()

    def begin(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> RunningTasks[Task, Result]:
        """`map`, whose tasks the other processes begin while this one has something else to do.

        Of several lists they begin each when they have done all of the one before, which therefore has to end."""
        begun = self._begin(function, min(self._count, len(tasks)))
        begun.add(tasks)
        begun.end()
        return begun

    def open(self, function: Callable[[Task], Result], *, most: int | None = None) -> RunningTasks[Task, Result]:
        """`begin`, whose tasks come one after another: by `RunningTasks.add`, until it is finished. `most`: processes
        that are worth a start."""
        return self._begin(function, self._count if most is None else min(self._count, most))

    def _begin(self, function: Callable[[Task], Result], count: int) -> RunningTasks[Task, Result]:
        try:
            self._start(count - 1)
            then, self._then = self._then, ()
            before = self._begun[-1] if self._begun else None
            begun = RunningTasks(function, self._children, self.close, then, before)
            self._begun = [one for one in self._begun if one.is_under_way] + [begun]
            return begun
        except BaseException:  # of a user who interrupts, too
            self.close()
            raise

    def prepare(self, *modules: str) -> None:
        """The other processes, of which there are as many as can be now, import modules that tasks will need, while
        this one has something else to do. What cannot be imported is told by the task that needs it."""
        self._start(self._count - 1)
        for child in self._children:
            _give(child, modules)

    def prepare_after(self, *modules: str) -> None:
        """`prepare`, for when a process finds no more of the tasks that begin next: while this one ends its own."""
        self._then = modules

    def close(self) -> None:
        """Ends the processes, whatever they do."""
        for begun in self._begun:
            begun.end()
        for child in self._children:
            child.kill()
            for pipe in (child.stdin, child.stdout):
                with contextlib.suppress(OSError):  # of a child that ended before it read what was written
                    if pipe is not None:
                        pipe.close()
            child.wait()
        self._children, self._begun = [], []

    def _start(self, wanted: int) -> None:
        while len(self._children) < wanted:
            command = [sys.executable, "-P", "-c", _SERVE]  # -P: no module of the folder where the user is
            try:  # a group of its own: Ctrl-C is for this process, which ends the others
                child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0)
            except OSError as error:
                raise PybenchError(f"cannot start a helper process: {error}", hint=_HINT) from error
            self._children.append(child)
            _give(child, sys.path)


class _Call(NamedTuple):
    """A task for a child, as pickles. `function`: None for that of the task before."""

    function: bytes | None
    task: bytes


class RunningTasks(Generic[Task, Result]):
    """Tasks that other processes are at. More can come until `end`."""

    def __init__(
        self,
        function: Callable[[Task], Result],
        children: Sequence[subprocess.Popen[bytes]],
        close: Callable[[], None],
        then: Sequence[str],
        before: RunningTasks[Any, Any] | None,
    ) -> None:
        """`then`: modules that the children import when no task is left. `before`: tasks that they do first."""
        self._function = function
        self._close = close
        self._tasks: _Tasks[Task] = _Tasks(are_written=bool(children))
        self._results: dict[int, Result] = {}
        self._failures: list[BaseException] = []
        written = _pickled(function) if children else b""
        state = (written, self._tasks, self._results, self._failures, then)
        earlier: list[threading.Thread] = [] if before is None else before._hands
        self._hands: list[threading.Thread] = [
            threading.Thread(target=_hand_over, args=(child, hand, *state), daemon=True)
            for child, hand in itertools.zip_longest(children, earlier)
        ]
        for hand in self._hands:
            hand.start()

    def add(self, tasks: Sequence[Task]) -> None:
        self._tasks.add(tasks)

    def end(self) -> None:
        """No more tasks come."""
        self._tasks.end()

    @property
    def is_under_way(self) -> bool:
        """Whether other processes are at it, or wait for more."""
        return any(hand.is_alive() for hand in self._hands)

    def finish(self, *, leaving: int = 0) -> list[Result]:
        """Helps with what is left, and returns all results. Raises as `Processes.map` does.

        `leaving`: how many tasks are left to each of the other processes, without help: they are done before this one
        would have imported what the tasks need."""
        try:
            self.end()
            helps = self._tasks.count_waiting() > leaving * len(self._hands)
            while helps and not self._failures and (taken := self._tasks.take()) is not None:
                number, task, _ = taken
                self._results[number] = self._function(task)
            for hand in self._hands:
                hand.join()
            if self._failures:
                raise self._failures[0]
            return [self._results[number] for number in sorted(self._results)]
        except BaseException:  # of a user who interrupts, too
            self._close()  # children may be at tasks that nobody waits for
            raise


class _Tasks(Generic[Task]):
    """Numbered tasks, each with its pickle, for several threads, each of which takes one whenever it has done one."""

    def __init__(self, *, are_written: bool) -> None:
        """`are_written`: whether tasks get pickles: without children nobody reads them."""
        self._are_written = are_written
        self._waiting: deque[tuple[int, Task, bytes]] = deque()
        self._count = 0
        self._are_all = False
        self._changed = threading.Condition()

    def add(self, tasks: Sequence[Task]) -> None:
        written = [_pickled(task) if self._are_written else b"" for task in tasks]
        with self._changed:
            numbers = range(self._count, self._count + len(tasks))
            self._waiting.extend(zip(numbers, tasks, written, strict=True))
            self._count += len(tasks)
            self._changed.notify_all()

    def end(self) -> None:
        with self._changed:
            self._are_all = True
            self._changed.notify_all()

    def count_waiting(self) -> int:
        with self._changed:
            return len(self._waiting)

    def take(self) -> tuple[int, Task, bytes] | None:
        """Waits for a task; None: no more comes."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._are_all)
            return self._waiting.popleft() if self._waiting else None


@contextmanager
def all_cores() -> Iterator[Processes]:
    """One process for each core that this one may use, at most eight: each takes a second to begin and its memory.

    Inside, this one looks for no cycles: what it makes with the help of others is much, and stays until the end."""
    processes = Processes(min(max(int(usable_cpus()), 1), _MOST))
    with no_collection():
        try:
            yield processes
        finally:
            processes.close()


def serve() -> None:
    """The life of a child: tasks from standard input, results to standard output, until the input ends."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # whoever waited for a result is gone: end without a word
    tasks, results = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not get among the results
    with contextlib.suppress(EOFError):
        sys.path[:] = pickle.load(tasks)
        function: Callable[[Any], Any] = repr
        while True:
            call = pickle.load(tasks)
            if not isinstance(call, _Call):
                _import(call)
                continue
            if call.function is not None:
                with no_collection():
                    function = pickle.loads(call.function)
                gc.freeze()  # what its tasks need stays: nobody needs to look through it for cycles
            with no_collection():  # a task has no cycles, and may be of many objects
                task = pickle.loads(call.task)
            results.write(_answer(function, task))
            results.flush()


def _import(modules: Sequence[str]) -> None:
    with no_collection():
        for module in modules:
            with contextlib.suppress(Exception):
                import_module(module)


def _answer(function: Callable[[Any], Any], task: object) -> bytes:
    """The pickle of whether there is a result, and of the result or the error."""
    try:
        return _pickled((True, function(task)))
    except Exception as error:
        said = traceback.format_exc()
        if not isinstance(error, PybenchError):
            error.add_note(said)  # a pickle has no traceback
        try:
            answer = _pickled((False, error))
            pickle.loads(answer)  # some errors of libraries can be written and not read
        except Exception:
            return _pickled((False, RuntimeError(said)))
        return answer


def _pickled(value: object) -> bytes:
    return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)


def _hand_over(
    child: subprocess.Popen[bytes],
    earlier: threading.Thread | None,
    function: bytes,
    tasks: _Tasks[Any],
    results: dict[int, Any],
    failures: list[BaseException],
    then: Sequence[str],
) -> None:
    """Gives tasks to one child, one after another, until there are none, and then modules to import. `earlier`: what
    gives it other tasks before."""
    if earlier is not None:
        earlier.join()
    told: bytes | None = function
    try:
        while not failures and (taken := tasks.take()) is not None:
            number, _, task = taken
            is_found, found = _ask(child, _Call(told, task))
            told = None
            if not is_found:
                failures.append(found)
                return
            results[number] = found
        if then and not failures:
            _give(child, then)
    except Exception as error:
        failures.append(error)


def _ask(child: subprocess.Popen[bytes], call: _Call) -> tuple[bool, Any]:
    _give(child, call)
    assert child.stdout is not None
    with _explained(child):
        answer: tuple[bool, Any] = pickle.load(child.stdout)
    return answer


@contextmanager
def _explained(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """Says how a child ended, where a pipe to or from it broke."""
    try:
        yield
    except (BrokenPipeError, EOFError, pickle.UnpicklingError) as error:  # the last: in the middle of an answer
        child.kill()  # one that lives has broken its protocol
        raise PybenchError(f"a helper process {_end_of(child.wait())}", hint=_HINT) from error


def _end_of(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}, before its task did"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:  # a real-time signal
        return f"was killed by signal {-status}"


def _give(child: subprocess.Popen[bytes], call: object) -> None:
    pipe = child.stdin
    assert pipe is not None
    with _explained(child):
        pickle.dump(call, pipe, protocol=pickle.HIGHEST_PROTOCOL)
        pipe.flush()


def usable_cpus(root: Path = Path("/")) -> float:
    """How many CPUs this process may use at once: its affinity, and the quota of its control group (cpu.max)."""
    allowed = float(len(os.sched_getaffinity(0)))
    for file in (*_own_group(root), root / "sys/fs/cgroup/cpu.max"):
        try:
            quota, period = file.read_text().split()
            allowed = min(allowed, int(quota) / int(period))
        except (OSError, ValueError):
            continue  # no such file, or `max`: no quota
    return allowed


def _own_group(root: Path) -> list[Path]:
    """cpu.max of this process's control group and of those above it (cgroup v2)."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    named = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), "")
    group = Path(named)
    return [root / "sys/fs/cgroup" / each / "cpu.max" for each in (group, *group.parents) if str(each) != "."]
