# SPDX-License-Identifier: Apache-2.0
"""A measured number with where it comes from and how sure it is. Nothing is ever 0 for "unknown"."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pybench.catalogue.metrics import METRICS, Metric


@dataclass(frozen=True, slots=True)
class Quantity:
    """One metric over one window.

    `value` None: not measured, and `reasons` says why. `u_within`: standard uncertainty that ratios on one board carry;
    `u_absolute`: that of the number itself; None: not known. `lower`, `upper`: the bounds of an estimate, which has no
    value. `valid`: True, False (a value that must not be used), None (nothing measured). `reasons`: `code: detail`.
    """

    name: str
    window: str
    value: float | None
    unit: str
    u_within: float | None
    u_absolute: float | None
    method: str
    scope: str
    valid: bool | None
    reasons: tuple[str, ...] = ()
    lower: float | None = None
    upper: float | None = None

    def scaled(self, metric: Metric, factor: float) -> Quantity:
        """The same as another metric, for example per sample with `factor` = 1 / samples. Uncertainties scale too."""

        def times(number: float | None) -> float | None:
            return None if number is None else number * factor

        return replace(
            self,
            name=metric.name,
            unit=metric.unit,
            value=times(self.value),
            u_within=times(self.u_within),
            u_absolute=times(self.u_absolute),
            lower=times(self.lower),
            upper=times(self.upper),
        )


def unmeasured(name: str, window: str, *, method: str, scope: str, reasons: tuple[str, ...]) -> Quantity:
    """A quantity that is null, with why."""
    return Quantity(name, window, None, METRICS[name].unit, None, None, method, scope, None, reasons)
