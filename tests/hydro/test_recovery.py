# SPDX-License-Identifier: Apache-2.0
"""Solvers of the pressure: against the pressures that states were made with, each other, and scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

from pybench.hydro.recovery import SOLVERS, Recover
from pybench.hydro.states import GAMMA_THERMAL, cold_matter, conserved_of, draw_states
from pybench.models.fluid_states import draw_inputs

BOTH = pytest.mark.parametrize("solve", SOLVERS.values(), ids=SOLVERS)


@BOTH
def test_every_state_gets_the_pressure_that_it_was_made_with(solve: Recover) -> None:
    states = draw_states(20_000, 5)
    found = np.empty_like(states.pressure)
    assert solve(states.conserved, found) == 0
    np.testing.assert_allclose(found, states.pressure, rtol=1e-11)


@BOTH
def test_scipy_finds_the_same_root(solve: Recover) -> None:
    states = draw_states(20, 6).conserved
    found = np.empty((20, 1))
    solve(states, found)
    for (mass, momentum, energy), pressure in zip(states, found[:, 0], strict=True):

        def gap(guess: float, mass: float = mass, momentum: float = momentum, energy: float = energy) -> float:
            velocity = momentum / (energy + mass + guess)
            rho = mass * np.sqrt(1 - velocity**2)
            total = (energy + mass + guess) * (1 - velocity**2) - guess
            cold = cold_matter(np.array([rho]))
            return float(cold.pressure[0] + (GAMMA_THERMAL - 1) * (total - rho - rho * cold.energy[0]) - guess)

        assert pressure == pytest.approx(brentq(gap, 0.0, mass + energy, xtol=1e-15, rtol=1e-14), rel=1e-10)


@BOTH
@pytest.mark.parametrize("velocity", [0.0, 0.5, 0.9])
def test_fast_and_cold_fluids_are_solved_too(solve: Recover, velocity: float) -> None:
    rho = np.geomspace(0.02, 2.0, 50)
    states = conserved_of(rho, np.zeros(50), np.full(50, velocity))
    found = np.empty((50, 1))
    assert solve(states.conserved, found) == 0
    np.testing.assert_allclose(found, states.pressure, rtol=1e-8)


@BOTH
def test_states_that_no_fluid_has_are_nan_and_counted(solve: Recover) -> None:
    states = np.array([[0.0, 0.0, 1.0], [1.0, 3.0, 1.0], [-1.0, 0.0, 1.0], *draw_inputs(2, 1)])
    found = np.empty((5, 1))
    assert solve(states, found) == 3
    np.testing.assert_array_equal(np.isnan(found[:, 0]), [True, True, True, False, False])


def test_the_solver_in_c_takes_no_other_type_and_shape() -> None:
    with pytest.raises(TypeError):
        SOLVERS["cpp"](np.ones((2, 3), np.float32), np.empty((2, 1)))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"states \[n, 3\]"):
        SOLVERS["cpp"](np.ones((2, 4)), np.empty((2, 1)))
