# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from pybench.catalogue.cautions import CautionCode
from pybench.measure import judge_steadiness


def series(*parts: tuple[int, float], noise: float = 0.01, seed: int = 1) -> NDArray[np.int64]:
    """Iterations of (count, level in ms) with normal relative noise and an outlier in fifty."""
    random = np.random.default_rng(seed)
    levels = np.concatenate([np.full(count, level) for count, level in parts])
    durations = levels * (1 + noise * random.standard_normal(len(levels)))
    durations[random.random(len(levels)) < 0.02] *= 5
    ends = np.cumsum((durations * 1e6).astype(np.int64))
    return np.column_stack([np.concatenate(([0], ends[:-1])), ends])


def test_noise_and_outliers_alone_are_flat() -> None:
    labels = [judge_steadiness(series((1000, 2.0), noise=0.03, seed=seed)).label for seed in range(200)]
    assert labels.count("flat") >= 196


def test_short_noisy_series_are_flat() -> None:
    labels = [judge_steadiness(series((60, 2.0), noise=0.01, seed=seed)).label for seed in range(200)]
    assert labels.count("flat") >= 190


def test_a_slow_begin_is_a_warmup() -> None:
    steadiness = judge_steadiness(series((200, 3.0), (800, 2.0)))
    assert steadiness.label == "warmup"
    assert [segment.level_s for segment in steadiness.segments] == pytest.approx([3e-3, 2e-3], rel=0.02)
    assert steadiness.segments[1].begin == pytest.approx(200, abs=20)
    assert [caution.code for caution in steadiness.cautions()] == [CautionCode.NOT_STEADY]


def test_a_slow_end_is_a_slowdown() -> None:
    assert judge_steadiness(series((600, 2.0), (400, 2.2))).label == "slowdown"


def test_a_shift_near_the_end_is_no_steady_state() -> None:
    assert judge_steadiness(series((900, 2.0), (100, 2.4))).label == "no_steady_state"


def test_a_warmup_that_goes_through_a_faster_phase_is_a_slowdown() -> None:
    assert judge_steadiness(series((300, 3.0), (300, 2.0), (400, 2.3))).label == "slowdown"


def test_a_shift_below_the_tolerance_is_flat() -> None:
    steadiness = judge_steadiness(series((500, 2.0), (500, 2.02), noise=0.001))
    assert steadiness.label == "flat"
    assert steadiness.cautions() == []


def test_a_trend_is_not_flat() -> None:
    durations = np.linspace(2.0, 3.0, 1000)
    ends = np.cumsum((durations * 1e6).astype(np.int64))
    times = np.column_stack([np.concatenate(([0], ends[:-1])), ends])
    assert judge_steadiness(times).label in ("slowdown", "no_steady_state")


def test_a_constant_series_is_flat() -> None:
    assert judge_steadiness(series((500, 2.0), noise=0.0)).label == "flat"


def test_too_few_iterations_have_no_label() -> None:
    steadiness = judge_steadiness(series((29, 2.0)))
    assert steadiness.label is None
    assert steadiness.cautions() == []


def test_segments_cover_every_iteration() -> None:
    segments = judge_steadiness(series((333, 3.0), (334, 2.0), (333, 2.5))).segments
    assert segments[0].begin == 0
    assert segments[-1].end == 1000
    assert all(left.end == right.begin for left, right in pairwise(segments))


@pytest.mark.timing
def test_ten_times_as_many_iterations_are_judged_in_about_ten_times_the_time() -> None:
    def cpu_s(iterations: int) -> float:
        times = series((iterations, 2.0))
        begin = time.thread_time()
        judge_steadiness(times)
        return time.thread_time() - begin

    short, long = (min(cpu_s(iterations) for _ in range(3)) for iterations in (10_000, 100_000))
    assert long < 40 * short  # every pair of them would take a hundred times
