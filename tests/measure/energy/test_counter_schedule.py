# SPDX-License-Identifier: Apache-2.0
"""What the counter's schedule (C++) reads, and what the finder of its steps makes of that."""

from __future__ import annotations

import numpy as np
import pytest

from pybench import _native
from pybench.measure.energy.counter_steps import find_steps
from pybench.measure.energy.trace import CounterChannel


@pytest.mark.parametrize("phase_ms", [0, 13, 26, 39, 52, 65, 78, 91])
def test_what_the_schedule_reads_tells_the_phase_of_the_ticks(phase_ms: int) -> None:
    period_ns, call_ns, now_ns = 99_998_500, 3_000_000, 10_000_000_000
    first_ns = now_ns - 1_000_000_000 + phase_ms * 1_000_000
    schedule = _native.CounterSchedule(5_000_000_000)
    schedule.track(now_ns, now_ns)
    calls, values = [], []
    while now_ns < 40_000_000_000:
        now_ns = max(now_ns, schedule.due_ns) + 60_000
        ticks = (now_ns + call_ns // 3 - first_ns) // period_ns
        schedule.note(now_ns, now_ns + call_ns, ticks * 12_000.0, True)
        calls.append(now_ns)
        values.append(ticks * 12.0)
        now_ns += call_ns
    channel = CounterChannel(np.array(calls), np.array(calls) + call_ns, np.array(values))
    steps = find_steps(channel, first_ns, 0.1, 0.003, tick_is_known=True)
    assert steps.tick_s == pytest.approx(period_ns * 1e-9, rel=1e-4)
    late_s = steps.time_s - np.round(steps.time_s / (period_ns * 1e-9)) * period_ns * 1e-9
    # A value is latched after a third of the call here, and half of it is what has to be supposed.
    assert np.abs(late_s + call_ns * 1e-9 / 6).max() < max(0.002, 3 * steps.u_phase_s)
    assert steps.u_phase_s < 0.004
    assert len(calls) < 80
