# SPDX-License-Identifier: Apache-2.0
"""Workers forked from one process that has imported torch and the rest: importing takes longer than most of them work.

For tests of what commands say and store. A worker inherits imports that a fresh one may not have made. So nothing is
measured with it, and the tests of the runner, of the README and of commands in processes of their own start fresh ones.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, cast
from unittest.mock import patch

from pybench.launcher import LocalLauncher
from pybench.launcher.launch import Exit, FileAccess, Launched, Output, signal_name, worker_words
from pybench.worker import __main__ as worker

IMPORTS = (
    "torch", "onnx", "onnxruntime", "onnxruntime.quantization", "openvino", "numpy.random",
    "pybench.worker.job", "pybench.worker.opening", "pybench.worker.probe", "pybench.worker.storing",
    "pybench.artefacts", "pybench.workloads.infer", "pybench.models.samples", "pybench.onnx_file.products",
    "pybench.runtimes.onnxruntime",
)  # fmt: skip
LONGEST = 1 << 20  # bytes of a request: the environment, mostly


class ReadyWorkers:
    """Takes the place of `LocalLauncher`: asks the process of `serve` for forks."""

    def __init__(self, asked: socket.socket) -> None:
        self._asked = asked

    def start(
        self, arguments: Sequence[str], access: FileAccess, stdout: Output, stderr: Output, *, own_session: bool
    ) -> Launched:
        report, report_of_worker = os.pipe2(os.O_CLOEXEC)
        lifeline_of_worker, lifeline = os.pipe2(os.O_CLOEXEC)
        with contextlib.ExitStack() as lent:
            shown: IO[bytes] | None = None
            if stderr == subprocess.PIPE:
                reading, stderr = os.pipe2(os.O_CLOEXEC)
                lent.callback(os.close, stderr)
                shown = os.fdopen(reading, "rb")
            outputs = [lent.enter_context(_opened(target, number)) for target, number in ((stdout, 1), (stderr, 2))]
            for number in (report_of_worker, lifeline_of_worker):
                lent.callback(os.close, number)
            words = worker_words("REPORT", "LIFELINE", arguments)  # type: ignore[arg-type]  # the fork knows its numbers
            order = {
                "words": words[words.index("pybench.worker") + 1 :],
                "folder": str(Path.cwd()),
                "environment": dict(os.environ),
                "own_session": own_session,
            }
            pid = _ask(self._asked, order, [*outputs, report_of_worker, lifeline_of_worker])
        os.set_blocking(report, False)
        return _Worker(cast("Any", _Process(pid, self._asked, shown)), report, lifeline, own_session)

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """What starts workers on this machine starts these."""
        with patch.object(LocalLauncher, "start", lambda _, *arguments, **options: self.start(*arguments, **options)):
            yield


@contextlib.contextmanager
def _opened(target: Output, inherited: int) -> Iterator[int]:
    if target == subprocess.DEVNULL:
        with open(os.devnull, "wb") as nothing:
            yield nothing.fileno()
    else:
        yield inherited if target is None else target if isinstance(target, int) else target.fileno()


def _ask(asked: socket.socket, order: dict[str, Any], descriptors: Sequence[int] = ()) -> int:
    socket.send_fds(asked, [json.dumps(order).encode()], descriptors)
    return int(asked.recv(100))


class _Process:
    """What of `subprocess.Popen` a started worker is asked for. It stays a zombie until it is waited for."""

    def __init__(self, pid: int, asked: socket.socket, stderr: IO[bytes] | None) -> None:
        self.pid = pid
        self.stderr = stderr
        self.returncode: int | None = None
        self._asked = asked
        self._ended = os.pidfd_open(pid)

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._ended], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("worker", timeout or 0.0)
            os.close(self._ended)
            self.returncode = os.waitstatus_to_exitcode(_ask(self._asked, {"reap": self.pid}))
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[None, bytes | None]:
        """What it wrote to a pipe has to fit into the pipe."""
        self.wait(timeout)
        return None, self.stderr.read() if self.stderr is not None else None


class _Worker(Launched):
    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def exit(self) -> Exit:
        code = cast("int", self.process.returncode)
        return Exit(code, None) if code >= 0 else Exit(None, signal_name(-code))


@contextlib.contextmanager
def serve_workers() -> Iterator[ReadyWorkers]:
    """The process, as long as the context lasts."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, its:
        for kind in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            ours.setsockopt(socket.SOL_SOCKET, kind, LONGEST)
        command = [sys.executable, str(Path(__file__)), str(its.fileno())]
        process = subprocess.Popen(command, pass_fds=(its.fileno(),), stdin=subprocess.DEVNULL)
        its.close()
        yield ReadyWorkers(ours)
        ours.close()
        process.wait(60)


def _serve(asked: socket.socket) -> None:
    for name in IMPORTS:
        with contextlib.suppress(ModuleNotFoundError):  # a worker says what it lacks
            importlib.import_module(name)
    gc.freeze()
    while True:
        content, descriptors, _, _ = socket.recv_fds(asked, LONGEST, 4)
        if not content:
            return
        order = json.loads(content)
        if "reap" in order:
            answer = os.waitpid(order["reap"], 0)[1]
        else:
            answer = os.fork()
            if answer == 0:
                asked.close()
                _become_worker(order, *descriptors)
            for number in descriptors:
                os.close(number)
        asked.send(str(answer).encode())


def _become_worker(order: dict[str, Any], stdout: int, stderr: int, report: int, lifeline: int) -> None:
    status = 70
    try:
        if order["own_session"]:
            os.setsid()
        os.chdir(order["folder"])
        os.environ.clear()
        os.environ.update(order["environment"])
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        worker.STARTED_NS = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        numbers = {"REPORT": str(report), "LIFELINE": str(lifeline)}
        worker._end(worker.main([numbers.get(word, word) for word in order["words"]]))
    finally:
        os._exit(status)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
