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

`Quantity(value, window, u_standard, u_absolute, interval, samples, method, scope, valid, reasons)`
    One number with where it comes from, kept under the name of its metric (`gpu_energy_j`, `cpu_energy_j`,
    `cpu_energy_estimate_j`, `peak_host_bytes`, `peak_device_bytes`), whose row says the unit. `value` is None where
    nothing was measured, and `reasons` then says why; it is never 0 for "unknown". `u_standard` is the standard
    uncertainty that a ratio on one board carries, `u_absolute` adds the board's gain. Only estimates have an
    `interval`, and no value. `valid` is None where nothing could be measured, False where a value exists that must not
    be used. `quantity.scaled(1 / samples)` gives the same quantity per something.

`MeasuringSession(device_uuid=None, *, power_interval_s=0.1, nvml_library=None, profile=ASSUMED, root=Path("/"))`
    Starts the sampler threads on entry (C++, without the GIL) and stops them on exit. A missing NVML, device or RAPL is
    no error: quantities are null with a reason, and `session.facts()` says what was found (for environment.json).
    `session.window(name)` gives a context manager; names are unique in a session. What it reads at its edges takes some
    tens of microseconds, with a GPU 3 to 16 ms more, and is outside the measured interval. `session.windows` lists the
    closed `Window(name, begin_ns, end_ns, iterations)`; a window left by an exception is not kept.
    `session.idle(IDLE_BEFORE, seconds)` and `IDLE_AFTER` are windows without work, for the power of a board at rest.
    `session.energy(name)` returns `gpu_energy_j` and `cpu_energy_j`, and with a GPU also both together. The GPU's is
    there only if a device was asked for; with both idle windows, so are what is above idle, and the tail. When the
    CPU's is null or invalid, `cpu_energy_estimate_j` is returned as well. `session.slow_energies(name, times)` is the
    GPU's in iterations beyond p95 and p99. `session.energy_budget(*names)` says where the joules come from.
    `session.memory()` returns `peak_host_bytes` and, with a device, `peak_device_bytes`, over all windows; the host's
    peak is reset at the first window where the kernel allows it.
    `session.write_channels(write)` calls `write(name, columns)` with `name` in `power_samples`, `power_polled`,
    `power_drains`, `energy_counter`, `clocks`, `gpu_processes`, `power_rails`. `columns` is a dict of equally long
    arrays. Times are in seconds from `session.begin_ns` on CLOCK_MONOTONIC_RAW; missing is NaN. Channels without rows
    are not written.

`time_calls(work, iterations, minimum_s=0.0)`
    Calls `work()` until `iterations` calls are made and `minimum_s` has passed, whichever is later, as trtexec does.
    The loop and the clock reads are C++; an exception of `work` passes through.

`BoardSettings(uuid, {"power_limit_w": 300, "sm_clock_mhz": None, "memory_clock_mhz": None})`
    A context manager around a session. It sets what is not None on the board and waits until that is in force. At the
    end it restores what was before, also when this process is killed. `check()` after a window; `facts()`,
    `cautions()` afterwards.
    `board_facts()` says what each board can be set to and `may_set()` whether this process may, setting nothing.

`CallReplayer(work)`, `GraphReplayer(graph_exec, stream)`
    The same work repeated from C++ at a pace, behind one protocol (`replay.py`): closed loop, or open loop with
    `fixed(rate)` or `poisson(rate, seed)` arrivals. `.replay(iterations, minimum_s, arrivals=..., depth=...)` gives
    `Times`, whose `latency_ns` goes to `summarise_latency` and `judge_steadiness`.

`GpuLoad(uuid)`
    Keeps a GPU busy for a wanted time with a kernel of pybench's own (`sensor/load.py`).

`monotonic_ns()` is CLOCK_MONOTONIC_RAW, the one clock of every time here, and `seconds_since` reads it, too.
`sleep_until_ns` blocks, never spins.
`available_bytes()` is the memory that can be allocated without swapping.
`NATIVE_BUILD_ID` is the sha256 of the C++ sources that the loaded object was built from; store it with each run. It is
checked at import against the sources next to this package or, installed without them, against what the build wrote
down.
`gpus()` lists `Gpu(uuid, name)` with the driver's version, or none with the reason. `cpu_energy_source()` says what
counts the CPU's energy, `module_energy_source()` which power rails make up an edge module; each raises UnsupportedError
with why nothing does.

SI inside; ns, mW and mJ end here. Imports only `pybench._native`, numpy, pynvml where a board's facts or settings are
asked for, and {case, units, errors, cautions}.
"""

from __future__ import annotations

from pybench.measure.board.ranges import board_facts, may_set
from pybench.measure.board.settings import BoardSettings
from pybench.measure.build import NATIVE_BUILD_ID
from pybench.measure.energy.cpu import cpu_energy_source
from pybench.measure.energy.gpu_sampler import Gpu, gpus
from pybench.measure.energy.integration import integrate
from pybench.measure.energy.profile import ASSUMED, SensorProfile, profile_from_json
from pybench.measure.energy.rails import module_energy_source
from pybench.measure.energy.trace import Trace, read_trace
from pybench.measure.quantity import Quantity
from pybench.measure.sensor.load import GpuLoad
from pybench.measure.session import IDLE_AFTER, IDLE_BEFORE, MeasuringSession
from pybench.measure.timing.clock import anchor_clock, monotonic_ns, seconds_since, sleep_until_ns, time_calls
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
    "Gpu",
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
    "poisson",
    "profile_from_json",
    "read_trace",
    "seconds_since",
    "sleep_until_ns",
    "summarise_latency",
    "time_calls",
    "visible_gpus",
]
