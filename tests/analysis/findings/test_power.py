# SPDX-License-Identifier: Apache-2.0
"""Power recovered from samples and from the counter: by hand, through a simulated sensor, and on a recording."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from pybench.analysis.findings.power import counter_power, recover_power

RECORDING = Path(__file__).parents[2] / "measure" / "data" / "h200-memory-2s"
LAG_S = 0.02 / math.log(2)  # so that half of the old value is left after 20 ms


def columns(name: str) -> np.ndarray:
    with (RECORDING / name).open(newline="") as file:
        return np.array([[float(cell) for cell in row] for row in list(csv.reader(file))[1:]])


def test_the_power_between_two_samples_worked_by_hand() -> None:
    # 100 W, then half way to 500 W after 20 ms, with half of the old value left: p = (300 - 100/2) / (1 - 1/2).
    steps = recover_power(np.array([0.0, 0.02]), np.array([100.0, 300.0]), 0.005, LAG_S)
    assert steps.power_w == pytest.approx([500.0])
    assert steps.edges_s == pytest.approx(np.array([[-0.005, 0.015]]))


def test_the_recovered_power_is_what_a_lagging_sensor_was_given() -> None:
    rng = np.random.default_rng(3)
    knots_s = np.cumsum(rng.uniform(0.007, 0.047, 200))
    true_w = rng.uniform(80, 700, 199)
    sensed_w = [100.0]
    for length_s, power_w in zip(np.diff(knots_s), true_w, strict=True):
        sensed_w.append(power_w + (sensed_w[-1] - power_w) * math.exp(-length_s / 0.0128))
    steps = recover_power(knots_s + 0.0036, np.array(sensed_w), 0.0036, 0.0128)
    assert steps.power_w == pytest.approx(true_w)
    assert steps.edges_s[:, 0] == pytest.approx(knots_s[:-1])


def test_a_sample_that_the_driver_repeats_counts_once() -> None:
    steps = recover_power(np.array([0.0, 0.02, 0.02, 0.04]), np.array([100.0, 300.0, 300.0, 400.0]), 0.0, LAG_S)
    assert steps.power_w == pytest.approx([500.0, 500.0])


def test_fewer_than_two_samples_give_no_power() -> None:
    assert recover_power(np.array([1.0]), np.array([5.0]), 0.0, 0.01).edges_s.shape == (0, 2)
    assert recover_power(np.empty(0), np.empty(0), 0.0, 0.01).power_w.size == 0


def test_dense_readings_give_the_counters_power_every_few_ticks() -> None:
    counter = columns("counter.csv")
    begin_s, end_s = _load_window()
    steps = counter_power(counter[:, :2] * 1e-6, counter[:, 2], 0.1, 0.0115)
    lengths_s = np.diff(steps.edges_s, axis=1)[:, 0]
    assert lengths_s.max() < 0.32
    inside = (steps.edges_s[:, 0] > begin_s + 0.1) & (steps.edges_s[:, 1] < end_s)
    assert inside.sum() >= 8
    # The driver's samples are another channel: in steady load they say the same.
    samples = columns("samples.csv")
    steady = (samples[:, 0] > (begin_s + 0.2) * 1e6) & (samples[:, 0] < end_s * 1e6)
    power_w = samples[steady, 1].mean()
    energy_j = (steps.power_w * lengths_s)[inside].sum()
    assert energy_j / lengths_s[inside].sum() == pytest.approx(power_w, rel=0.005)
    # A step's ends are found to within a reading or two, so its power is good to a tenth, as promised.
    assert steps.power_w[inside] == pytest.approx(np.full(inside.sum(), power_w), rel=0.1)


def _load_window() -> tuple[float, float]:
    with (RECORDING / "windows.csv").open(newline="") as file:
        row = next(csv.DictReader(file))
    return float(row["start_us"]) * 1e-6, float(row["end_us"]) * 1e-6


def test_seldom_readings_give_long_means_only() -> None:
    read_s = np.array([0.0, 0.3, 2.0, 4.0])
    steps = counter_power(np.column_stack((read_s, read_s + 0.004)), 500 * read_s, 0.1, 0.0)
    # The first new value is that of 0.3 s; from there to 2 s its time is known to 70 ms of 1.7 s, from 0.3 s on.
    assert steps.edges_s == pytest.approx(np.array([[0.254, 1.954], [1.954, 3.954]]))
    assert steps.power_w == pytest.approx([500.0, 500.0])


def test_readings_that_are_too_close_for_their_tick_give_nothing() -> None:
    read_s = np.array([0.0, 0.3, 0.6])
    assert counter_power(np.column_stack((read_s, read_s + 0.004)), 500 * read_s, 0.1, 0.0).power_w.size == 0


def test_no_power_is_drawn_over_a_reset_of_the_counter() -> None:
    read_s = np.arange(6) * 2.0
    energy_j = np.array([900.0, 1000.0, 1100.0, 0.0, 100.0, 200.0])
    steps = counter_power(np.column_stack((read_s, read_s)), energy_j, 0.1, 0.0)
    assert steps.power_w == pytest.approx([50.0, 50.0, 50.0])
    assert not any(begin_s < 5.9 < end_s for begin_s, end_s in steps.edges_s)
