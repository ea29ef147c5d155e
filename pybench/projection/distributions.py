# SPDX-License-Identifier: Apache-2.0
"""What is known of one input of a scenario: a number, or a distribution.

Each is written as one key of a mapping; a plain number is `value`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

from pybench.analysis.statistics.estimate import NORMAL_95
from pybench.document import Node
from pybench.document.keys import WrongValue, described, read_number

UPPER_QUARTILE = float(special.ndtri(0.75))  # of the standard normal distribution
SMALLEST = 1e-12  # what is below it and not 0 is a slip of the exponent; products of such numbers have no logarithm
QUARTILES_FACTOR = 100.0  # at most, of a log-normal distribution: draws tell the mean of a wider one badly

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Range:
    """The numbers that a quantity takes.

    least: the lower end, included
    most: the upper end, included: 1 of a share, else a bound above every number that makes sense
    is_positive: 0 is not one of them
    hint: for a number outside of it, or for no number; a share has its own
    """

    least: float
    most: float
    is_positive: bool = False
    hint: str | None = None

    @property
    def is_share(self) -> bool:
        return self.most == 1

    def read(self, node: Node) -> float:
        """The number that a node contains. Raises WrongValue."""
        try:
            value = read_number(node, self.least, self.most)
        except WrongValue as misfit:
            raise self._misfit(described(node.plain())) from misfit
        self.check(value)
        return value

    def check(self, *numbers: float) -> None:
        """Raises WrongValue for the first number that is outside."""
        for number in numbers:
            if not self.least <= number <= self.most or (self.is_positive and number == 0):
                raise self._misfit(f"{number:g}")
            if 0 < number < SMALLEST:
                raise WrongValue(f"takes no number between 0 and {SMALLEST:g}; not {number:g}", self.hint)

    def _misfit(self, shown: str) -> WrongValue:
        numbers = f"above 0, up to {self.most:g}" if self.is_positive else f"{self.least:g} to {self.most:g}"
        hint = "shares are from 0 to 1, as in 0.6" if self.is_share else self.hint
        return WrongValue(f"takes a number{'' if self.is_positive else ','} {numbers}; not {shown}", hint)


@dataclass(frozen=True, slots=True)
class Distribution:
    """`form`: a key of `FORMS`; `numbers`: what is written behind it."""

    form: str
    numbers: tuple[float, ...]

    def ppf(self, probabilities: Floats) -> Floats:
        """Quantiles at probabilities between 0 and 1, of the same shape; scipy.stats calls this so, too."""
        return FORMS[self.form].quantiles(np.asarray(probabilities, dtype=np.float64), self.numbers)

    @property
    def mean(self) -> float:
        """Exact: a sample's mean of a wide log-normal distribution changes with the seed."""
        return FORMS[self.form].mean(self.numbers)

    @property
    def is_constant(self) -> bool:
        return min(self.numbers) == max(self.numbers)

    def check(self, taken: Range) -> None:
        """Raises WrongValue where a draw could be outside of a range.

        A log-normal distribution has no upper end: its quartiles are judged, and how far they are apart.
        """
        taken.check(*self.numbers)
        if self.form != "quartiles":
            return
        if taken.least > 0 or taken.is_share:
            end = f"least {taken.least:g}" if taken.least > 0 else f"most {taken.most:g}"
            beyond = "goes down to 0" if taken.least > 0 else "has no upper end"
            raise WrongValue(f"takes at {end}; not quartiles, whose distribution {beyond}", "write uniform: [A, B]")
        low, high = self.numbers
        if high > QUARTILES_FACTOR * low:
            most = f"an upper quartile of at most {QUARTILES_FACTOR:g} times the lower one"
            raise WrongValue(f"takes {most}; not {high / low:g} times", "write uniform: [A, B]")

    def times(self, factor: float) -> Distribution:
        """The distribution of each draw times a number of 0 or more."""
        return replace(self, numbers=tuple(number * factor for number in self.numbers))

    def __str__(self) -> str:
        shown = ", ".join(f"{number:g}" for number in self.numbers)
        return shown if self.form == "value" else f"{self.form} [{shown}]"


