# SPDX-License-Identifier: Apache-2.0
"""Copies between host and GPU: to it, from it, or both ways at once; an iteration ends when all bytes are there.

The host's memory is pageable or page-locked, and on a chosen NUMA node where the case names one. With several streams
a copy is cut into parts, equal within a byte, which are copied at once. Every part and direction has a stream of its
own.

Without a GPU it is unsupported: a copy inside the host would be another measurement. Nothing runs beside the copies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import torch
from torch import Tensor

from pybench.case import Case
from pybench.case.factors import BOTH, FROM_GPU, TO_GPU
from pybench.catalogue.causes import Cause
from pybench.errors import UnsupportedError
from pybench.measurement.doubts import allowed_threads
from pybench.measurement.recorder import Amounts, record
from pybench.measurement.result import Result, RunRequest
from pybench.preprocess.tensors import PageLocked
from pybench.runtimes import torch as runtime
from pybench.runtimes.host_memory import on_node

_WAYS = {TO_GPU: (TO_GPU,), FROM_GPU: (FROM_GPU,), BOTH: (TO_GPU, FROM_GPU)}


@dataclass(frozen=True, slots=True)
class CopiedPart:
    """What one stream copies in an iteration: uint8 of equal length on host and device, one of them the target."""

    target: Tensor
    source: Tensor


def run(request: RunRequest) -> Result:
    case = request.case
    if case.device == "cpu" or runtime.set_up("fp32", allowed_threads(case), case.device) != "cuda":
        raise UnsupportedError(
            f"{case.workload} needs a GPU, and there is none: {case.workload_row.needs_gpu}",
            code=Cause.NO_GPU,
            hint="run the case on a machine with a GPU",
        )
    generator = torch.Generator().manual_seed(request.seed)
    ways = _WAYS[case.direction]
    with ExitStack() as locked:
        hosts = [_host_memory(case, generator, locked) for _ in ways]
        devices = [torch.empty(case.transfer_bytes, dtype=torch.uint8, device="cuda") for _ in ways]
        parts = [
            part
            for way, host, device in zip(ways, hosts, devices, strict=True)
            for part in parts_of(way, host, device, case.streams)
        ]
        result = record(
            case,
            _copying(parts, case.non_blocking),
            Amounts(copied_bytes=case.transfer_bytes * len(ways)),
            runtime.gpu_uuid(),
            sensors=request.sensors,
        )
    result.labels |= {
        "device": runtime.gpu_uuid(),
        "runtime_version": torch.__version__,
        "memory": "page-locked" if case.pinned else "pageable",
        "numa_node": "not chosen" if case.numa_node is None else str(case.numa_node),
        "copies": described(parts),
        "iteration": "all copies, from the call of the first until every stream is idle",
    }
    return result


def parts_of(way: str, host: Tensor, device: Tensor, streams: int) -> list[CopiedPart]:
    """One direction of an iteration, cut into as many parts as there are streams; each byte is in one of them."""
    pairs = zip(host.tensor_split(streams), device.tensor_split(streams), strict=True)
    return [CopiedPart(there, here) if way == TO_GPU else CopiedPart(here, there) for here, there in pairs]


def described(parts: Sequence[CopiedPart]) -> str:
    """How many copies an iteration makes, and of how many bytes: the last ones of a direction may be a byte shorter."""
    sizes = [part.source.numel() for part in parts]
    least, most = min(sizes), max(sizes)
    return f"{len(parts)} of {most} bytes" if least == most else f"{len(parts)} of {least} to {most} bytes"


def _host_memory(case: Case, generator: torch.Generator, locked: ExitStack) -> Tensor:
    """Random bytes in the kind of memory that the case asks for. `locked`: ends what keeps it page-locked."""
    drawn = torch.randint(0, 256, (case.transfer_bytes,), dtype=torch.uint8, generator=generator)
    if case.numa_node is None:
        return drawn.pin_memory() if case.pinned else drawn
    memory = on_node(case.transfer_bytes, case.numa_node)
    if case.pinned:
        locked.callback(PageLocked(memory).close)
    return torch.from_numpy(memory).copy_(drawn)


def _copying(parts: Sequence[CopiedPart], non_blocking: bool) -> Callable[[], None]:
    """An iteration. A single copy takes the current stream, and costs the host nothing but its call."""
    if len(parts) == 1:
        (part,), stream = parts, torch.cuda.current_stream()

        def copy() -> None:
            part.target.copy_(part.source, non_blocking=non_blocking)
            stream.synchronize()

        return copy
    lanes = [(torch.cuda.Stream(), part) for part in parts]  # type: ignore[no-untyped-call]

    def copy_at_once() -> None:
        for stream, part in lanes:
            with torch.cuda.stream(stream):
                part.target.copy_(part.source, non_blocking=non_blocking)
        for stream, _ in lanes:
            stream.synchronize()

    return copy_at_once
