# SPDX-License-Identifier: Apache-2.0
"""From conserved densities to the pressure, in float64: the solver in C++ on one thread, and its slow twin in numpy.

Both find the root of `P(rho(p), eps(p)) - p` by Newton's method between two bounds, with a bisection where it would
leave them. Plain Newton leaves some states unsolved. Relative error: 1e-12. A state that no fluid has gives NaN.
The numpy solver works on all states that are left at once. For few states its time is that of some hundred calls; for
thousands its powers are vectorised, which those of the C++ are not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from pybench import _native, measure
from pybench.hydro.states import EOS, GAMMA_THERMAL, Numbers, cold_matter

# From states [n, 3] into pressures [n, 1], float64 in C order, to how many states have none.
Recover = Callable[[Numbers, Numbers], int]

MOST_STEPS = 100  # bisection alone reaches the tolerance in about 50
TOLERANCE = 1e-12  # relative, of the pressure
NATIVE_BUILD_ID = measure.NATIVE_BUILD_ID  # importing it has checked that the object fits these sources

_NATIVE_EOS = _native.HybridEos(**EOS)


def recover_cpp(states: Numbers, pressures: Numbers) -> int:
    """One state after another, on one thread, without the GIL."""
    return _native.recover_pressures(_NATIVE_EOS, states, pressures)


def recover_numpy(states: Numbers, pressures: Numbers) -> int:
    """All states together, in as many steps as the slowest needs."""
    mass, momentum, energy = states.T
    total = mass + energy
    pressures[:, 0] = np.nan
    left = np.flatnonzero((mass > 0) & (np.abs(momentum) < total))
    mass, momentum, total = mass[left], momentum[left], total[left]
    least, most = np.zeros(len(left)), total.copy()
    guess = 0.3 * energy[left]
    pressure = np.where((guess > least) & (guess < most), guess, 0.5 * most)
    for _ in range(MOST_STEPS):
        if not len(left):
            break
        change, gap = _newton(mass, momentum, total, pressure)
        is_found = np.abs(change) <= TOLERANCE * pressure
        pressures[left[is_found], 0] = (pressure + change)[is_found]
        least, most = np.where(gap > 0, pressure, least), np.where(gap > 0, most, pressure)
        moved = pressure + change
        pressure = np.where((moved > least) & (moved < most), moved, 0.5 * (least + most))
        keep = ~is_found
        left, mass, momentum, total = left[keep], mass[keep], momentum[keep], total[keep]
        pressure, least, most = pressure[keep], least[keep], most[keep]
    return int(np.isnan(pressures).sum())


def _newton(mass: Numbers, momentum: Numbers, total: Numbers, pressure: Numbers) -> tuple[Numbers, Numbers]:
    """(Newton's step, how far the equation of state lies above `pressure`)."""
    flow_squared = (momentum / (total + pressure)) ** 2
    rho = mass * np.sqrt(1 - flow_squared)
    energy = (total + pressure) * (1 - flow_squared) - pressure  # in the fluid's frame
    cold = cold_matter(rho)
    thermal = (GAMMA_THERMAL - 1) * (energy - rho - rho * cold.energy)
    found = cold.pressure + thermal
    sound_squared = (cold.gamma * cold.pressure + GAMMA_THERMAL * thermal) / (energy + found)
    gap = found - pressure
    return gap / (1 - flow_squared * sound_squared), gap


SOLVERS: Mapping[str, Recover] = {"cpp": recover_cpp, "numpy": recover_numpy}
