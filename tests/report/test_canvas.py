# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import warnings

import pytest

from pybench.report.canvas import label_rows, picture, style


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
