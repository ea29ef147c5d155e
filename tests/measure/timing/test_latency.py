# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from pybench.catalogue.cautions import CautionCode
from pybench.errors import UsageError
from pybench.measure import latency_cautions, summarise_latency
from pybench.measure.timing.latency import percentile_index


def times_of(durations_ms: list[float] | NDArray[np.float64]) -> NDArray[np.int64]:
    durations_ns = (np.asarray(durations_ms) * 1e6).astype(np.int64)
    ends = np.cumsum(durations_ns)
    return np.column_stack([ends - durations_ns, ends])


def test_ten_times_give_what_the_hand_gives() -> None:
    summary = summarise_latency(times_of([7, 3, 10, 1, 5, 2, 9, 4, 8, 6]))
    assert summary.mean_s == pytest.approx(5.5e-3)
    assert summary.p50_s == pytest.approx(5.5e-3)
    assert summary.p95_s == pytest.approx(10e-3)
    assert summary.p99_s == pytest.approx(10e-3)
    assert (summary.minimum_s, summary.maximum_s) == (pytest.approx(1e-3), pytest.approx(10e-3))


def test_the_median_of_an_odd_count_is_the_middle() -> None:
    assert summarise_latency(times_of([9, 1, 4])).p50_s == pytest.approx(4e-3)


def test_a_thousand_times_give_trtexecs_p99_and_not_an_interpolated_one() -> None:
    times = np.arange(1, 1001, dtype=float)
    summary = summarise_latency(times_of(times))
    assert summary.p99_s == pytest.approx(991e-3)
    assert summary.p99_s != pytest.approx(np.percentile(times, 99) * 1e-3, rel=1e-5)


@pytest.mark.parametrize(
    ("percentile", "count", "index"),
    # by hand: float32 0.99 lies above 0.99, so (1 - 0.99) * 1000 is 9.99999 and truncates to 9. 0.95 and 0.9 lie below,
    # so (1 - 0.95) * 20 and (1 - 0.9) * 10 are 1.0000002 and truncate to 1
    [(99, 1000, 990), (99, 100, 99), (95, 100, 94), (95, 20, 18), (90, 10, 8), (99, 1, 0), (0, 10, 0), (100, 10, 9)],
)
def test_the_percentiles_index_is_trtexecs(percentile: float, count: int, index: int) -> None:
    assert percentile_index(percentile, count) == index


def test_one_time_is_all_of_its_percentiles() -> None:
    summary = summarise_latency(times_of([3]))
    assert summary.p50_s == summary.p95_s == summary.p99_s == summary.maximum_s


def test_no_iteration_has_no_latency() -> None:
    with pytest.raises(UsageError):
        summarise_latency(np.empty((0, 2), dtype=np.int64))


def test_few_iterations_and_outliers_raise_cautions_and_drop_nothing() -> None:
    summary = summarise_latency(times_of([1.0] * 50 + [40.0]))
    assert [caution.code for caution in latency_cautions(summary)] == [
        CautionCode.FEW_ITERATIONS,
        CautionCode.OUTLIERS,
    ]
    assert summary.iterations == 51
    assert summary.mean_s == pytest.approx(90e-3 / 51)
    assert latency_cautions(summarise_latency(times_of([1.0] * 100))) == []
