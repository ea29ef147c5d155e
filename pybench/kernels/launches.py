# SPDX-License-Identifier: Apache-2.0
"""Profiles of what a call ran: kernels that it launched on a GPU, or operators of torch that it called on a CPU.

Both are known by name and time; nothing tells from which node of a file they come.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pybench.catalogue.causes import Cause
from pybench.errors import UnsupportedError
from pybench.kernels.engine_layers import launched_layer
from pybench.kernels.profile import Kernel, Profile, Work

METHOD = "kernels of one run, recorded by CUPTI after every window"
OPERATORS = "operators of one run, recorded by torch's profiler after every window"

_MULTIPLYING = re.compile("conv(?!ert)|matmul|addmm|(?:^|_)mm$|bmm|^linear|^bilinear|attention|einsum|lstm|gru")
_MOVING = frozenset({"copy_", "clone", "cat", "stack", "index", "index_select", "pad"})
# They give the same memory where they can, and a copy where they cannot.
_ALIASES = frozenset(
    {"view", "transpose", "permute", "t", "expand", "select", "slice", "unsqueeze", "squeeze", "detach", "chunk",
     "split", "unflatten", "flatten", "reshape", "unbind", "narrow", "expand_as", "view_as", "alias", "movedim",
     "resolve_conj", "contiguous", "to"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class OperatorCall:
    """One call of an operator of torch. `copies`: whether it copied a tensor on the way."""

    name: str
    time_ms: float
    copies: bool = False


@dataclass(frozen=True, slots=True)
class KernelLaunches:
    """Kernels of one call.

    kernels: (name, ms) in the order of their launches
    busy_ms: the time in which at least one of them ran
    """

    kernels: tuple[tuple[str, float], ...] = ()
    busy_ms: float = 0.0


def profile_of_launches(launched: KernelLaunches) -> Profile:
    """Raises UnsupportedError where there is no kernel."""
    if not launched.kernels:
        raise UnsupportedError(
            "no kernel was recorded", code=Cause.NO_KERNELS_RECORDED, hint="a torch with CUDA records them: install one"
        )
    return Profile(
        source="recorded",
        method=METHOD,
        iterations=1,
        kernels=tuple(_kernel(place, name, time_ms) for place, (name, time_ms) in enumerate(launched.kernels)),
        busy_ms=launched.busy_ms,
    )


def profile_of_operators(called: Sequence[OperatorCall]) -> Profile:
    """`called`: in the order of the calls. Raises UnsupportedError where there is none."""
    if not called:
        raise UnsupportedError(
            "no operator was recorded: compiled code names none",
            code=Cause.NO_KERNELS_RECORDED,
            hint="`runtime: torch` tells its operators on a CPU",
        )
    kernels = tuple(
        Kernel(name=f"{place} {call.name}", kernel=call.name, work=_work(call), time_ms=call.time_ms)
        for place, call in enumerate(called)
    )
    return Profile(source="recorded", method=OPERATORS, iterations=1, kernels=kernels)


def _kernel(place: int, name: str, time_ms: float) -> Kernel:
    layer = launched_layer(f"{place} {name}", name)
    return Kernel(name=layer.name, kernel=name, work=layer.kind, computes_in=layer.multiplies, time_ms=time_ms)


def _work(call: OperatorCall) -> Work:
    if call.name in _ALIASES:
        return "moving" if call.copies else "nothing"
    if call.name in _MOVING:
        return "moving"
    return "multiplying" if _MULTIPLYING.search(call.name) else "other"
