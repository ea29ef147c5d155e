# SPDX-License-Identifier: Apache-2.0
"""What a call runs, as torch's profiler records it: kernels on a GPU, whoever launched them, or operators on a CPU.

CUPTI records kernels for the whole process; replays of a captured graph are recorded kernel by kernel, too. Recording
costs time at every launch, and may go on doing so: no window comes after it. Copies and fills of memory are no kernels.
Does not judge: `pybench.precision` does.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from pybench.kernels.launches import KernelLaunches, OperatorCall

Kernels = Sequence[tuple[str, float]]  # (name, ms) in the order of their launches

_NO_KERNELS = ("Memcpy", "Memset")
_OPERATOR, _COPY = "aten::", "aten::copy_"
MS_PER_US = 1e-3


def launched_by(call: Callable[[], object]) -> KernelLaunches:
    """The kernels of one call, which has to wait for the device. It is called twice: what only the first call does
    (builds, searches, captures) is not recorded. Empty where no torch with CUDA is there to record."""
    try:
        import torch
        from torch.profiler import ProfilerActivity, profile
    except ImportError:
        return KernelLaunches()
    if not torch.cuda.is_available():
        return KernelLaunches()
    recorder: Any = profile(activities=[ProfilerActivity.CUDA])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Warning: Profiler clears events")
        _record(call, recorder)
    events = [
        (event.name, event.time_range.start, event.time_range.end)
        for event in _in_order(recorder.events())
        if event.device_type.name == "CUDA" and not event.name.startswith(_NO_KERNELS)
    ]
    kernels = tuple((name, MS_PER_US * (end_us - begin_us)) for name, begin_us, end_us in events)
    return KernelLaunches(kernels, MS_PER_US * covered(((begin_us, end_us) for _, begin_us, end_us in events)))


def operators_of(call: Callable[[], object]) -> list[OperatorCall]:
    """The operators of torch that one call on a CPU calls, without those that they call in turn. Compiled code tells
    none of its own."""
    # `torch.profiler` records the same, but first imports torch's compiler, which takes a second or two.
    from torch.autograd.profiler import profile

    recorder = profile(use_kineto=True)
    _record(call, recorder)
    return [
        OperatorCall(event.name.removeprefix(_OPERATOR), MS_PER_US * event.time_range.elapsed_us(), _copies(event))
        for event in _in_order(recorder.function_events)
        if event.cpu_parent is None and event.name.startswith(_OPERATOR)
    ]


def _copies(event: Any) -> bool:
    """Whether an operator called the one that copies: `reshape` and its like do where a view is not possible."""
    return any(called.name == _COPY or _copies(called) for called in event.cpu_children)


def covered(intervals: Iterable[tuple[float, float]]) -> float:
    """Length of the union of intervals (begin, end), which are in the order of their begins."""
    length, until = 0.0, float("-inf")
    for begin, end in intervals:
        length += max(end - max(begin, until), 0.0)
        until = max(until, end)
    return length


def _record(call: Callable[[], object], recorder: AbstractContextManager[Any]) -> None:
    """Records the second of two calls."""
    call()
    with recorder:
        call()


def _in_order(events: Iterable[Any] | None) -> list[Any]:
    """Events in the order of their begins."""
    return sorted(events or (), key=lambda event: event.time_range.start)
