# SPDX-License-Identifier: Apache-2.0
"""Numbers as people read them: as many digits as the interval warrants, a unit prefix that a whole column shares.

The shorter half of the interval is given two significant digits, and the value stops at the same place (GUM 7.2.6). But
no value shows more than four digits unless its interval needs them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from pybench.analysis.statistics.estimate import Estimate

DASH = "—"
_UNSURE_DIGITS = 2  # significant digits of the half-width
_PLAIN_DIGITS = 4  # significant digits of a number without a width
_POWERS_FROM = 1e15  # counts of operations are below it; perplexities and losses of lost models are not
_POWERS_BELOW = 1e-6  # rounding errors are; no time in its unit is
_LARGE = 1000.0  # factors from here on tell nobody more

# unit -> (scale, name) from large to small; the first in which the smallest value of a column is at least `_SMALLEST`.
_SMALLEST = 0.1
_PREFIXES: dict[str, tuple[tuple[float, str], ...]] = {
    "bytes": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
    "ms": ((1e3, "s"), (1.0, "ms"), (1e-3, "µs")),
    "J": ((1e3, "kJ"), (1.0, "J"), (1e-3, "mJ"), (1e-6, "µJ"), (1e-9, "nJ")),
    "J s": ((1.0, "J s"), (1e-3, "mJ s"), (1e-6, "µJ s"), (1e-9, "nJ s")),
    "1/s": ((1e6, "×10⁶"), (1e3, "×10³"), (1.0, "1/s")),  # the label says of what
}


@dataclass(frozen=True, slots=True)
class DisplayUnit:
    """A stored value divided by `scale` is in `name`."""

    scale: float
    name: str


def display_unit(unit: str, values: Iterable[float]) -> DisplayUnit:
    """The largest prefix in which no positive value of a column is below `_SMALLEST`, or the smallest prefix there
    is."""
    prefixes = _PREFIXES.get(unit, ((1.0, unit),))
    smallest = min((abs(value) for value in values if value), default=0.0)
    for scale, name in prefixes:
        if smallest >= scale * _SMALLEST:
            return DisplayUnit(scale, name)
    return DisplayUnit(*prefixes[-1])


def decimals_for(half_width: float) -> int:
    """Decimal places (negative: tens, hundreds) that give a half-width two significant digits."""
    return _UNSURE_DIGITS - 1 - math.floor(math.log10(half_width))


def format_fixed(value: float, decimals: int) -> str:
    """A number with so many decimals; negative decimals round to tens and more. A true minus, commas between
    thousands. From `_POWERS_FROM` on and below `_POWERS_BELOW` it has an exponent: `1.399e141`, `1.73e−16`."""
    if _POWERS_FROM <= abs(value) < math.inf:
        return f"{value:.{_PLAIN_DIGITS - 1}e}".replace("e+", "e").replace("-", "−")
    if 0 < abs(value) < _POWERS_BELOW and round(value, decimals):
        digits = max(decimals + math.floor(math.log10(abs(value))), 0)
        mantissa, _, power = f"{value:.{digits}e}".partition("e")
        return f"{mantissa}e{int(power)}".replace("-", "−")
    rounded = round(value, decimals)
    text = f"{rounded if rounded else 0.0:,.{max(decimals, 0)}f}"
    return text.replace("-", "−")


def format_plain(value: float) -> str:
    """A number that has no width: four significant digits, trailing zeros dropped; whole numbers in full."""
    if value == round(value) and abs(value) < 1e6:
        return format_fixed(value, 0)
    decimals = _PLAIN_DIGITS - 1 - math.floor(math.log10(abs(value)))
    mantissa, mark, power = format_fixed(value, decimals).partition("e")
    return (mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa) + mark + power


def significant(value: float, digits: int) -> str:
    """A number with so many significant digits, trailing zeros kept; whole numbers of more digits in full."""
    if value == 0:
        return "0"
    return format_fixed(value, max(digits - 1 - math.floor(math.log10(abs(value))), 0))


def format_estimate(estimate: Estimate, *, signed: bool = False) -> tuple[str, str | None]:
    """(value, interval in brackets or None). `signed`: a plus before positive numbers, for differences."""
    lower, upper = estimate.lower, estimate.upper
    if lower is None or upper is None:
        return _signed(format_plain(estimate.value), signed), None
    half = (upper - lower) / 2
    if half <= 0:
        return _signed(format_plain(estimate.value), signed), None
    decimals = _shown_decimals(estimate.value, lower, upper)
    low, high = (
        _format_bound(bound, decimals, is_nearest_zero)
        for bound, is_nearest_zero in ((lower, lower > 0), (upper, upper < 0))
    )
    value = _signed(format_fixed(estimate.value, decimals), signed)
    return value, f"[{_signed(low, signed)}, {_signed(high, signed)}]"


def _format_bound(bound: float, decimals: int, is_nearest_zero: bool) -> str:
    """A bound as its value, but the one nearest to an excluded zero is not rounded to zero: 0.0003 and 0.04 say
    different things of a ratio."""
    if is_nearest_zero and not round(bound, decimals):
        return significant(bound, _UNSURE_DIGITS)
    return format_fixed(bound, decimals)


def format_plus_minus(value: float, half: float) -> tuple[str, str]:
    """(value, `± half`), the half-width with two significant digits as far as the value's own allow."""
    if half <= 0:
        return format_plain(value), "± 0"
    decimals = _shown_decimals(value, value - half, value + half)
    return format_fixed(value, decimals), f"± {format_fixed(half, decimals)}"


def _shown_decimals(value: float, lower: float, upper: float) -> int:
    """What the shorter half warrants, but no more than `_PLAIN_DIGITS` of the value unless its bounds look alike."""
    warranted = decimals_for(min(half for half in (value - lower, upper - value) if half > 0))
    if value == 0:
        return warranted
    decimals = min(warranted, _PLAIN_DIGITS - 1 - math.floor(math.log10(abs(value))))
    while decimals < warranted and len({round(number, decimals) for number in (lower, value, upper)}) < 3:
        decimals += 1
    return decimals


def format_p(p_value: float | None) -> str:
    """A p value: two significant digits, `< 0.001` below."""
    if p_value is None:
        return DASH
    return "< 0.001" if p_value < 0.001 else f"{p_value:.2g}" if p_value < 0.995 else "1.0"


def factor_above_one(ratio: float) -> str:
    """A factor above 1, with two significant digits of what it is above: `1.033`, `1.00032`, `3.2`.

    Not in percent: a factor of 3 up or down is no ±200 %.
    """
    if ratio >= _LARGE:
        return f"> {_LARGE:.0f}"
    return format_fixed(ratio, max(decimals_for(ratio - 1), 0)) if ratio > 1 else "1"


def format_bounds(bounds: tuple[float, float]) -> str:
    """Two ends of an interval that has no value: as many digits as its width warrants."""
    low, high = bounds
    decimals = decimals_for((high - low) / 2) if high > low else 3
    return f"{format_fixed(low, decimals)} … {format_fixed(high, decimals)}"


def format_duration(seconds: float) -> str:
    """`45 s`, `12 min`, `3.4 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _signed(text: str, signed: bool) -> str:
    return f"+{text}" if signed and text[0] != "−" and text.strip("0.,") else text
