# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import warnings

import pytest

from pybench.analysis.statistics.estimate import Estimate
from pybench.report.canvas import label_rows, legend_below, legend_beside, pick, picture, spans_widely, style


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


@pytest.mark.parametrize(("groups", "characters"), [(3, 150), (30, 20), (12, 150)])
@pytest.mark.parametrize("is_below", [False, True])
def test_names_of_all_groups_are_in_the_figure_and_leave_room(groups: int, characters: int, is_below: bool) -> None:
    with style(), warnings.catch_warnings():
        warnings.simplefilter("error")
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(figsize=(7.2, 3))
        for group in range(groups):
            axes.plot([1, 2], [group, group], label=f"{group} {'n' * characters}")
        legend_below(figure, axes) if is_below else legend_beside(axes)
        picture("test", "Test", "caption", figure)
        drawn = axes.get_window_extent().transformed(figure.dpi_scale_trans.inverted())
        legend = (figure.legends[0] if is_below else axes.get_legend()).get_window_extent()
    assert min(drawn.width, drawn.height) > 1.5
    assert figure.bbox.contains(*legend.min)
    assert figure.bbox.contains(*legend.max)


def test_a_legend_that_fits_leaves_the_height_of_a_figure() -> None:
    with style():
        import matplotlib.pyplot as plt

        figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3))
        for group in range(6):
            left.plot([1, 2], [group, group], label=f"group {group}")
            right.plot([1, 2], [group, group], label=f"group {group}")
        legend_below(figure, left)
        legend_beside(right)
        assert figure.get_figheight() == 3
        plt.close(figure)


def test_groups_of_a_figure_are_told_apart() -> None:
    assert len({pick(group) for group in range(49)}) == 49
    assert [pick(group)[0] for group in range(7)] == [pick(group + 7)[0] for group in range(7)]


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
