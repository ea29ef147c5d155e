# SPDX-License-Identifier: Apache-2.0
"""How figures look and how they become bytes: one style, the same bytes from the same numbers.

Colours are Okabe and Ito's (2008), which stay apart for colour-blind readers and in grey; meaning never rests on colour
alone. SVG keeps text as text. What would make the same picture other bytes is fixed: dates, salt of ids, the user's
matplotlibrc, and the version of zlib that would compress a PDF.
"""

from __future__ import annotations

import io
import math
import re
import textwrap
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from pybench.analysis.statistics.estimate import Estimate
from pybench.case import Case
from pybench.report.font_subsets import cut_once
from pybench.report.ticks import placed_once

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.backend_bases import FigureCanvasBase
    from matplotlib.figure import Figure

BLUE = "#0072B2"
VERMILION = "#D55E00"
GREEN = "#009E73"
ORANGE = "#E69F00"
SKY = "#56B4E9"
PURPLE = "#CC79A7"
BLACK = "#1a1a1a"
GREY = "#8a8a8a"
CYCLE = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, BLACK)
MARKERS = ("o", "s", "D", "^", "v", "P", "X")
_LOG_FROM = 5.0  # values that span more than this factor get a logarithmic axis
_LOG_FROM_ENDS = 50.0  # with the ends of their intervals: on a linear axis all values would be in one place
_FEW_TICKS_FROM = 1000.0  # an axis that spans more gets powers of ten only
WIDTH_INCH = 7.2  # two columns of a usual paper
_LABEL_CHARACTERS = 60  # of a row, which take half of that width
_LEGEND_CHARACTERS = 56  # of a line of a legend, which take half of that width
_COLUMN_CHARACTERS = 46  # the same, where two legends are side by side
_LINE_INCH = 0.173  # of a legend
_LINES_BELOW = 4  # of a legend below axes, for which every figure has room
MARKED = "data-cases"  # an attribute of an SVG's groups
ID_CHARACTERS = 12  # of a case's id, as in tables
_MARK = re.compile(r'id="cases ([0-9a-f ]*)"')

_STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same layout, hence the same bytes, on every machine
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#555555",
    "axes.linewidth": 0.7,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "xtick.color": "#333333",
    "ytick.color": "#333333",
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.2,
    "figure.constrained_layout.use": True,
    "figure.facecolor": "white",
    "svg.fonttype": "none",
    "svg.hashsalt": "pybench",
    "pdf.fonttype": 42,
    "pdf.compression": 0,  # zlib's versions compress differently; it saves 12 kB a figure
    "axes.unicode_minus": True,
    "text.parse_math": False,  # a plan's strings are text, never TeX
}


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure as it is stored. `caption` says what is drawn and how to read it."""

    name: str
    title: str
    caption: str
    svg: str
    pdf: bytes | None
    """None: the report was not asked for PDFs."""


Drawing = Callable[[], Picture]
"""A figure to be drawn inside `style()`: a `functools.partial` of a module's function, so that any process can."""


_with_pdf: ContextVar[bool] = ContextVar("with_pdf", default=True)


def draw(drawing: Drawing, *, pdf: bool = True) -> Picture:
    """`pdf`: also as PDF, which takes as long as the SVG."""
    asked = _with_pdf.set(pdf)
    try:
        with style():
            return drawing()
    finally:
        _with_pdf.reset(asked)


@contextmanager
def style() -> Iterator[None]:
    """Everything drawn inside has the report's style and needs no display."""
    import matplotlib as mpl

    mpl.use("agg")
    cuts = cut_once() if _with_pdf.get() else nullcontext()  # imports what cuts fonts, 0.1 s
    with mpl.rc_context(), warnings.catch_warnings(), cuts:
        dict.update(cast(Any, mpl.rcParams), _settings())
        # A name may hold signs that the font lacks. The SVG keeps them as text; only the PDF shows a box.
        warnings.filterwarnings("ignore", message="Glyph ")
        yield


