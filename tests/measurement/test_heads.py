# SPDX-License-Identifier: Apache-2.0
"""Metrics of heads: rates, latencies and missed deadlines from their ends, and what a run stores."""

from __future__ import annotations

import numpy as np
import pytest

from pybench.case import Case
from pybench.case.yields import metrics_of
from pybench.catalogue.heads import head_metrics
from pybench.measure.timing.head_log import NOT_RUN
from pybench.measurement.heads import metrics_of_heads
from pybench.models import vit_heads
from tests.support.making import run

MS = 1_000_000
VIT = Case(
    workload="infer", model="vit-heads", heads=2, runtime="torch", device="cpu", batch=1, threads=2, iterations=4,
    warmup_iterations=1, idle_window_s=0.0,
)  # fmt: skip


def test_a_heads_latency_counts_from_the_arrival_and_its_deadline_is_its_period() -> None:
    begins_ns = np.array([0, 100, 200, 300], np.int64) * MS
    ends_ns = np.array([[40, 90], [160, NOT_RUN], [250, 420], [330, NOT_RUN]], np.int64) * MS
    ends_ns[ends_ns < 0] = NOT_RUN
    metrics = metrics_of_heads(VIT, begins_ns, ends_ns, timed_s=0.5, rates_hz=(20.0, 5.0))
    assert metrics["head1_rate_per_s"].value == 8.0
    assert metrics["head2_rate_per_s"].value == 4.0
    assert metrics["head1_latency_p50_ms"].value == pytest.approx(45.0)  # of 40, 60, 50 and 30
    assert metrics["head1_deadline_miss_ratio"].value == 0.25  # 60 ms, where 50 are a period
    assert metrics["head2_deadline_miss_ratio"].value == 0.5  # 220 ms, where 200 are a period
    assert "head1_deadline_miss_ratio" not in metrics_of_heads(VIT, begins_ns, ends_ns, 0.5, None)


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same network, narrow and shallow, so that a run takes no time."""
    monkeypatch.setattr(vit_heads.VitHeads.__init__, "__kwdefaults__", {"width": 64, "layers": 1})


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("dispatch", ["sequential", "one-engine", "streams"])
def test_a_run_stores_the_metrics_of_each_head(dispatch: str) -> None:
    case = VIT.with_factors(dispatch=dispatch)
    result = run(case)
    names = set(head_metrics(2, has_deadlines=False))
    assert names == {name for name in result.metrics if name.startswith("head")}
    assert names <= metrics_of(case)
    latencies = [result.metrics[f"head{number}_latency_p50_ms"].value for number in (1, 2)]
    whole_ms = result.metrics["latency_p50_ms"].value
    assert all(0 < latency <= whole_ms for latency in latencies)
    assert result.metrics["head2_rate_per_s"].value == pytest.approx(
        result.metrics["throughput_samples_per_s"].value, rel=1e-6
    )
    assert result.labels["heads"] == "depth, boxes"
    if dispatch == "sequential":
        assert latencies[0] < latencies[1]


@pytest.mark.usefixtures("narrow")
def test_heads_with_rates_run_at_them_and_tell_misses() -> None:
    case = VIT.with_factors(
        dispatch="streams", head_rates_hz="20,10", arrivals="fixed", arrival_rate_per_s=20.0, iterations=8
    )
    result = run(case)
    assert [result.metrics[f"head{number}_rate_per_s"].samples for number in (1, 2)] == [8, 4]
    assert 0 <= result.metrics["head1_deadline_miss_ratio"].value <= 1
