# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import warnings

import pytest

from pybench.analysis.statistics.estimate import Estimate
from pybench.report.canvas import label_rows, picture, spans_widely, style


@pytest.mark.parametrize("characters", [10, 60, 150])
def test_labels_of_any_length_leave_room_for_what_is_drawn(characters: int) -> None:
    """Where nothing is left, matplotlib warns and gives up its layout."""
    with style(), warnings.catch_warnings():
        warnings.simplefilter("error")
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(figsize=(7.2, 2))
        axes.plot([1, 2], [0, 1])
        label_rows(axes, ["n" * characters, "short"])
        picture("test", "Test", "caption", figure)
        share = axes.get_position().width
    assert share > 0.25


@pytest.mark.parametrize(
    ("values", "bounds", "is_logarithmic"),
    [
        ((1, 4), (0.9, 5), False),
        ((1, 6), (None, None), True),
        ((30, 100), (0.04, 260_000), True),
        ((30, 100), (-5, 260_000), False),
        ((0, 100), (None, None), False),
        ((1, 6), (-5, 7), True),
        ((), (None, None), False),
    ],
)
def test_an_axis_is_logarithmic_where_a_linear_one_would_hide_the_values(
    values: tuple[float, ...], bounds: tuple[float | None, float | None], is_logarithmic: bool
) -> None:
    assert spans_widely(values, [Estimate(50, *bounds, 2, "")]) is is_logarithmic
