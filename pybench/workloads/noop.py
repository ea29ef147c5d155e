# SPDX-License-Identifier: Apache-2.0
"""Does nothing, as a run: what remains is the harness. With an energy window it idles: that is the machine at rest.

A GPU takes part only when the case names it (`device: cuda` or a UUID). Its board is then sampled at rest, which is the
baseline of everything else that runs on it. No framework opens it, so its clocks may be idle. `auto` stays on the CPU,
because nothing here would choose a GPU.
"""

from __future__ import annotations

import time

from pybench import measure
from pybench.catalogue.causes import Cause
from pybench.catalogue.reasons import Reason
from pybench.errors import UnsupportedError
from pybench.measurement.recorder import Amounts, record
from pybench.measurement.result import Result, RunRequest, Validity

IDLE_S = 0.001  # one idle iteration: short enough that a window ends on time, long enough that looping costs nothing


def run(request: RunRequest) -> Result:
    iterate = _idle if request.case.energy_window_s > 0 else _nothing
    board = _named_board(request.case.device)
    result = record(request.case, iterate, Amounts(), board)
    result.labels["device"] = board or "cpu"
    result.valid["timing"] = Validity(None, (Reason(Cause.NOTHING_IS_TIMED),))
    return result


def _named_board(device: str) -> str | None:
    """UUID of the GPU that the case names; None where it names none. Raises UnsupportedError for one that is absent."""
    if device in ("auto", "cpu"):
        return None
    found = measure.gpus()
    uuids = [gpu.uuid for gpu in found.gpus]
    if not uuids:
        raise UnsupportedError(f"the case asks for {device}, and NVML gives no GPU ({found.reason})", code=Cause.NO_GPU)
    if device != "cuda" and device not in uuids:
        raise UnsupportedError(f"no GPU {device} here; there are {', '.join(uuids)}", code=Cause.NO_SUCH_GPU)
    return uuids[0] if device == "cuda" else device


def _nothing() -> None:
    return


def _idle() -> None:
    time.sleep(IDLE_S)