@cache
def _settings() -> dict[str, Any]:
    """All of matplotlib's settings: judging 300 of them takes 9 ms."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(cast(Any, _STYLE))
        return dict(cast(Any, mpl.rcParams))


def picture(name: str, title: str, caption: str, figure: Figure) -> Picture:
    """Renders and closes a figure."""
    import matplotlib.pyplot as plt
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    svg = io.StringIO()
    with placed_once(), _laid_out(figure, FigureCanvasSVG):
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
    pdf = _as_pdf(figure) if _with_pdf.get() else None
    plt.close(figure)
    return Picture(name, title, caption, _MARK.sub(rf'{MARKED}="\1"', svg.getvalue()), pdf)


def mark_cases(artists: Iterable[Artist], cases: Iterable[Case]) -> None:
    """Lets the SVG say which cases are drawn: the page dims the marks of those that it does not show."""
    ids = " ".join(case.id[:ID_CHARACTERS] for case in cases)
    for artist in artists:
        artist.set_gid(f"cases {ids}")  # an id only until `picture` makes it an attribute: several artists share it


def _as_pdf(figure: Figure) -> bytes:
    from matplotlib.backends.backend_pdf import FigureCanvasPdf

    pdf = io.BytesIO()
    with placed_once(), _laid_out(figure, FigureCanvasPdf):
        figure.savefig(pdf, format="pdf", metadata={"CreationDate": None, "Creator": None, "Producer": None})
    return pdf.getvalue()


@contextmanager
def _laid_out(figure: Figure, canvas: type[FigureCanvasBase]) -> Iterator[None]:
    """Inside, a figure has the places that its layout engine finds for files of this canvas, and no engine.

    For any engine matplotlib would draw the figure once more before it draws the file. Kinds of files measure text
    differently, so each has its own places.
    """
    import matplotlib as mpl

    engine = figure.get_layout_engine()
    if engine is None:
        yield
        return
    canvas(figure)  # the engine measures with it
    engine.execute(figure)
    with mpl.rc_context({"figure.constrained_layout.use": False}):
        figure.set_layout_engine(None)
    yield
    figure.set_layout_engine(engine)


def inline(shown: Picture) -> str:
    """The SVG for an HTML page: no prolog, no metadata, ids of its own, scaled by the page, named for screen
    readers."""
    svg = shown.svg[shown.svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\b(id="|href="#|url\(#)', lambda match: f"{match[1]}{shown.name}-", svg)
    size = re.search(r'width="([\d.]+)pt"', svg)
    width = f' style="max-width:{float(size[1]) * 1.45:.0f}px"' if size else ""
    svg = re.sub(r' (width|height)="[\d.]+pt"', "", svg, count=2)
    return svg.replace("<svg ", f'<svg role="img" aria-labelledby="{shown.name}-caption"{width} ', 1)


def pick(position: int) -> tuple[str, str]:
    """(colour, marker) of the n-th group: 49 groups have 49 pairs."""
    return CYCLE[position % len(CYCLE)], MARKERS[(position + position // len(CYCLE)) % len(MARKERS)]


def legend_beside(axes: Axes, title: str | None = None) -> None:
    """Names of the groups, right of the axes. The figure becomes as high as they need."""
    handles, names = axes.get_legend_handles_labels()
    folded = [_folded(name) for name in names]
    axes.legend(handles, folded, loc="upper left", bbox_to_anchor=(1.0, 1.0), title=title)
    lines = _lines(folded) + (1 if title is None else 2)
    figure = axes.get_figure(root=True)
    if figure is not None:
        figure.set_figheight(max(figure.get_figheight(), lines * _LINE_INCH))


def legend_below(figure: Figure, axes: Axes) -> None:
    """Names of the groups of these axes, below all axes of the figure, which becomes as high as they need."""
    handles, names = axes.get_legend_handles_labels()
    folded = [_folded(name) for name in names]
    columns = 2 if len(names) > 1 and max(map(len, names)) <= _COLUMN_CHARACTERS else 1
    figure.legend(handles, folded, loc="outside lower center", ncols=columns)
    lines = math.ceil(_lines(folded) / columns)
    figure.set_figheight(figure.get_figheight() + max(lines - _LINES_BELOW, 0) * _LINE_INCH)


def _folded(name: str) -> str:
    return "\n".join(textwrap.wrap(name, _LEGEND_CHARACTERS)) or name


def _lines(folded: Iterable[str]) -> int:
    return sum(name.count("\n") + 1 for name in folded)


def label_rows(axes: Axes, labels: list[str]) -> None:
    """Rows from the top down, one a label, without ticks or horizontal grid. Long labels are written smaller."""
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    longest = max(map(len, labels), default=0)
    if longest > _LABEL_CHARACTERS:
        axes.tick_params(axis="y", labelsize=_STYLE["font.size"] * _LABEL_CHARACTERS / longest)
    axes.grid(visible=False, axis="y")


def log_scale(axes: Axes, axis: str = "x") -> None:
    """A logarithmic axis, to base 10."""
    from pybench.report.log_scale import PlainLogScale

    target, set_scale = (axes.xaxis, axes.set_xscale) if axis == "x" else (axes.yaxis, axes.set_yscale)
    set_scale(PlainLogScale(target))


def spans_widely(values: Collection[float], estimates: Iterable[Estimate] = ()) -> bool:
    """Whether values are for a logarithmic axis: all above 0, and far apart. `estimates`: whose intervals are drawn,
    too; those of few blocks can be so long that a linear axis shows nothing else."""
    ends = [end for one in estimates for end in (one.lower, one.upper) if end is not None]
    return _spread(values) > _LOG_FROM or _spread([*values, *ends]) > _LOG_FROM_ENDS


def _spread(values: Collection[float]) -> float:
    """The largest over the smallest; 1 without values, or where one is not above 0."""
    return max(values) / min(values) if values and min(values) > 0 else 1.0


def plain_log_ticks(axes: Axes, axis: str = "x") -> None:
    """A logarithmic axis whose ticks are 1, 2, 5, 10, ... in plain digits."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    target = axes.xaxis if axis == "x" else axes.yaxis
    log_scale(axes, axis)
    low, high = axes.get_xlim() if axis == "x" else axes.get_ylim()
    few = high / low > _FEW_TICKS_FROM
    target.set_major_locator(LogLocator(base=10, subs=(1.0,) if few else (1.0, 2.0, 5.0)))
    target.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    target.set_minor_formatter(NullFormatter())
