# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest

from pybench.measure.timing.cpu_time import own_cpu_s

BUSY = """
import time
while time.process_time() < {seconds}:
    pass
print("done", flush=True)
"""


@pytest.mark.timing
def test_work_of_this_process_counts_and_sleep_does_not() -> None:
    begin_s = own_cpu_s()
    end_s = time.process_time() + 0.2
    while time.process_time() < end_s:
        pass
    worked_s = own_cpu_s() - begin_s
    assert worked_s > 0.19
    time.sleep(0.2)
    assert own_cpu_s() - begin_s < 1.5 * worked_s


def test_a_child_counts_while_it_runs_and_once_it_has_ended() -> None:
    begin_s = own_cpu_s()
    script = BUSY.format(seconds=0.2) + "input()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        assert child.stdout.readline() == b"done\n"
        running_s = own_cpu_s() - begin_s
        child.stdin.write(b"\n")
        child.stdin.close()
        child.wait()
        assert running_s >= 0.2
        assert own_cpu_s() - begin_s >= running_s - 0.03  # the kernel tells ended children in ticks of 10 ms


# A process that starts `script`, says when it was told that the work is done, and does as it is told then.
BETWEEN = """
import subprocess, sys
with subprocess.Popen([sys.executable, "-c", {script!r}], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as below:
    print(below.stdout.readline().decode(), end="", flush=True)
    input()
    below.communicate(b"\\n")
print("waited", flush=True)
input()
"""


@contextmanager
def grandchild(seconds: float) -> Iterator[subprocess.Popen[bytes]]:
    """A child of this process whose own child has worked so long, and now waits."""
    script = BETWEEN.format(script=BUSY.format(seconds=seconds) + "input()")
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"done\n"
        yield child
        child.communicate(b"\n\n")


def test_a_grandchild_counts_while_it_runs_once_it_has_ended_and_once_its_parent_has() -> None:
    begin_s = own_cpu_s()
    with grandchild(0.3) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        both_run_s = own_cpu_s() - begin_s
        child.stdin.write(b"\n")
        child.stdin.flush()
        assert child.stdout.readline() == b"waited\n"
        one_runs_s = own_cpu_s() - begin_s
    assert both_run_s >= 0.3
    assert one_runs_s >= both_run_s - 0.03
    assert own_cpu_s() - begin_s >= one_runs_s - 0.03


def test_threads_that_come_and_go_hide_no_child() -> None:
    """A child is listed with the thread that started it, and that list can vanish while it is read."""
    ending = threading.Event()

    def start_threads() -> None:
        while not ending.is_set():
            several = [threading.Thread(target=time.sleep, args=(0,)) for _ in range(8)]
            for thread in several:
                thread.start()
            for thread in several:
                thread.join()

    script = BUSY.format(seconds=0.3) + "input()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"done\n"
        starter = threading.Thread(target=start_threads)
        starter.start()
        try:
            readings = [own_cpu_s() for _ in range(400)]
        finally:
            ending.set()
            starter.join()
            child.communicate(b"\n")
    assert min(after - before for before, after in pairwise(readings)) > -0.03
