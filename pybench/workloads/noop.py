# SPDX-License-Identifier: Apache-2.0
"""Does nothing, as a run: what remains is the harness. With an energy window it idles: that is the machine at rest.

Where `device` is a GPU's UUID, that board is measured at rest too; no framework opens it, so its clocks may be idle.
"""

from __future__ import annotations

import time

from pybench.workloads.recording import Amounts, record
from pybench.workloads.result import Request, Result, Verdict

IDLE_S = 0.001  # one idle iteration: short enough that a window ends on time, long enough that looping costs nothing


def run(request: Request) -> Result:
    iterate = _idle if request.case.energy_window_s > 0 else _nothing
    device = request.case.device
    uuid = None if device in ("auto", "cpu", "cuda") else device
    result = record(request.case, iterate, Amounts(), uuid)
    result.labels["device"] = uuid or "cpu"
    result.valid["timing"] = Verdict(None, ("nothing_is_timed",))
    return result


def _nothing() -> None:
    return


def _idle() -> None:
    time.sleep(IDLE_S)
