# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import subprocess
import sys
import time

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
