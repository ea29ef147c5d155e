# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest

from pybench.measure.sensor.lag_inversion import invert_lag
from pybench.measure.sensor.step_response import PowerStep, first_order

DELAY_S, RESPONSE_S, PERIOD_S = 0.0036, 0.0128, 0.020


def lagged_step(edge_s: float) -> tuple[np.ndarray, np.ndarray]:
    """Samples of a board that goes from 100 W to 600 W at `edge_s`."""
    time_s = np.arange(0.0, 1.0, PERIOD_S)
    return time_s, 100.0 + 500.0 * first_order(time_s - edge_s, DELAY_S, RESPONSE_S)


def test_constant_power_keeps_its_energy() -> None:
    time_s = np.arange(0.0, 1.0, PERIOD_S)
    board = invert_lag(time_s, np.full(50, 250.0), DELAY_S, RESPONSE_S)
    assert board.between(np.array([0.1]), np.array([0.5])) == pytest.approx([100.0])


@pytest.mark.parametrize("edge_s", [0.402, 0.409, 0.4155])
def test_a_known_step_is_inverted_exactly(edge_s: float) -> None:
    board = invert_lag(*lagged_step(edge_s), DELAY_S, RESPONSE_S, [PowerStep(edge_s, 100.0, 600.0, 1.0)])
    assert board.between(np.array([0.2]), np.array([0.6]))[0] == pytest.approx(40 + 500 * (0.6 - edge_s), rel=1e-6)
    later_s = np.array([0.405, 0.42, 0.4333])
    assert board.shown(later_s) == pytest.approx(100 + 500 * first_order(later_s - edge_s, 0.0, RESPONSE_S), rel=1e-6)


def test_unknown_steps_are_put_too_early_by_what_the_formula_says() -> None:
    edges_s = 0.4 + np.linspace(0, PERIOD_S, 400, endpoint=False)
    excess_j = []
    for edge_s in edges_s:
        board = invert_lag(*lagged_step(float(edge_s)), DELAY_S, RESPONSE_S)
        excess_j.append(board.between(np.array([0.2]), np.array([0.6]))[0] - (40 + 500 * (0.6 - edge_s)))
    # a = 20 ms / 12.8 ms = 1.5625; 20 ms * (1 / (1 - exp(-a)) - 1 / a - 1 / 2) = 20 ms * (1.2650 - 0.6400 - 0.5)
    assert np.mean(excess_j) / 500 == pytest.approx(2.50e-3, rel=0.01)
