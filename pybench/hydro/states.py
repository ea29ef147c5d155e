# SPDX-License-Identifier: Apache-2.0
"""States of a relativistic fluid with an analytic equation of state, and their conserved densities.

Units: c = 1; densities, energies per volume and pressures in units of 1e-3 of those with G = M_sun = 1. A density of
0.2 is then 1.2e14 g/cm^3, and numbers stay within what FP16 represents. An error of 1e-3 is 1e-6 in papers' units.

The equation of state has two polytropes and a thermal part (Read et al. 2009, Phys. Rev. D 79:124032, for the exponents
of the crust and of a stiff core; Shibata et al. 2005, Phys. Rev. D 71:084021, for the thermal part). The constants are
chosen: within the ranges below, sound is slower than light, so each state has one pressure. Far denser matter (or the
same at 0.99 of the speed of light) may have two. It is no table of nuclear physics.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]

TRANSITION = 0.2  # density between crust and core
PRESSURE_AT_TRANSITION = 0.002
GAMMA_LOW, GAMMA_HIGH, GAMMA_THERMAL = 1.357, 2.75, 5 / 3
EOS = {
    "transition": TRANSITION,
    "pressure_at_transition": PRESSURE_AT_TRANSITION,
    "gamma_low": GAMMA_LOW,
    "gamma_high": GAMMA_HIGH,
    "gamma_thermal": GAMMA_THERMAL,
}

# What states are drawn from: density (even in its logarithm), thermal energy per rest mass, velocity.
DENSITIES = (0.02, 2.0)
THERMAL_ENERGIES = (0.0, 2.0)
VELOCITIES = (0.0, 0.7)


@dataclass(frozen=True, slots=True)
class ColdMatter:
    """Matter without heat, float64 [n] each: pressure, energy per rest mass, and the polytrope's exponent."""

    pressure: Numbers
    energy: Numbers
    gamma: Numbers


@dataclass(frozen=True, slots=True)
class FluidStates:
    """n states. conserved: float64 [n, 3], densities of rest mass, momentum and energy (without rest mass); pressure:
    float64 [n, 1]."""

    conserved: Numbers
    pressure: Numbers


def cold_matter(rho: Numbers) -> ColdMatter:
    """At density `rho`, above 0. Pressure and energy are continuous."""
    is_low = rho < TRANSITION
    gamma = np.where(is_low, GAMMA_LOW, GAMMA_HIGH)
    pressure = PRESSURE_AT_TRANSITION * (rho / TRANSITION) ** gamma
    per_mass = PRESSURE_AT_TRANSITION / TRANSITION
    offset = np.where(is_low, 0.0, per_mass / (GAMMA_LOW - 1) - per_mass / (GAMMA_HIGH - 1))
    return ColdMatter(pressure, pressure / (rho * (gamma - 1)) + offset, gamma)


def conserved_of(rho: Numbers, thermal_energy: Numbers, velocity: Numbers) -> FluidStates:
    """The states of fluids with these properties, float64 [n] each (Marti and Mueller 2003, Living Rev. Relativity 6:7,
    eq. 8 to 10)."""
    cold = cold_matter(rho)
    pressure = cold.pressure + (GAMMA_THERMAL - 1) * rho * thermal_energy
    lorentz = 1 / np.sqrt(1 - velocity**2)
    inertia = (rho * (1 + cold.energy + thermal_energy) + pressure) * lorentz**2
    mass = rho * lorentz
    conserved = np.stack([mass, inertia * velocity, inertia - pressure - mass], axis=1)
    return FluidStates(conserved, pressure[:, None])


def draw_states(count: int, seed: int) -> FluidStates:
    """States drawn evenly from the ranges above; equal seeds give equal states."""
    drawn = np.random.default_rng(seed)
    rho = np.exp(drawn.uniform(math.log(DENSITIES[0]), math.log(DENSITIES[1]), count))
    return conserved_of(rho, drawn.uniform(*THERMAL_ENERGIES, count), drawn.uniform(*VELOCITIES, count))
