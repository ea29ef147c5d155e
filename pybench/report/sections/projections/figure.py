# SPDX-License-Identifier: Apache-2.0
"""The figure of a projection: how the energy of a query is spread, and which inputs spread it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pybench.projection import Projection
from pybench.report.canvas import BLUE, GREY, SKY, WIDTH_INCH, Picture, label_rows, pick, picture, plain_log_ticks
from pybench.report.numbers import significant

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAME = "projection"
_STEPS = np.linspace(0.005, 0.995, 199)  # of the distribution; what lies beyond would only widen the axis


def draw_projection(projection: Projection) -> Picture:
    """Two panels. Call it within `canvas.style()`."""
    import matplotlib.pyplot as plt

    figure, (spread, shares) = plt.subplots(1, 2, figsize=(WIDTH_INCH, 3.0), width_ratios=(3, 2))
    _draw_spread(spread, projection)
    _draw_shares(shares, projection)
    usual = projection.queries[0]
    low, high = (significant(bound, 3) for bound in usual.quartiles_wh)
    caption = (
        "Left: the share of queries that need at most so much energy, with what is unknown of the fleet. "
        f"Half of the {usual.name} queries need between {low} and {high} Wh. "
        f"Right: which part of the variance of {usual.name} queries each input causes, "
        "alone (dark) and with others (light)."
    )
    return picture(NAME, "Energy of a query", caption, figure)


def _draw_spread(axes: Axes, projection: Projection) -> None:
    for position, query in enumerate(projection.queries):
        colour, _ = pick(position)
        axes.plot(np.quantile(projection.energies_wh[query.name], _STEPS), _STEPS, color=colour, label=query.name)
        axes.plot([query.median_wh], [0.5], "o", color=colour, markersize=4)
    axes.axhspan(0.25, 0.75, color=GREY, alpha=0.12, linewidth=0)
    plain_log_ticks(axes, "x")
    axes.set_ylim(0, 1)
    axes.set_xlabel("Wh a query")
    axes.set_ylabel("Share of queries")
    axes.legend(loc="lower right")


def _draw_shares(axes: Axes, projection: Projection) -> None:
    names = [share.name for share in projection.shares]
    rows = range(len(names))
    axes.barh(rows, [max(share.total, 0) for share in projection.shares], color=SKY)
    axes.barh(rows, [max(share.first, 0) for share in projection.shares], color=BLUE)
    label_rows(axes, names)
    axes.set_xlabel("Share of the variance")
