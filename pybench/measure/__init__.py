# SPDX-License-Identifier: Apache-2.0
"""Measuring: clocks, windows, latency, energy and memory of the process that runs the work. The worker's one interface.

    from pybench import measure

    with measure.MeasuringSession(device_uuid, power_interval_s=0.1) as session:  # device_uuid None: no GPU
        with session.window("timing") as window:
            times_ns = measure.time_calls(iterate, iterations=1000)          # int64 [n, 2]: begin, end of each call
            window.iterations = len(times_ns)
        with session.window("energy") as window:                             # the same work, long enough for energy
            window.iterations = len(measure.time_calls(iterate, iterations=1, minimum_s=2.0))
    quantities = session.energy("energy") | session.memory()         # dict[str, Quantity]; energies once it ended
    cautions = session.cautions("energy")
    session.write_channels(write)                                    # write(name, {column: array})

    latency = measure.summarise_latency(times_ns)    # mean_s, p50_s, p95_s, p99_s, minimum_s, maximum_s, ...
    steady = measure.judge_steadiness(times_ns)      # .label: flat | warmup | slowdown | no_steady_state | None
    cautions += [*measure.latency_cautions(latency), *steady.cautions()]

Each name says the rest in its own docstring. What holds for all of them:

- There is one clock, CLOCK_MONOTONIC_RAW (`monotonic_ns`). SI inside; ns, mW and mJ end here.
- A `Quantity` is kept under the name of its metric, whose row says the unit. Its value is None where nothing was
  measured, with reasons, and never 0 for "unknown". Where `valid` is False, a value is there that must not be used.
- A missing NVML, device or RAPL is no error: quantities are null with a reason, and `facts()` says what was found.
- Names of windows are unique in a session. What is read at the edges of a window takes some tens of microseconds, with
  a GPU 3 to 16 ms more, and is outside the measured interval. A window that an exception left is not kept.
- The loops and the clock reads are C++, without the GIL; an exception of the measured work passes through.
- Boards are left as they were, also when this process is killed (`BoardSettings`).

    session   windows, energies, memory and channels of one process
    timing    calls and CUDA graphs repeated at a pace, latencies, and what is doubtful about them
    energy    the integration of power and counters, of GPU, CPU, module and node
    sensor    the delay and response of a power sensor, and the load that shows it
    board     what boards can be set to, and setting it
    quantity  a number with where it comes from
    build     the sources that the C++ object was built from

It imports `pybench._native`, numpy, rows and texts of `pybench.catalogue`, and pynvml where a board's facts or settings
are asked for.
"""

from __future__ import annotations

from pybench.measure.board.ranges import board_facts, may_set
from pybench.measure.board.settings import BoardSettings
from pybench.measure.build import NATIVE_BUILD_ID
from pybench.measure.energy.cpu import cpu_energy_source
from pybench.measure.energy.gpu_sampler import gpus
from pybench.measure.energy.integration import integrate
from pybench.measure.energy.node import node_energy_source
from pybench.measure.energy.profile import ASSUMED, SensorProfile, profile_from_json
from pybench.measure.energy.rails import module_energy_source
from pybench.measure.energy.trace import Trace, read_trace
from pybench.measure.quantity import Quantity
from pybench.measure.sensor.load import GpuLoad
from pybench.measure.session import IDLE_AFTER, IDLE_BEFORE, MeasuringSession
from pybench.measure.timing.clock import anchor_clock, monotonic_ns, seconds_since, sleep_until_ns, time_calls
from pybench.measure.timing.core_speed import summarise_probes
from pybench.measure.timing.cuda import visible_gpus
from pybench.measure.timing.latency import latency_cautions, summarise_latency
from pybench.measure.timing.memory import available_bytes
from pybench.measure.timing.replay import (
    CLOSED,
    NO_TIMES,
    Arrivals,
    CallReplayer,
    GraphReplayer,
    Replayer,
    Times,
    as_replayer,
    fixed,
    poisson,
)
from pybench.measure.timing.steady import judge_steadiness
from pybench.measure.timing.windows import Window

__all__ = [
    "ASSUMED",
    "CLOSED",
    "IDLE_AFTER",
    "IDLE_BEFORE",
    "NATIVE_BUILD_ID",
    "NO_TIMES",
    "Arrivals",
    "BoardSettings",
    "CallReplayer",
    "GpuLoad",
    "GraphReplayer",
    "MeasuringSession",
    "Quantity",
    "Replayer",
    "SensorProfile",
    "Times",
    "Trace",
    "Window",
    "anchor_clock",
    "as_replayer",
    "available_bytes",
    "board_facts",
    "cpu_energy_source",
    "fixed",
    "gpus",
    "integrate",
    "judge_steadiness",
    "latency_cautions",
    "may_set",
    "module_energy_source",
    "monotonic_ns",
    "node_energy_source",
    "poisson",
    "profile_from_json",
    "read_trace",
    "seconds_since",
    "sleep_until_ns",
    "summarise_latency",
    "summarise_probes",
    "time_calls",
    "visible_gpus",
]
