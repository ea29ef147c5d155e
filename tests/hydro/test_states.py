# SPDX-License-Identifier: Apache-2.0
"""States of a fluid: worked by hand, and what their equation of state has to keep."""

from __future__ import annotations

import numpy as np
import pytest

from pybench.hydro.states import (
    DENSITIES,
    GAMMA_LOW,
    GAMMA_THERMAL,
    THERMAL_ENERGIES,
    TRANSITION,
    cold_matter,
    conserved_of,
    draw_states,
)


def test_a_state_worked_by_hand() -> None:
    """Density 0.1, below the transition: cold pressure 0.002 / 2**1.357, cold energy that over 0.1 * 0.357. With a
    thermal energy of 1.5 the pressure grows by 2/3 * 0.1 * 1.5 = 0.1. At a velocity of 0.6 the Lorentz factor is
    1.25."""
    cold = 0.002 / 2**1.357
    enthalpy = 0.1 * (1 + cold / (0.1 * 0.357) + 1.5) + cold + 0.1
    found = conserved_of(np.array([0.1]), np.array([1.5]), np.array([0.6]))
    assert found.pressure == pytest.approx(np.array([[cold + 0.1]]))
    mass, momentum = 0.125, enthalpy * 1.25**2 * 0.6
    energy = enthalpy * 1.25**2 - (cold + 0.1) - mass
    np.testing.assert_allclose(found.conserved, [[mass, momentum, energy]], rtol=1e-12)


def test_cold_matter_is_continuous_and_keeps_the_first_law() -> None:
    below, above = (cold_matter(np.array([TRANSITION * (1 + shift)])) for shift in (-1e-9, 1e-9))
    assert below.pressure == pytest.approx(above.pressure, rel=1e-7)
    assert below.energy == pytest.approx(above.energy, rel=1e-7)
    rho = np.linspace(*DENSITIES, 1001)
    slope = np.gradient(cold_matter(rho).energy, rho)  # d eps / d rho = P / rho**2
    away = np.abs(rho - TRANSITION) > 0.01
    np.testing.assert_allclose(
        slope[5:-5][away[5:-5]], (cold_matter(rho).pressure / rho**2)[5:-5][away[5:-5]], rtol=1e-3
    )


def test_sound_is_slower_than_light_so_that_each_state_has_one_pressure() -> None:
    rho, heat = np.meshgrid(np.geomspace(*DENSITIES, 200), np.linspace(*THERMAL_ENERGIES, 50))
    cold = cold_matter(rho)
    thermal = (GAMMA_THERMAL - 1) * rho * heat
    enthalpy = rho * (1 + cold.energy + heat) + cold.pressure + thermal
    sound_squared = (cold.gamma * cold.pressure + GAMMA_THERMAL * thermal) / enthalpy
    assert sound_squared.min() > 0
    assert sound_squared.max() < 1
    assert set(np.unique(cold.gamma)) > {GAMMA_LOW}


def test_equal_seeds_draw_equal_states() -> None:
    first, again, other = draw_states(100, 1), draw_states(100, 1), draw_states(100, 2)
    np.testing.assert_array_equal(first.conserved, again.conserved)
    assert not np.array_equal(first.conserved, other.conserved)
    assert (first.pressure > 0).all()
