# SPDX-License-Identifier: Apache-2.0
"""Numbers as text: digits by interval, prefixes by column, nothing rounded into nonsense."""

from __future__ import annotations

import pytest

from pybench.analysis.statistics.estimate import Estimate
from pybench.report.numbers import (
    display_unit,
    factor_above_one,
    format_bounds,
    format_duration,
    format_estimate,
    format_fixed,
    format_p,
    format_plain,
)


@pytest.mark.parametrize(
    ("value", "lower", "upper", "text"),
    [
        (1.23456, 1.2, 1.27, ("1.235", "[1.200, 1.270]")),
        (0.5, 0.4756, 0.5249, ("0.500", "[0.476, 0.525]")),
        (12345.6, 12100.0, 12600.0, ("12,350", "[12,100, 12,600]")),
        (-0.8333, -2.578, 0.554, ("−0.8", "[−2.6, 0.6]")),
        (0.03347, 0.03298, 0.03397, ("0.03347", "[0.03298, 0.03397]")),
        (0.181802, 0.181714, 0.18189, ("0.1818", "[0.1817, 0.1819]")),
        (1.00007, 0.99968, 1.00047, ("1.0001", "[0.9997, 1.0005]")),
        (0.0, -1.1, 1.1, ("0.0", "[−1.1, 1.1]")),
        (1.727e-16, 1.678e-16, 1.776e-16, ("1.727e−16", "[1.678e−16, 1.776e−16]")),
        (2370.0, 160.0, 35000.0, ("2,400", "[200, 35,000]")),
        (7.9, 0.000312, 618.1, ("7.9", "[0.00031, 618.1]")),
        (19.0, 0.0834, 4323.0, ("19", "[0.083, 4,323]")),
        (-5.0, -900.0, -0.0412, ("−5.0", "[−900.0, −0.041]")),
    ],
)
def test_digits_follow_the_interval(value: float, lower: float, upper: float, text: tuple[str, str]) -> None:
    assert format_estimate(Estimate(value, lower, upper, 9, "t")) == text


def test_differences_carry_their_sign() -> None:
    assert format_estimate(Estimate(1.2, 0.9, 1.5, 9, "t"), signed=True) == ("+1.20", "[+0.90, +1.50]")
    assert format_estimate(Estimate(0.0, -1.0, 1.0, 9, "t"), signed=True) == ("0.0", "[−1.0, +1.0]")


def test_a_number_without_an_interval_has_none_invented() -> None:
    assert format_estimate(Estimate(3.14159, None, None, 1, "one value")) == ("3.142", None)
    assert format_estimate(Estimate(3.0, 3.0, 3.0, 5, "all equal")) == ("3", None)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (400000.0, "400,000"),
        (0.000123456, "0.0001235"),
        (-2.50, "−2.5"),
        (1e9, "1,000,000,000"),
        (1e-300, "1e−300"),
    ],
)
def test_plain_numbers(value: float, text: str) -> None:
    assert format_plain(value) == text


def test_negative_decimals_round_to_tens() -> None:
    assert format_fixed(12345, -2) == "12,300"
    assert format_fixed(-1.2345e141, -139) == "−1.234e141"


@pytest.mark.parametrize(
    ("p", "text"), [(None, "—"), (0.00001, "< 0.001"), (0.0421, "0.042"), (0.9999, "1.0"), (0.5, "0.5")]
)
def test_p_values(p: float | None, text: str) -> None:
    assert format_p(p) == text


@pytest.mark.parametrize(
    ("unit", "values", "name"),
    [
        ("bytes", [4e5, 1.1e5], "MB"),
        ("ms", [0.5, 6000.0], "ms"),
        ("J", [2e-5], "µJ"),
        ("J s", [2e-5, 3e-3], "µJ s"),
        ("1/s", [3e4, 3e6], "×10³"),
        ("%", [90.0], "%"),
        ("ms", [], "µs"),
    ],
)
def test_a_column_shares_the_prefix_that_its_smallest_value_needs(unit: str, values: list[float], name: str) -> None:
    assert display_unit(unit, values).name == name


def test_bounds_are_two_ends() -> None:
    assert format_bounds((0.0051, 0.0334)) == "0.005 … 0.033"


@pytest.mark.parametrize(("seconds", "text"), [(45, "45 s"), (730, "12 min"), (12345, "3.4 h")])
def test_durations(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (1.0333, "1.033"),
        (1.00032, "1.00032"),
        (1.96, "1.96"),
        (3.24, "3.2"),
        (26.3, "26"),
        (1e30, "> 1000"),
        (1.0, "1"),
    ],
)
def test_a_factor_shows_what_it_is_above_one(ratio: float, text: str) -> None:
    assert factor_above_one(ratio) == text
