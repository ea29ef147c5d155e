# SPDX-License-Identifier: Apache-2.0
"""How fast the core was: probes between calls, and what is said of them."""

from __future__ import annotations

import time

import numpy as np
import pytest
from numpy.typing import NDArray

from pybench.measure import CallReplayer, fixed, summarise_probes
from pybench.measure.timing.core_speed import FEWEST_PROBES

US = 1_000


def probes(*durations_us: float) -> NDArray[np.int64]:
    """int64 [n, 2]: probes of these lengths, 10 ms apart."""
    begin_ns = np.arange(len(durations_us), dtype=np.int64) * 10_000_000
    return np.stack((begin_ns, begin_ns + (np.array(durations_us) * US).astype(np.int64)), axis=1)


def test_probes_lie_between_calls_and_ten_milliseconds_apart() -> None:
    times = CallReplayer(lambda: time.sleep(0.002)).replay(30)
    assert times.probes_ns is not None
    begin_ns, end_ns = times.probes_ns.T
    assert 2 <= len(begin_ns) <= 1 + (times.end_ns[-1] - times.begin_ns[0]) // 10_000_000
    assert np.all(end_ns > begin_ns)
    assert np.all(np.diff(begin_ns) >= 10_000_000)
    following = np.searchsorted(times.begin_ns, begin_ns, side="right")
    assert np.all(times.begin_ns[following] >= end_ns)
    assert np.all(times.end_ns[following[1:] - 1] <= begin_ns[1:])


def test_an_iteration_that_is_due_waits_for_no_probe() -> None:
    late = CallReplayer(lambda: time.sleep(0.002)).replay(40, arrivals=fixed(1000.0)).probes_ns
    idle = CallReplayer(lambda: None).replay(10, arrivals=fixed(100.0)).probes_ns
    assert late is not None
    assert idle is not None
    assert len(late) == 0
    assert len(idle) > 0


def test_a_core_of_one_speed_has_no_caution() -> None:
    speed = summarise_probes(probes(*[5.0] * 19, 9000.0))
    assert speed is not None
    assert (speed.mean_s, speed.p10_s) == (pytest.approx(5e-6), pytest.approx(5e-6))
    assert (speed.probes, speed.interrupted, speed.slow_share) == (19, 1, 0)
    assert speed.cautions() == []


def test_a_core_that_slows_down_has_a_caution_with_share_and_factor() -> None:
    speed = summarise_probes(probes(*[5.0] * 12, *[8.5] * 8))
    assert speed is not None
    (caution,) = speed.cautions()
    assert caution.code.code == "core_speed_varies"
    assert caution.detail == "40 % of the probes took 1.7 times as long as the fast ones"
    assert caution.metric == "latency_mean_ms"


def test_few_probes_decide_nothing() -> None:
    speed = summarise_probes(probes(*[5.0] * (FEWEST_PROBES - 2), 9.0))
    assert speed is not None
    assert speed.cautions() == []
    assert summarise_probes(probes()) is None
