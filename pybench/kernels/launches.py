# SPDX-License-Identifier: Apache-2.0
"""The profile of the kernels that a call launched on a GPU: names and times, and no word of the nodes they are from."""

from __future__ import annotations

from collections.abc import Sequence

from pybench.errors import UnsupportedError
from pybench.kernels.engine_layers import launched_layer
from pybench.kernels.profile import Kernel, Profile

METHOD = "kernels of one run, recorded by CUPTI after every window"


def profile_of_launches(launched: Sequence[tuple[str, float]]) -> Profile:
    """`launched`: (name, ms) in the order of the launches. Raises UnsupportedError where there is none."""
    if not launched:
        raise UnsupportedError(
            "no kernel was recorded", code="no_kernels_recorded", hint="a torch with CUDA records them: install one"
        )
    return Profile(
        source="recorded",
        method=METHOD,
        iterations=1,
        kernels=tuple(_kernel(place, name, time_ms) for place, (name, time_ms) in enumerate(launched)),
    )


def _kernel(place: int, name: str, time_ms: float) -> Kernel:
    layer = launched_layer(f"{place} {name}", name)
    return Kernel(name=layer.name, kernel=name, work=layer.kind, computes_in=layer.multiplies, time_ms=time_ms)
