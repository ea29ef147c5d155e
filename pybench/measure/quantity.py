# SPDX-License-Identifier: Apache-2.0
"""A number with where it comes from and how sure it is, or why there is none. Nothing is ever 0 for "unknown"."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import hypot
from typing import Any

from pybench.catalogue.reasons import Reason, ReasonCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """One metric of one run. Whoever has one keeps it under the metric's name, whose row says the unit."""

    value: float | None = None
    """None: not measured, and `reasons` says why; or an estimate, which has an `interval`."""
    window: str | None = None
    """What it was measured in; None: no window."""
    u_standard: float | None = None
    """Standard uncertainty within the run. Of an energy: the one that ratios on one board carry."""
    u_absolute: float | None = None
    """That of the number itself, the board's unknown gain included."""
    interval: tuple[float, float] | None = None
    """Lower and upper bound of an estimate, which has no value."""
    samples: int | None = None
    """How many observations are behind it."""
    method: str | None = None
    """How it was found, where several ways exist."""
    scope: str | None = None
    """What it is of: `board`, `package`, `process`."""
    valid: bool | None = None
    """Of what judges itself: True, or False for a value that must not be used."""
    reasons: tuple[Reason, ...] = ()
    """Why there is no value, or why it is not valid, or what else is to be known of it."""

    def scaled(self, factor: float) -> Quantity:
        """As another metric, for example per sample with `factor` = 1 / samples. Uncertainties scale, too."""

        def times(number: float | None) -> float | None:
            return None if number is None else number * factor

        bounds = None if self.interval is None else (self.interval[0] * factor, self.interval[1] * factor)
        return replace(
            self,
            value=times(self.value),
            u_standard=times(self.u_standard),
            u_absolute=times(self.u_absolute),
            interval=bounds,
        )

    def inverse(self, amount: float) -> Quantity:
        """What `amount` is a unit of this: tokens a joule. The relative uncertainty stays."""
        if not self.value:
            why = self.reasons or (Reason(ReasonCode.NOTHING_COUNTED, "no energy was counted in the window"),)
            return Quantity(window=self.window, method=self.method, reasons=why)
        value = amount / self.value
        within, absolute = (None if u is None else value * u / self.value for u in (self.u_standard, self.u_absolute))
        return replace(self, value=value, u_standard=within, u_absolute=absolute)

    def times(self, other: Quantity, factor: float) -> Quantity:
        """The product of both and of `factor`, of two windows or of one. Its relative standard uncertainty is the root
        of the sum of both squares: errors of two instruments are independent. One that is not told adds nothing."""
        windows = "+".join(dict.fromkeys(each.window for each in (self, other) if each.window is not None))
        reasons = tuple(dict.fromkeys((*self.reasons, *other.reasons)))
        found = replace(self, window=windows or None, samples=None, interval=None, reasons=reasons)
        if self.value is None or other.value is None:
            return replace(found, value=None, u_standard=None, u_absolute=None)
        mine, its = self.value, other.value

        def product(mine_u: float | None, its_u: float | None) -> float | None:
            if mine_u is None and its_u is None:
                return None
            return hypot((mine_u or 0.0) * its, (its_u or 0.0) * mine) * factor

        return replace(
            found,
            value=mine * its * factor,
            u_standard=product(self.u_standard, other.u_standard),
            u_absolute=product(self.u_absolute, other.u_absolute or other.u_standard),
        )

    def as_json(self, unit: str) -> dict[str, Any]:
        """The stored form (docs/formats/rundir.md)."""
        lower, upper = self.interval or (None, None)
        return {
            "value": self.value,
            "unit": unit,
            "window": self.window,
            "u_standard": self.u_standard,
            "u_absolute": self.u_absolute,
            "lower": lower,
            "upper": upper,
            "samples": self.samples,
            "method": self.method,
            "reason": "; ".join(map(str, self.reasons)) or None,
        }
