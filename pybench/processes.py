# SPDX-License-Identifier: Apache-2.0
"""The processor's cores for one command: tasks that this process and processes beside it take from one list.

`multiprocessing` is not used: its children import the caller's main module again, which a user's script need not
survive, and they stay when the parent is killed. A child here reads tasks from its standard input and ends with it.
Tasks, functions and results travel as pickles, so a function is one of a module, or a `functools.partial` of it.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")
_MOST = 8
_SERVE = "from pybench.processes import serve; serve()"


class Processes:
    """This process and some beside it, which start with the first tasks and stay until `close`."""

    def __init__(self, count: int) -> None:
        """`count`: of processes in all; with 1 nothing is started."""
        self._count = count
        self._children: list[subprocess.Popen[bytes]] = []

    def map(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> list[Result]:
        """`function` of each task, in the order of the tasks. Raises what `function` raises."""
        waiting = deque(enumerate(tasks))
        results: dict[int, Result] = {}
        failures: list[BaseException] = []
        if len(tasks) > 1:
            self._start(min(self._count, len(tasks)) - 1)
        hands = [
            threading.Thread(target=_hand_over, args=(child, function, waiting, results, failures), daemon=True)
            for child in self._children
        ]
        for hand in hands:
            hand.start()
        while waiting and not failures:
            try:
                number, task = waiting.popleft()
            except IndexError:  # a child took the last one
                break
            results[number] = function(task)
        for hand in hands:
            hand.join()
        if failures:
            raise failures[0]
        return [results[number] for number in range(len(tasks))]

    def close(self) -> None:
        """Ends the processes: none of them has a task when `map` has returned."""
        for child in self._children:
            child.kill()
            for pipe in (child.stdin, child.stdout):
                with contextlib.suppress(OSError):  # of a child that ended before it read what was written
                    if pipe is not None:
                        pipe.close()
            child.wait()
        self._children = []

    def _start(self, wanted: int) -> None:
        while len(self._children) < wanted:
            command = [sys.executable, "-P", "-c", _SERVE]  # -P: no module of the folder where the user is
            child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self._children.append(child)
            assert child.stdin is not None
            _send(child.stdin, sys.path)


@contextmanager
def all_cores() -> Iterator[Processes]:
    """One process for each core that this one may use, at most eight: each takes a second to begin and its memory."""
    processes = Processes(min(len(os.sched_getaffinity(0)), _MOST))
    try:
        yield processes
    finally:
        processes.close()


def serve() -> None:
    """The life of a child: tasks from standard input, results to standard output, until the input ends."""
    tasks, results = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not get among the results
    with contextlib.suppress(EOFError, KeyboardInterrupt, BrokenPipeError):
        sys.path[:] = pickle.load(tasks)
        while True:
            function, task = pickle.load(tasks)
            try:
                found: tuple[bool, Any] = (True, function(task))
            except Exception as error:
                found = (False, error)
            pickle.dump(found, results, protocol=pickle.HIGHEST_PROTOCOL)
            results.flush()


def _hand_over(
    child: subprocess.Popen[bytes],
    function: Callable[[Any], Any],
    waiting: deque[tuple[int, Any]],
    results: dict[int, Any],
    failures: list[BaseException],
) -> None:
    """Gives tasks to one child, one after another, until there are none."""
    with contextlib.suppress(IndexError):
        while not failures:
            number, task = waiting.popleft()
            try:
                is_found, found = _ask(child, (function, task))
            except Exception as error:
                failures.append(error)
                return
            if not is_found:
                failures.append(found)
                return
            results[number] = found


def _ask(child: subprocess.Popen[bytes], order: object) -> tuple[bool, Any]:
    to_child, from_child = child.stdin, child.stdout
    assert to_child is not None
    assert from_child is not None
    _send(to_child, order)
    try:
        answer: tuple[bool, Any] = pickle.load(from_child)
    except EOFError:
        raise RuntimeError(f"a process that helped with this command ended with status {child.wait()}") from None
    return answer


def _send(pipe: IO[bytes], order: object) -> None:
    pickle.dump(order, pipe, protocol=pickle.HIGHEST_PROTOCOL)
    pipe.flush()
