# SPDX-License-Identifier: Apache-2.0
"""The kernels that one iteration of a case runs: nodes, types, tensors and times, whatever runtime they are from.

A profile is a record of its own, made after every window. Its times are no latency, because a profiler waits between
kernels or writes down each of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

# multiplying: convolutions and matrix products. quantising: between a narrow type and a floating one, with a scale.
# moving: copies, transposes, changes of layout, casts. other: everything else that runs. nothing: no kernel.
Work = Literal["multiplying", "moving", "quantising", "other", "nothing"]
WORKS: tuple[Work, ...] = get_args(Work)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One kernel, or one layer of an engine.

    name: unique in its profile
    kernel: what executes it: a tactic, an operator, a kernel's own name
    work: what it does
    computes_in: the type that it multiplies in; None: it does not multiply, or nothing tells
    inputs, outputs: element types; None: nothing tells
    nodes: names of the ONNX nodes that it computes, without the Q/DQ nodes that were folded into it
    reads, writes: names of tensors, without weights
    of_constants: whether it only moves or quantises what was known before the iteration, such as weights
    time_ms: in one iteration, over the profiled ones as `method` says; None: the profile has no times
    """

    name: str
    kernel: str
    work: Work
    computes_in: str | None = None
    inputs: tuple[str | None, ...] = ()
    outputs: tuple[str | None, ...] = ()
    nodes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    of_constants: bool = False
    time_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Kernels in the order of execution.

    source: who told: `onnxruntime`, `tensorrt` or `recorded`
    method: how the times were found, in words; that they are outside of every window is part of it
    iterations: how many were profiled; 0: the profile has no times
    iteration_ms: time of a whole profiled iteration, gaps between kernels included; None: nothing tells
    busy_ms: of an iteration, the time in which at least one kernel ran on the GPU; None: nothing tells
    qdq_nodes: QuantizeLinear and DequantizeLinear nodes of the ONNX file; None: nothing tells
    """

    source: str
    method: str
    iterations: int
    kernels: tuple[Kernel, ...]
    iteration_ms: float | None = None
    busy_ms: float | None = None
    qdq_nodes: int | None = None

    @property
    def has_times(self) -> bool:
        return any(kernel.time_ms is not None for kernel in self.kernels)

    @property
    def running(self) -> tuple[Kernel, ...]:
        """The kernels that run: without what only names a constant or an alias."""
        return tuple(kernel for kernel in self.kernels if kernel.work != "nothing")

    @property
    def total_ms(self) -> float:
        """The sum of all kernels' times."""
        return total_ms(self.kernels)


def total_ms(kernels: Iterable[Kernel]) -> float:
    """Time of kernels; one without a time adds nothing."""
    return math.fsum(kernel.time_ms or 0.0 for kernel in kernels)


def work_of(profile: Profile, work: Work) -> tuple[Kernel, ...]:
    """The kernels of a profile that do one kind of work."""
    return tuple(kernel for kernel in profile.kernels if kernel.work == work)


def time_ratio(profile: Profile, work: Work) -> float | None:
    """The share of all kernels' time that one kind of work takes; None without times."""
    total = profile.total_ms
    return total_ms(work_of(profile, work)) / total if total > 0 else None


def profile_to_json(profile: Profile) -> dict[str, Any]:
    """The stored form, without a schema version. Fields at their default are left out of a kernel."""
    stored = asdict(profile)
    stored["kernels"] = [_kernel_to_json(kernel) for kernel in profile.kernels]
    return stored


def profile_from_json(stored: Mapping[str, Any]) -> Profile:
    """Reads `profile_to_json`. Raises ValueError, TypeError or KeyError where the text is another."""
    return Profile(
        source=str(stored["source"]),
        method=str(stored["method"]),
        iterations=int(stored["iterations"]),
        kernels=tuple(_kernel_from_json(kernel) for kernel in stored["kernels"]),
        iteration_ms=_number(stored.get("iteration_ms")),
        busy_ms=_number(stored.get("busy_ms")),
        qdq_nodes=stored.get("qdq_nodes"),
    )


def mean_profile(profiles: Sequence[Profile]) -> Profile:
    """One profile of several runs of a case: each kernel's mean time over the runs that ran the same kernels as the
    first. Raises ValueError for no profile."""
    if not profiles:
        raise ValueError("no profile")
    first = profiles[0]
    alike = [one for one in profiles if [each.name for each in one.kernels] == [each.name for each in first.kernels]]
    kernels = tuple(
        replace(kernel, time_ms=_mean([one.kernels[place].time_ms for one in alike]))
        for place, kernel in enumerate(first.kernels)
    )
    return Profile(
        source=first.source,
        method=first.method,
        iterations=sum(one.iterations for one in alike),
        kernels=kernels,
        iteration_ms=_mean([one.iteration_ms for one in alike]),
        busy_ms=_mean([one.busy_ms for one in alike]),
        qdq_nodes=first.qdq_nodes,
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def _fields(kernel: Kernel) -> dict[str, Any]:
    return {name: getattr(kernel, name) for name in Kernel.__slots__}


_DEFAULTS = _fields(Kernel(name="", kernel="", work="other"))
_ALWAYS = ("name", "kernel", "work")


def _kernel_to_json(kernel: Kernel) -> dict[str, Any]:
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in _fields(kernel).items()
        if name in _ALWAYS or value != _DEFAULTS[name]
    }


def _kernel_from_json(stored: Mapping[str, Any]) -> Kernel:
    if stored["work"] not in WORKS:
        raise ValueError(f"no kernel does {stored['work']!r}")
    known: dict[str, Any] = {name: value for name, value in stored.items() if name in _DEFAULTS}
    kernel = Kernel(**{name: _immutable(value) for name, value in known.items()})
    return replace(kernel, time_ms=_number(kernel.time_ms))


def _immutable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
