# SPDX-License-Identifier: Apache-2.0
"""Copies from host to GPU: pageable or page-locked, blocking or not; an iteration ends when the bytes are there.

Without a GPU it is unsupported: a copy inside the host would be another measurement. Copies in one direction, one at a
time, and nothing beside them.
"""

from __future__ import annotations

import torch

from pybench.errors import UnsupportedError
from pybench.measurement.doubts import allowed_threads
from pybench.measurement.recorder import Amounts, record
from pybench.measurement.result import Result, RunRequest
from pybench.runtimes import torch as runtime


def run(request: RunRequest) -> Result:
    case = request.case
    if case.device == "cpu" or runtime.set_up("fp32", allowed_threads(case), case.device) != "cuda":
        raise UnsupportedError(
            f"{case.workload} needs a GPU, and there is none: {case.workload_row.needs_gpu}", code="no_gpu"
        )
    generator = torch.Generator().manual_seed(request.seed)
    source = torch.randint(0, 256, (case.transfer_bytes,), dtype=torch.uint8, generator=generator)
    source = source.pin_memory() if case.pinned else source
    target = torch.empty_like(source, device="cuda", pin_memory=False)
    stream, non_blocking = torch.cuda.current_stream(), case.non_blocking

    def iterate() -> None:
        target.copy_(source, non_blocking=non_blocking)
        stream.synchronize()

    result = record(
        case, iterate, Amounts(copied_bytes=case.transfer_bytes), runtime.gpu_uuid(), sensors=request.sensors
    )
    result.labels |= {
        "device": runtime.gpu_uuid(),
        "runtime_version": torch.__version__,
        "memory": "page-locked" if case.pinned else "pageable",
        "iteration": "one copy, from its call until the stream is idle",
    }
    return result
