# SPDX-License-Identifier: Apache-2.0
"""First reports of one campaign by several versions of pybench: `python bench/reading/measure.py CAMPAIGN SOURCE...`.

SOURCE is a folder with a version of `pybench/`, such as a checkout. All versions run at the same time, so they share
what the machine is doing besides; no run is hashed yet. One line each: CPU time of all of its processes, wall time, and
the largest sum of their proportional set sizes, looked at each 0.25 s.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from pybench.campaign.hashed import INDEX

PERIOD_S = 0.25
LINE = "{source}: {cpu_s:.1f} s of CPU time, {wall_s:.1f} s by the clock, {peak_mb:.0f} MB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("campaign", type=Path)
    parser.add_argument("sources", type=Path, nargs="+")
    arguments = parser.parse_args()
    (arguments.campaign / INDEX).unlink(missing_ok=True)
    print(f"load average {os.getloadavg()[0]:.1f}")
    threads = [
        threading.Thread(target=measure, args=(arguments.campaign.resolve(), source.resolve()))
        for source in arguments.sources
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def measure(campaign: Path, source: Path) -> None:
    """Prints the line of one version."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-P", "-m", "pybench.cli", "report", str(campaign), "--out", f"{folder}/report"]
        began_s = time.monotonic()
        with subprocess.Popen(
            command, cwd=folder, env=os.environ | {"PYTHONPATH": str(source)}, stdout=subprocess.DEVNULL
        ) as process:
            peak = 0
            while True:
                peak = max(peak, sum(map(_bytes_of, _tree_of(process.pid))))
                ended, status, usage = os.wait4(process.pid, os.WNOHANG)
                if ended:
                    process.returncode = os.waitstatus_to_exitcode(status)
                    break
                time.sleep(PERIOD_S)
        wall_s = time.monotonic() - began_s
    if process.returncode:
        print(f"{source}: ended with status {process.returncode}", file=sys.stderr)
        return
    cpu_s = usage.ru_utime + usage.ru_stime  # of the processes that it waited for, too
    print(LINE.format(source=source, cpu_s=cpu_s, wall_s=wall_s, peak_mb=peak / 1e6))


def _tree_of(process: int) -> list[int]:
    """A process and all below it."""
    found = [process]
    for one in found:
        with contextlib.suppress(OSError):
            found += map(int, Path(f"/proc/{one}/task/{one}/children").read_text().split())
    return found


def _bytes_of(process: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


if __name__ == "__main__":
    main()
