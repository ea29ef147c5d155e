# SPDX-License-Identifier: Apache-2.0
"""The one figure of a campaign that compares paths from text to tokens: what each costs against the model's size.

A panel for each workload and setting; a line for each path through the throughput that it leaves of what synthetic ids
give. Drawn where a contrast against `path: none` was measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from pybench.analysis import Analysis
from pybench.analysis.findings.path_costs import INDIFFERENT, PathCost
from pybench.case import Case
from pybench.catalogue.paths import PATHS
from pybench.catalogue.units import MEGA
from pybench.report.canvas import GREY, WIDTH_INCH, Drawing, Picture, legend_beside, log_scale, picture, plain_log_ticks
from pybench.report.curves import Line, draw_line
from pybench.report.labels import case_text, varying_factors
from pybench.report.numbers import format_estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAME = "paths"
_SHADE = "#f1f6fa"  # where a path costs nothing
_SPREAD = 0.035  # paths of one size stand this far apart, in the logarithm of size: else their bars hide each other
_WIDE = 20.0  # ratios that span more get a logarithmic axis


def draw_paths(analysis: Analysis) -> list[Drawing]:
    """The figure, or nothing."""
    return [partial(_draw, analysis.path_costs)] if analysis.path_costs else []


def _draw(costs: Sequence[PathCost]) -> Picture:
    import matplotlib.pyplot as plt

    panels = _panels(costs)
    figure, grid = plt.subplots(1, len(panels), figsize=(WIDTH_INCH, 3.1), squeeze=False, sharey=True)
    for axes, (title, members) in zip(grid[0], panels, strict=True):
        _draw_panel(axes, title, members)
    _limit(grid[0][0], [size.relative.value for cost in costs for size in cost.sizes])
    grid[0][0].set_ylabel("Throughput relative to path none")
    legend_beside(grid[0][-1], "Path")
    caption = (
        "Throughput of each path relative to synthetic ids through the same interface, paired within blocks, with "
        "95 % intervals. The panel cuts long bars. At 1 a path costs nothing; the shaded area, from "
        f"{1 - INDIFFERENT:g}, counts as free. " + " ".join(_answers(costs))
    )
    return picture(NAME, "Cost of each token path, by model size", caption, figure)


def _limit(axes: Axes, values: Sequence[float]) -> None:
    """By the values, not their intervals: few blocks can make those so wide that nothing else is seen."""
    axes.set_ylim(min(values) / 1.5, max(1.0, *values) * 1.1)
    if min(values) < 1 / _WIDE:
        plain_log_ticks(axes, "y")
    else:
        axes.set_ylim(bottom=0)


def _panels(costs: Sequence[PathCost]) -> list[tuple[str, list[PathCost]]]:
    """Costs by everything but the path, titled by what tells them apart."""
    cases = [cost.setting for cost in costs]
    factors = [name for name in varying_factors(cases) if name not in ("path", "model")]
    grouped: dict[str, list[PathCost]] = {}
    for cost in costs:
        grouped.setdefault(_title(cost.setting, factors), []).append(cost)
    return [
        (title, sorted(members, key=lambda cost: tuple(PATHS).index(cost.path))) for title, members in grouped.items()
    ]


def _title(case: Case, factors: Sequence[str]) -> str:
    rest = case_text(case, [name for name in factors if name not in ("workload", "runtime", "fed")])
    return ", ".join(part for part in (case.workload_row.label, rest) if part)


def _draw_panel(axes: Axes, title: str, members: Sequence[PathCost]) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator

    axes.axhspan(1 - INDIFFERENT, 1 + INDIFFERENT, color=_SHADE, zorder=0)
    axes.axhline(1, color=GREY, linewidth=0.8)
    for position, cost in enumerate(members):
        shift = 1 + _SPREAD * (position - (len(members) - 1) / 2)
        points = [(size.model_bytes / MEGA * shift, size.relative) for size in cost.sizes]
        draw_line(axes, tuple(PATHS).index(cost.path) - 1, Line(cost.path, points))
    sizes = {size.model: size.model_bytes / MEGA for cost in members for size in cost.sizes}
    log_scale(axes)
    axes.xaxis.set_major_locator(FixedLocator(list(sizes.values())))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels([f"{model}\n{size:.0f} MB" for model, size in sizes.items()])
    axes.margins(x=0.25)
    axes.set_title(title)


def _answers(costs: Sequence[PathCost]) -> list[str]:
    """A sentence for each panel: from which size on each path is free, and what is left where it is not."""
    sentences = []
    for title, members in _panels(costs):
        free = [f"{cost.path} is free from {cost.free_from.model} on" for cost in members if cost.free_from is not None]
        rest = [
            f"{cost.path} reaches {' '.join(filter(None, format_estimate(cost.sizes[-1].relative)))} "
            f"with {cost.sizes[-1].model}"
            for cost in members
            if cost.free_from is None
        ]
        sentences.append(f"{title}: {'; '.join(free + rest)}.")
    return sentences
