# SPDX-License-Identifier: Apache-2.0
"""Seconds that the fused energy of 1e5 windows over a trace of one hour takes.

The trace is simulated: 180,000 samples 15 to 25 ms apart, a counter on a 100 ms grid read every 50 to 59 ms. Windows
are 0.2 to 20 s long and overlap. Everything is counted: finding the counter's grid, seven passes of the integrator, the
reasons of every window. Each figure is the least and the median of five, by the clock and by this process's CPU time,
which other work on the machine disturbs less.
"""

from __future__ import annotations

import statistics
import time

import numpy as np

from pybench.measure.energy.integration import integrate
from pybench.measure.energy.profile import ASSUMED
from pybench.measure.energy.trace import CounterChannel, SampleChannel, Times, Trace

WINDOWS = 100_000
REPETITIONS = 5
SECOND_NS = 1_000_000_000


def main() -> None:
    generator = np.random.default_rng(20260101)
    trace = hour(generator)
    last_ns = int(trace.samples.time_ns[-1])
    begin_ns = generator.integers(SECOND_NS, last_ns - 30 * SECOND_NS, WINDOWS)
    end_ns = begin_ns + generator.integers(SECOND_NS // 5, 20 * SECOND_NS, WINDOWS)
    order = np.argsort(begin_ns)
    print(f"{WINDOWS} windows over {last_ns / SECOND_NS:.0f} s: {len(trace.samples.time_ns)} samples, "
          f"{len(trace.counter.call_ns)} counter readings")  # fmt: skip
    print(f"{'windows':<14} {'least s':>8} {'median s':>9} {'least CPU s':>12}")
    for name, chosen in (("in any order", slice(None)), ("in order", order)):
        report(name, trace, begin_ns[chosen], end_ns[chosen])


def hour(generator: np.random.Generator) -> Trace:
    time_ns = np.cumsum(generator.integers(15_000_000, 25_000_000, 180_000))
    call_ns = np.arange(0, time_ns[-1], 50_000_000)
    call_ns += generator.integers(0, 9_000_000, len(call_ns))
    return Trace(
        samples=SampleChannel(time_ns, generator.normal(400, 50, len(time_ns))),
        counter=CounterChannel(call_ns, call_ns + 3_700_000, np.floor(call_ns / 1e8) * 40.0),
    )


def report(name: str, trace: Trace, begin_ns: Times, end_ns: Times) -> None:
    wall_s, cpu_s = [], []
    for _ in range(REPETITIONS):
        started, started_cpu = time.perf_counter(), time.process_time()
        integrate(trace, begin_ns, end_ns, ASSUMED)
        wall_s.append(time.perf_counter() - started)
        cpu_s.append(time.process_time() - started_cpu)
    print(f"{name:<14} {min(wall_s):>8.2f} {statistics.median(wall_s):>9.2f} {min(cpu_s):>12.2f}")


if __name__ == "__main__":
    main()
