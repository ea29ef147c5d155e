# SPDX-License-Identifier: Apache-2.0
"""Workers as plain processes: nothing of them outlives who started them, at whatever moment that one goes."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from pybench.launcher import LOCAL, FileAccess
from pybench.launcher.launch import worker_words

QUESTION = ["--probe", "machine"]


def test_a_worker_reports_through_its_pipe_and_leaves_no_descriptor_behind() -> None:
    gc.collect()  # what other tests left
    before = len(os.listdir("/proc/self/fd"))
    with LOCAL.start(QUESTION, FileAccess(), subprocess.DEVNULL, subprocess.DEVNULL, own_session=True) as worker:
        worker.process.wait()
        text, may_continue = worker.read_report()
    assert json.loads(text)["facts"]["machine"]["available"]
    assert not may_continue
    assert (worker.exit().status, worker.exit().signal) == (0, None)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_worker_whose_starter_is_gone_before_it_begins_does_nothing(tmp_path: Path) -> None:
    for name in ("report", "lifeline"):
        os.mkfifo(tmp_path / name)
    command = [sys.executable, *worker_words(tmp_path / "report", tmp_path / "lifeline", QUESTION)]
    assert subprocess.run(command, timeout=120).returncode == 1
    report = os.open(tmp_path / "report", os.O_RDONLY | os.O_NONBLOCK)  # somebody listens, but holds no lifeline
    try:
        assert subprocess.run(command, timeout=120).returncode in (1, -signal.SIGKILL)
        assert os.read(report, 1) == b""
    finally:
        os.close(report)


def test_cutting_the_lifeline_kills_a_worker_that_is_busy(tmp_path: Path) -> None:
    arm = "import sys, pybench.worker.__main__ as main; main._die_with(int(sys.argv[1])); print('armed', flush=True)"
    busy = f"{arm}\nsum(range(10**12))"  # one call in C that holds the interpreter's lock
    read_end, write_end = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", busy, str(read_end)], pass_fds=(read_end,), stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "armed\n"
    os.close(read_end)
    os.close(write_end)
    assert process.wait(timeout=120) == -signal.SIGKILL  # the call lasts for hours
    process.stdout.close()