def lognormal_of(value: float, half: float) -> Distribution:
    """The log-normal distribution with this median, whose central 95 % reach `half` up and down in the logarithm."""
    spread = half / NORMAL_95 * UPPER_QUARTILE
    return Distribution("quartiles", (value * math.exp(-spread), value * math.exp(spread)))


def read_distribution(node: Node, key: str, taken: Range) -> Distribution:
    """The distribution that a form's key stands before, of numbers within a range. Raises WrongValue."""
    form = FORMS[key]
    items = [node] if node.items is None else list(node.items)
    if not form.fewest <= len(items) <= form.most or (key != "value") != (node.items is not None):
        raise WrongValue(f"takes {form.takes}, as in `{form.example}`")
    numbers = tuple(taken.read(item) for item in items)
    if key != "values" and list(numbers) != sorted(numbers):
        raise WrongValue("takes numbers from small to large", f"as in `{form.example}`")
    if key == "quartiles" and numbers[0] <= 0:
        raise WrongValue("takes positive numbers", f"as in `{form.example}`")
    found = Distribution(key, numbers)
    found.check(taken)
    return found


@dataclass(frozen=True, slots=True)
class DistributionForm:
    """One way to write a distribution.

    takes: what its numbers are, for messages
    example: how it is written
    fewest, most: how many numbers it takes
    quantiles: from probabilities and those numbers to values
    mean: from those numbers
    """

    takes: str
    example: str
    fewest: int
    most: int
    quantiles: Callable[[Floats, tuple[float, ...]], Floats]
    mean: Callable[[tuple[float, ...]], float]


def _value(probabilities: Floats, numbers: tuple[float, ...]) -> Floats:
    return np.full_like(probabilities, numbers[0])


def _uniform(probabilities: Floats, numbers: tuple[float, ...]) -> Floats:
    low, high = numbers
    return low + probabilities * (high - low)


def _triangular(probabilities: Floats, numbers: tuple[float, ...]) -> Floats:
    low, mode, high = numbers
    if low == high:
        return np.full_like(probabilities, low)
    rising = low + np.sqrt(probabilities * (high - low) * (mode - low))
    falling = high - np.sqrt((1 - probabilities) * (high - low) * (high - mode))
    return np.where(probabilities < (mode - low) / (high - low), rising, falling)


def _lognormal(probabilities: Floats, numbers: tuple[float, ...]) -> Floats:
    middle, spread = _log_parameters(numbers)
    return np.asarray(np.exp(middle + spread * special.ndtri(probabilities)))


def _lognormal_mean(numbers: tuple[float, ...]) -> float:
    middle, spread = _log_parameters(numbers)
    return math.exp(middle + spread**2 / 2)


def _log_parameters(quartiles: tuple[float, ...]) -> tuple[float, float]:
    """Mean and standard deviation of the logarithm."""
    low, high = map(math.log, quartiles)
    return (low + high) / 2, (high - low) / (2 * UPPER_QUARTILE)


def _values(probabilities: Floats, numbers: tuple[float, ...]) -> Floats:
    at = np.minimum((probabilities * len(numbers)).astype(np.int64), len(numbers) - 1)
    return np.asarray(numbers, dtype=np.float64)[at]


FORMS: Mapping[str, DistributionForm] = {
    "value": DistributionForm("one number", "value: 300", 1, 1, _value, statistics.fmean),
    "uniform": DistributionForm(
        "the least and the largest number", "uniform: [1.1, 1.3]", 2, 2, _uniform, statistics.fmean
    ),
    "triangular": DistributionForm(
        "the least, the likeliest and the largest number",
        "triangular: [0.2, 0.5, 0.9]",
        3,
        3,
        _triangular,
        statistics.fmean,
    ),
    "quartiles": DistributionForm(
        "the two quartiles of a log-normal distribution", "quartiles: [150, 600]", 2, 2, _lognormal, _lognormal_mean
    ),
    "values": DistributionForm(
        "a list of numbers, each as likely", "values: [120, 300, 800]", 1, 10_000, _values, statistics.fmean
    ),
}
