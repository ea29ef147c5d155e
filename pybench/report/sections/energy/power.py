# SPDX-License-Identifier: Apache-2.0
"""The power trace of one run: what was read, what is recovered from it, and the windows that energy is computed over.

Three rows. Lanes name every window of the run. Below them is the whole trace on the same axis of time. Below that are
the two edges of the energy window magnified, where sensors differ most. A long trace is drawn as its extremes in each
of `_BINS` slices of time, so that no peak is lost; the magnified edges show every point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pybench.analysis.findings.joules import JouleFinding, expanded
from pybench.analysis.findings.power import Steps, counter_power, recover_power
from pybench.dataset.energy import PowerRecording, read_recording
from pybench.report.canvas import BLACK, BLUE, GREY, ORANGE, VERMILION, WIDTH_INCH, Drawing, Picture, picture
from pybench.report.numbers import format_plus_minus

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Numbers = NDArray[np.float64]

_BINS = 1200  # more than a figure of this width has pixels
_LEFT_INCH = 1.0  # the lanes' names
_LANE_INCH = 0.17
_MARGIN = 0.03  # of the shown length, left and right of the windows
_BEFORE_S, _AFTER_S = 0.1, 0.3  # of an edge, magnified: three lags of a sensor before, the counter's next ticks after
_SAMPLES = "driver's samples, as stamped"
_INSTANT = "instant field, as polled"
_COUNTER = "energy counter, mean between readings"
_RECOVERED = "power, sensor's delay and lag removed"


@dataclass(frozen=True, slots=True)
class _WindowFill:
    """How a window is filled: apart in grey by lightness and hatch. No hatch of dots: one of them is 150 kB of SVG."""

    face: str
    hatch: str | None


_LOOKS = {
    "idle": _WindowFill("#f1f1f1", "///"),
    "timing": _WindowFill("#ffffff", "|||"),
    "energy": _WindowFill("#cfe3f3", None),
    "tail": _WindowFill("#fbe3cf", "\\\\\\"),
}
_HATCH_COLOUR = "#b5b5b5"


@dataclass(frozen=True, slots=True)
class _Lane:
    """One window on the axis of time."""

    label: str
    kind: str
    begin_s: float
    end_s: float


def draw_powers(findings: Sequence[JouleFinding], names: Sequence[str]) -> list[Drawing]:
    """One figure a case, numbered as the tables of budgets. `names`: of the cases."""
    named = zip(names, findings, strict=True)
    return [partial(_draw_power, number, name, finding) for number, (name, finding) in enumerate(named, start=1)]


def _draw_power(number: int, name: str, finding: JouleFinding) -> Picture:
    """Raises CorruptError for channels that cannot be read."""
    import matplotlib as mpl

    recording = read_recording(finding.board.directory)
    # For any layout engine, even its placeholder "none", matplotlib draws once more before each file it writes.
    with mpl.rc_context({"figure.constrained_layout.use": False}):
        return _draw_recording(number, name, finding, recording)


def _draw_recording(number: int, name: str, finding: JouleFinding, recording: PowerRecording) -> Picture:
    lanes = _lanes(finding)
    figure, axes = _lay_out(len(lanes))
    series = _Series.of(finding, recording)
    first_s, last_s = _shown_span(lanes)
    _draw_lanes(axes["lanes"], lanes, first_s, last_s)
    _draw_panel(axes["whole"], series, lanes, first_s, last_s, thin=True)
    axes["whole"].set_xlabel("Seconds since the measurement began")
    window = finding.window
    for key, edge_s, title in (
        ("begin", window.begin_s, "Begin of the window"),
        ("end", window.end_s, "End of the window"),
    ):
        _draw_panel(axes[key], series, lanes, edge_s - _BEFORE_S, edge_s + _AFTER_S, thin=False)
        axes[key].set_title(title)
        axes[key].set_xlabel("Seconds")
    axes["end"].sharey(axes["begin"])
    axes["end"].set_ylabel("")
    handles, labels = axes["whole"].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="lower left", bbox_to_anchor=(_LEFT_INCH / WIDTH_INCH, 0), ncols=2, markerscale=1.3
    )
    title = f"Power of the board: {name}, block {finding.block}"
    return picture(f"power-{number}", title, _caption(finding, series), figure)


def _lay_out(lanes: int) -> tuple[Figure, dict[str, Axes]]:
    """Four axes at places of their own, from the bottom up: matplotlib's solver of several axes does not give the same
    places, hence not the same bytes, each time."""
    import matplotlib.pyplot as plt

    edges_inch, whole_inch, lanes_inch = 1.45, 1.75, _LANE_INCH * lanes
    whole_at = 0.95 + edges_inch + 0.72
    height_inch = whole_at + whole_inch + 0.08 + lanes_inch + 0.06
    wide_inch = WIDTH_INCH - _LEFT_INCH - 0.08
    half_inch = (wide_inch - 0.45) / 2
    figure = plt.figure(figsize=(WIDTH_INCH, height_inch))
    places = {
        "lanes": (_LEFT_INCH, whole_at + whole_inch + 0.08, wide_inch, lanes_inch),
        "whole": (_LEFT_INCH, whole_at, wide_inch, whole_inch),
        "begin": (_LEFT_INCH, 0.95, half_inch, edges_inch),
        "end": (_LEFT_INCH + wide_inch - half_inch, 0.95, half_inch, edges_inch),
    }
    scale = (WIDTH_INCH, height_inch, WIDTH_INCH, height_inch)
    return figure, {
        name: figure.add_axes(tuple(inch / whole for inch, whole in zip(place, scale, strict=True)))  # type: ignore[arg-type]
        for name, place in places.items()
    }


@dataclass(frozen=True, slots=True)
class _Series:
    """What is drawn."""

    recording: PowerRecording
    recovered: Steps
    counter: Steps

    @classmethod
    def of(cls, finding: JouleFinding, recording: PowerRecording) -> _Series:
        sensor = finding.board.sensor
        recovered = recover_power(
            recording.samples_s, recording.samples_w, sensor["sample_delay_s"], sensor["response_s"]
        )
        counter = counter_power(
            recording.counter_s, recording.counter_j, sensor["counter_tick_s"], sensor["counter_delay_s"]
        )
        return cls(recording, recovered, counter)


# --- windows ---------------------------------------------------------------------------------------------------------


def _lanes(finding: JouleFinding) -> list[_Lane]:
    """Every window of the run, and the tail, in order of time."""
    window = finding.window
    lanes = []
    for name, (begin_s, end_s) in finding.board.spans.items():
        energy = name == window.window
        kind = "energy" if energy else "idle" if name.startswith("idle") else "timing"
        label = name.replace("_", " ") + ("" if name.startswith("idle") else " window")
        lanes.append(_Lane("timing, energy" if energy and name == "timing" else label, kind, begin_s, end_s))
    if window.tail_end_s is not None:
        lanes.append(_Lane("tail", "tail", window.end_s, window.tail_end_s))
    return sorted(lanes, key=lambda lane: lane.begin_s)


def _shown_span(lanes: list[_Lane]) -> tuple[float, float]:
    first_s, last_s = min(lane.begin_s for lane in lanes), max(lane.end_s for lane in lanes)
    margin_s = _MARGIN * (last_s - first_s)
    return first_s - margin_s, last_s + margin_s


def _draw_lanes(axes: Axes, lanes: list[_Lane], first_s: float, last_s: float) -> None:
    least_s = (last_s - first_s) / 400  # a shorter window is drawn as wide as a line, or nobody would see it
    for row, lane in enumerate(lanes):
        look = _LOOKS[lane.kind]
        axes.barh(
            row,
            max(lane.end_s - lane.begin_s, least_s),
            left=lane.begin_s,
            height=0.8,
            facecolor=look.face,
            hatch=look.hatch,
            edgecolor=_HATCH_COLOUR,
            linewidth=0,
        )
        axes.barh(
            row,
            max(lane.end_s - lane.begin_s, least_s),
            left=lane.begin_s,
            height=0.8,
            fill=False,
            edgecolor="#555555",
            linewidth=0.7,
        )
    axes.set_yticks(range(len(lanes)), [lane.label for lane in lanes])
    axes.set_ylim(len(lanes) - 0.4, -0.6)
    axes.set_xlim(first_s, last_s)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", length=0, labelbottom=False)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)


# --- power -----------------------------------------------------------------------------------------------------------


def _draw_panel(axes: Axes, series: _Series, lanes: list[_Lane], first_s: float, last_s: float, *, thin: bool) -> None:
    _shade(axes, lanes, first_s, last_s)
    recording = series.recording
    time_s, power_w = _visible(recording.instant_s, recording.instant_w, first_s, last_s, thin=thin)
    axes.plot(
        time_s, power_w, color=ORANGE, linewidth=1.3, linestyle=(0, (3, 1.2)), drawstyle="steps-post", label=_INSTANT
    )
    time_s, power_w = _visible(*_stairs(series.recovered), first_s, last_s, thin=thin)
    axes.plot(time_s, power_w, color=BLUE, linewidth=1.1, label=_RECOVERED)
    time_s, power_w = _visible(recording.samples_s, recording.samples_w, first_s, last_s, thin=thin)
    axes.plot(
        time_s,
        power_w,
        linestyle="none",
        marker="o",
        markersize=1.8 if thin else 3.2,
        markerfacecolor="white",
        markeredgecolor=BLACK,
        markeredgewidth=0.5 if thin else 0.8,
        label=_SAMPLES,
    )
    for index, (begin_s, end_s) in enumerate(series.counter.edges_s):
        if end_s > first_s and begin_s < last_s:
            axes.plot(
                [begin_s, end_s],
                [series.counter.power_w[index]] * 2,
                color=VERMILION,
                linewidth=2.4,
                alpha=0.85,
                marker="|",
                markersize=7,
                markeredgewidth=1.4,
                solid_capstyle="butt",
            )
    axes.plot([], [], color=VERMILION, linewidth=2.4, marker="|", markersize=7, label=_COUNTER)
    axes.set_xlim(first_s, last_s)
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    axes.set_ylabel("W")


def _shade(axes: Axes, lanes: list[_Lane], first_s: float, last_s: float) -> None:
    """Energy window, tail and idle windows behind the curves; the edges of the energy window as lines."""
    for lane in lanes:
        if lane.kind == "timing" or lane.end_s < first_s or lane.begin_s > last_s:
            continue
        look = _LOOKS[lane.kind]
        axes.axvspan(lane.begin_s, lane.end_s, facecolor=look.face, edgecolor="#dddddd", hatch=look.hatch, linewidth=0)
        if lane.kind == "energy":
            for edge_s in (lane.begin_s, lane.end_s):
                axes.axvline(edge_s, color=BLACK, linewidth=0.8)
    for lane in lanes:
        if lane.kind == "timing":
            for edge_s in (lane.begin_s, lane.end_s):
                axes.axvline(edge_s, color=GREY, linewidth=0.8, linestyle=":")


def _stairs(steps: Steps) -> tuple[Numbers, Numbers]:
    """A line that goes along every step and down to the next."""
    return steps.edges_s.reshape(-1), np.repeat(steps.power_w, 2)


def _visible(
    time_s: Numbers, power_w: Numbers, first_s: float, last_s: float, *, thin: bool
) -> tuple[Numbers, Numbers]:
    """The points from `first_s` to `last_s` with one neighbour each side; thinned to their extremes where there are
    too many to see."""
    first = max(int(np.searchsorted(time_s, first_s)) - 1, 0)
    last = int(np.searchsorted(time_s, last_s, "right")) + 1
    time_s, power_w = time_s[first:last], power_w[first:last]
    if not thin or len(time_s) <= 4 * _BINS:
        return time_s, power_w
    kept = sorted(
        {
            int(slice_[place])
            for slice_ in np.array_split(np.arange(len(time_s)), _BINS)
            for place in (np.argmin(power_w[slice_]), np.argmax(power_w[slice_]))
        }
    )
    return time_s[kept], power_w[kept]


def _caption(finding: JouleFinding, series: _Series) -> str:
    window = finding.window
    within_j, absolute_j = expanded(window.u_within_j), expanded(window.u_absolute_j)
    if window.energy_j is None or within_j is None or absolute_j is None:
        energy = "The energy of this window is unknown."
    else:
        value, within = format_plus_minus(window.energy_j, within_j)
        energy = (
            f"Energy of the window: {value} J, {within} J within-board and "
            f"{format_plus_minus(window.energy_j, absolute_j)[1]} J absolute (95 %)."
        )
    sensor = finding.board.sensor
    counter = "" if len(series.counter.power_w) else " The counter was read too rarely to draw its power."
    which = (
        f"The run has the median energy of {finding.of_runs} runs." if finding.of_runs > 1 else "It is the only run."
    )
    delay_ms, lag_ms = sensor["sample_delay_s"] * 1e3, sensor["response_s"] * 1e3
    return (
        f"{energy} {which} The power is computed from the samples: a delay of {delay_ms:.3g} ms and a lag of "
        f"{lag_ms:.3g} ms are removed ({sensor['origin']} profile). Filled: energy window. Hatched: rest. "
        f"Filled and hatched: tail. Dotted lines: other windows.{counter}"
    )
