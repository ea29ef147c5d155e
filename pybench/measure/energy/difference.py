# SPDX-License-Identifier: Apache-2.0
"""Energies of a window less those of something that was repeated in it, and that a window of its own has measured."""

from __future__ import annotations

from math import hypot, sqrt

from pybench.measure.energy.cpu import METRIC as CPU
from pybench.measure.energy.cpu_estimate import METRIC as CPU_ESTIMATE
from pybench.measure.energy.gpu import METRIC as GPU
from pybench.measure.energy.gpu import NET
from pybench.measure.energy.node import METRIC as NODE
from pybench.measure.energy.rails import METRIC as MODULE
from pybench.measure.energy.system import system_energies
from pybench.measure.quantity import Quantity


def energies_less(whole: dict[str, Quantity], part: dict[str, Quantity], times: float) -> dict[str, Quantity]:
    """`whole`, each energy less `times` that of `part`; what is no energy of the window's own length stays.

    Both are by metric, as `MeasuringSession.energy` gives them.
    """
    found = dict(whole)
    for metric in (GPU, NET, CPU, CPU_ESTIMATE, MODULE, NODE):
        if metric in whole and metric in part:
            found[metric] = _less(whole[metric], part[metric].scaled(times))
    if GPU in found and CPU in found:
        found |= system_energies(found[GPU], found[CPU])
    return found


def _less(whole: Quantity, part: Quantity) -> Quantity:
    """Errors of the two windows are independent, apart from the sensor's gain, which is that of the difference."""
    method = f"{whole.method}, less that of the window {part.window}"
    reasons = tuple(dict.fromkeys((*whole.reasons, *part.reasons)))
    if whole.interval is not None and part.interval is not None:
        bounds = (max(whole.interval[0] - part.interval[1], 0.0), max(whole.interval[1] - part.interval[0], 0.0))
        return Quantity(window=whole.window, interval=bounds, method=method, scope=whole.scope, reasons=whole.reasons)
    if whole.value is None or part.value is None:
        return Quantity(window=whole.window, method=method, scope=whole.scope, reasons=reasons)
    value = whole.value - part.value
    within = hypot(whole.u_standard or 0.0, part.u_standard or 0.0)
    return Quantity(
        value=value,
        window=whole.window,
        u_standard=within,
        u_absolute=None if whole.u_absolute is None else hypot(within, _gain(whole) * value),
        method=method,
        scope=whole.scope,
        valid=None if whole.valid is None or part.valid is None else whole.valid and part.valid,
        reasons=reasons,
    )


def _gain(quantity: Quantity) -> float:
    """The relative standard uncertainty of what scales the number as a whole."""
    if not quantity.value or quantity.u_absolute is None:
        return 0.0
    return sqrt(max(quantity.u_absolute**2 - (quantity.u_standard or 0.0) ** 2, 0.0)) / abs(quantity.value)
