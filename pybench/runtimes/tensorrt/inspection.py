# SPDX-License-Identifier: Apache-2.0
"""What an engine says of itself: its layers with types and kernels, and the time of each.

The inspector's text is JSON whose form differs between majors; `pybench.precision` reads it. Times come from
TensorRT's own profiler in executions of their own: with it every layer is waited for, so they are shares, and no
latency.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PROFILED_EXECUTIONS = 20


def layer_information(library: Any, engine: Any, context: Any) -> str:
    """The inspector's JSON for the whole engine, with the shapes of a context."""
    inspector = engine.create_engine_inspector()
    inspector.execution_context = context
    return str(inspector.get_engine_information(library.LayerInformationFormat.JSON))


def layer_times_ms(
    library: Any, context: Any, execute: Callable[[], None], executions: int = PROFILED_EXECUTIONS
) -> dict[str, float]:
    """Layer -> mean time in ms. `execute` runs the context once and waits; once more is run unprofiled first."""
    sums: dict[str, float] = {}

    class Profiler(library.IProfiler):  # type: ignore[misc]
        def __init__(self) -> None:
            library.IProfiler.__init__(self)

        def report_layer_time(self, name: str, time_ms: float) -> None:
            sums[name] = sums.get(name, 0.0) + time_ms

    execute()
    context.profiler = Profiler()
    context.enqueue_emits_profile = True
    for _ in range(executions):
        execute()
    context.enqueue_emits_profile = False  # the profiler stays, and another execution reports nothing to it
    return {name: total / executions for name, total in sums.items()}
