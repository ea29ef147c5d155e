# SPDX-License-Identifier: Apache-2.0
"""The kernels of one iteration, asked of each runtime in the way that it can be asked. Profiles are made last.

A profiler changes what it times, so a profile runs after every window and after the audit, and nothing is measured
after it. One that cannot be made costs no measurement: its metrics then have no value, and the label says why.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pybench.case import Case
from pybench.catalogue.code import code_of
from pybench.catalogue.reasons import Reason, ReasonCode
from pybench.catalogue.runtimes import Runtime
from pybench.catalogue.workloads import KERNELS
from pybench.errors import UnsupportedError, in_short
from pybench.kernels.engine import profile_of_engine
from pybench.kernels.launches import profile_of_launches
from pybench.kernels.profile import Kernel, Profile, time_ratio, work_of
from pybench.measure.quantity import Quantity
from pybench.measurement.audits import graph_of
from pybench.measurement.doubts import allowed_threads
from pybench.measurement.recorder import TIMING
from pybench.measurement.result import Result

LABEL = "profile"
NS_PER_MS = 1e6


def profile_of(row: Runtime) -> Callable[[Any, Case, Any], Profile]:
    """What tells the kernels of a runtime: `(session, case, given) -> Profile`, as its row names it."""
    found: Callable[[Any, Case, Any], Profile] = code_of(row, "profile")
    return found


def of_onnxruntime(session: Any, case: Case, given: Path) -> Profile:
    """An ONNX file's nodes with their times on a CPU; the recorded kernels on a GPU."""
    found: Profile = session.profile(allowed_threads(case), case.precision)
    return found


def of_engine(session: Any, case: Case, given: Path | Mapping[str, Path]) -> Profile:
    """An engine's layers with their times; or those of every engine that a frame runs, one after the other."""
    if isinstance(given, Path):
        return _of_one_engine(session, given)
    return joined({label: _of_one_engine(one, given[part]) for label, part, one in session.engines()})


def joined(parts: Mapping[str, Profile]) -> Profile:
    """The profiles of a model's parts as one, with the part in front of each kernel and each tensor. What parts run at
    the same time is no matter of it."""
    first = next(iter(parts.values()))
    kernels = tuple(_in_part(kernel, label) for label, profile in parts.items() for kernel in profile.kernels)
    nodes = [profile.qdq_nodes for profile in parts.values() if profile.qdq_nodes is not None]
    return replace(first, kernels=kernels, qdq_nodes=sum(nodes) if nodes else None)


def _in_part(kernel: Kernel, label: str) -> Kernel:
    reads, writes = (tuple(f"{label}/{name}" for name in names) for names in (kernel.reads, kernel.writes))
    return replace(kernel, name=f"{label}/{kernel.name}", reads=reads, writes=writes)


def _of_one_engine(session: Any, given: Path) -> Profile:
    from pybench.runtimes.tensorrt.inspection import PROFILED_EXECUTIONS

    times_ms = session.layer_times_ms()
    found = profile_of_engine(session.layer_information(), times_ms=times_ms, iterations=PROFILED_EXECUTIONS)
    return replace(found, qdq_nodes=graph_of(given).get("qdq_nodes"))


def of_launches(session: Any, case: Case, given: Any) -> Profile:
    """The kernels that a run launches on a GPU, recorded."""
    return profile_of_launches(session.launched())


def of_torch(session: Any, case: Case, given: Any) -> Profile:
    """The operators that a module calls on a CPU; the kernels that it launches on a GPU, recorded."""
    found: Profile = session.profile()
    return found


def add_profile(result: Result, make: Callable[[], Profile]) -> None:
    """Puts a profile and its metrics into a result. One that fails puts its reason there; the traceback is in the log,
    unless pybench itself refused."""
    try:
        profile = make()
    except UnsupportedError as error:
        _put_reason(result, replace(error.reason, detail=""), error.message)
    except Exception as error:  # whatever a framework throws
        traceback.print_exc()
        text = f"{type(error).__name__}: {in_short(error, 500)}"
        _put_reason(result, Reason(ReasonCode.NO_PROFILE), text)
    else:
        result.profile = profile
        result.labels[LABEL] = profile.method
        result.metrics |= metrics_of_profile(profile, iteration_ms(result))


def iteration_ms(result: Result) -> float | None:
    """Time of the timing window for one of its iterations, in ms; None: nothing was timed."""
    window = result.windows.get(TIMING)
    if window is None or not window["iterations"]:
        return None
    begin_ns, end_ns, iterations = (int(window[name]) for name in ("begin_ns", "end_ns", "iterations"))
    return (end_ns - begin_ns) / iterations / NS_PER_MS


def metrics_of_profile(profile: Profile, iteration_ms: float | None = None) -> dict[str, Quantity]:
    """The metrics of `KERNELS`. `iteration_ms`: time of an iteration that nothing profiled."""
    busy_ratio = min(profile.busy_ms / iteration_ms, 1.0) if profile.busy_ms is not None and iteration_ms else None
    counts = {
        "kernels_count": len(profile.running),
        "moving_kernels_count": len(work_of(profile, "moving")),
        "qdq_nodes_count": profile.qdq_nodes,
    }
    ratios = {
        "multiplying_time_ratio": time_ratio(profile, "multiplying"),
        "moving_time_ratio": time_ratio(profile, "moving"),
        "quantising_time_ratio": time_ratio(profile, "quantising"),
        "gpu_busy_ratio": busy_ratio,
    }
    return {
        name: Quantity(reasons=(Reason(ReasonCode.NOT_TOLD),))
        if value is None
        else Quantity(value=float(value), method=profile.method)
        for name, value in (counts | ratios).items()
    }


def _put_reason(result: Result, reason: Reason, text: str) -> None:
    result.labels[LABEL] = f"not made: {text}"
    result.metrics |= {name: Quantity(reasons=(reason,)) for name in KERNELS}
