# SPDX-License-Identifier: Apache-2.0
"""The kernels that a call launches on the GPU, by name, with the time of each: what ran, whoever launched it.

CUPTI records them for the whole process, through torch's profiler; replays of a captured graph are recorded kernel by
kernel, too. Recording costs time at every launch, and may go on doing so: no window comes after it. Copies and fills of
memory are no kernels. Does not judge: `pybench.precision` does.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

Kernels = Sequence[tuple[str, float]]  # (name, ms) in the order of their launches

_NO_KERNELS = ("Memcpy", "Memset")
MS_PER_US = 1e-3


def kernels_of(call: Callable[[], object]) -> Kernels:
    """The kernels of one call, which has to wait for the device. It is called twice: what only the first call does
    (builds, searches, captures) is not recorded. Empty where no torch with CUDA is there to record."""
    try:
        import torch
        from torch.profiler import ProfilerActivity, profile
    except ImportError:
        return []
    if not torch.cuda.is_available():
        return []
    call()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Warning: Profiler clears events")
        with profile(activities=[ProfilerActivity.CUDA]) as recorded:
            call()
    events = sorted(recorded.events(), key=lambda event: event.time_range.start)
    return [
        (event.name, MS_PER_US * event.time_range.elapsed_us())
        for event in events
        if event.device_type.name == "CUDA" and not event.name.startswith(_NO_KERNELS)
    ]
