# SPDX-License-Identifier: Apache-2.0
"""Training to an accuracy: how many runs reached it, what that cost, and how accuracy and loss went.

fits            one row a case: runs that reached the target, epochs, seconds and joules
learning-curve  one row an epoch of each run
fit-N           Top-1 and training loss over epochs, one line a run
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from pybench.analysis.findings.cases import CaseFinding
from pybench.catalogue.metrics import METRICS
from pybench.catalogue.workloads import TO_TARGET
from pybench.dataset.learning_curves import LearningCurves, read_learning_curves
from pybench.report.canvas import GREY, WIDTH_INCH, Drawing, Picture, legend_below, pick, picture
from pybench.report.labels import case_names
from pybench.report.numbers import format_plain
from pybench.report.sections.elements import Element, Material, Paragraph, Pictures, Section, Sentences, Tables
from pybench.report.sentences import Sentence, estimate_text
from pybench.report.tables import Cell, Column, Table, estimate_cell, estimate_fields, number_cell
from pybench.words import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEAD = (
    "Each repetition trains once, from initial weights and with an order of images of its own. Intervals are over "
    "repetitions, so they contain the luck of a training."
)
_NOTES = (
    "Time and energy contain the judging after each epoch.",
    "A run that did not reach the target has no cost. A case has a mean only if all of its runs reached the target.",
    "A run ends early if it diverges: its held-out loss is NaN or infinite.",
    "The median of the epochs is known if more than half of the runs reached the target.",
)
_SHOWN = (*TO_TARGET, "final_top1_percent")
_IN_A_FIGURE = 7  # cases: there are as many colours
_MOST_FIGURES = 6
_ROWS_ON_PAGE = 40


def build(material: Material) -> list[Element]:
    found = read_learning_curves(material.dataset)
    if not found:
        return []
    names = case_names([one.case for one in found])
    findings = {case.case.id: case for case in material.analysis.cases}
    return [
        Paragraph(_LEAD, "lead"),
        Sentences([_sentence(one, name, findings[one.case.id]) for one, name in zip(found, names, strict=True)]),
        Pictures(lambda: draw_fits(found, names)),
        Tables(lambda: [fits_table(found, names, findings)], is_printed=True),
        Tables(lambda: [curves_table(found, names)], rows_on_page=_ROWS_ON_PAGE),
    ]


def median_epochs(curves: LearningCurves) -> int | None:
    """The lower median of epochs to the target; None where half of the runs or fewer reached it."""
    reached = sorted(frame["epoch"][-1] for block, frame in curves.runs.items() if curves.reached[block])
    place = (len(curves.runs) - 1) // 2
    return int(reached[place]) if 2 * len(reached) > len(curves.runs) else None


def fits_table(found: Sequence[LearningCurves], names: Sequence[str], findings: Mapping[str, CaseFinding]) -> Table:
    """One row a case."""
    columns = (
        Column("Case", ("case_id",)),
        Column("Target (%)", ("target_top1_percent",), numeric=True),
        Column("Reached", ("reached_runs", "runs"), numeric=True),
        Column("Median epochs", ("median_epochs",), numeric=True),
        *(Column(_title(name), estimate_fields(name), numeric=True) for name in _SHOWN),
    )
    rows = []
    for one, name in zip(found, names, strict=True):
        reached, runs, median = sum(one.reached.values()), len(one.runs), median_epochs(one)
        why = None if median is not None else "half of the runs or fewer reached the target"
        rows.append(
            (
                Cell(name, csv=(one.case.id,)),
                number_cell(one.case.target_top1_percent),
                Cell(f"{reached} of {runs}", number=float(reached), csv=(str(reached), str(runs))),
                number_cell(median, note=why),
                *(_cost(findings[one.case.id], metric) for metric in _SHOWN),
            )
        )
    return Table("fits", "Cost of an accuracy", columns, tuple(rows), _NOTES)


def _title(name: str) -> str:
    unit = METRICS[name].unit
    return METRICS[name].label if unit == "count" else f"{METRICS[name].label} ({unit})"


def _cost(case: CaseFinding, name: str) -> Cell:
    finding = case.metrics.get(name)
    if finding is None:
        return estimate_cell(None, why_none="not measured")
    return estimate_cell(finding.estimate, why_none=finding.why_none)


def curves_table(found: Sequence[LearningCurves], names: Sequence[str]) -> Table:
    """One row an epoch of each run."""
    columns = (
        Column("Case", ("case_id",)),
        Column("Run", ("block",), numeric=True),
        Column("Epoch", ("epoch",), numeric=True),
        Column("Images", ("images",), numeric=True),
        Column("Seconds", ("elapsed_s",), numeric=True),
        Column("Training loss (nat)", ("training_loss_nats",), numeric=True),
        Column("Held-out loss (nat)", ("held_out_loss_nats",), numeric=True),
        Column("Top-1 (%)", ("top1_percent",), numeric=True),
    )
    rows = [
        (Cell(name, csv=(one.case.id,)), *(number_cell(value, note=_lost(value)) for value in (block, *row)))
        for one, name in zip(found, names, strict=True)
        for block, frame in one.runs.items()
        for row in frame.iter_rows()
    ]
    return Table("learning-curve", "Each epoch of each run", columns, tuple(rows))


def _lost(value: float | None) -> str | None:
    return "NaN or infinite" if value is None else None


def _sentence(curves: LearningCurves, name: str, finding: CaseFinding) -> Sentence:
    reached, runs = sum(curves.reached.values()), len(curves.runs)
    target = f"{format_plain(curves.case.target_top1_percent or 0.0)} %"
    if reached < runs:
        limit = curves.case.epochs_max
        within = f" within {counted(limit, 'epoch')}" if reached + curves.diverged < runs else ""
        lost = f", and {curves.diverged} diverged" if curves.diverged else ""
        text = f"{reached} of {runs} runs reached {target}{within}{lost}; a mean is not known."
        return Sentence(name, text, "bad" if curves.diverged else "neutral")
    seconds = finding.metrics["time_to_target_s"].estimate
    epochs = finding.metrics["epochs_to_target_count"].estimate
    if seconds is None or epochs is None:
        return Sentence(name, f"{reached} of {runs} runs reached {target}.", "neutral")
    told = [f"{estimate_text(one, signed=False, ratio=False)}" for one in (epochs, seconds)]
    return Sentence(name, f"{target} after {told[0]} epochs and {told[1]} s, in all {runs} runs.", "neutral")


# --- figures ---------------------------------------------------------------------------------------------------------


def draw_fits(found: Sequence[LearningCurves], names: Sequence[str]) -> list[Drawing]:
    """One figure for each model, or several where it has many cases."""
    groups: dict[str, list[tuple[LearningCurves, str]]] = {}
    for one, name in zip(found, names, strict=True):
        groups.setdefault(str(one.case.model), []).append((one, name))
    parts = [
        (model, members[start : start + _IN_A_FIGURE])
        for model, members in groups.items()
        for start in range(0, len(members), _IN_A_FIGURE)
    ]
    return [
        partial(_draw, f"fit-{number}", model, members)
        for number, (model, members) in enumerate(parts[:_MOST_FIGURES], 1)
    ]


def _draw(name: str, model: str, members: Sequence[tuple[LearningCurves, str]]) -> Picture:
    import matplotlib.pyplot as plt

    figure, (accuracy, loss) = plt.subplots(1, 2, figsize=(WIDTH_INCH, 3.1))
    for axes, column, label in ((accuracy, "top1_percent", "Top-1 (%)"), (loss, "training_loss_nats", "Loss (nat)")):
        for position, (curves, text) in enumerate(members):
            _draw_runs(axes, position, curves, column, text)
        axes.set_xlabel("Epoch")
        axes.set_ylabel(label)
        axes.xaxis.get_major_locator().set_params(integer=True)
    for target in sorted({curves.case.target_top1_percent or 0.0 for curves, _ in members}):
        accuracy.axhline(target, color=GREY, linewidth=0.8, linestyle=":")
    legend_below(figure, accuracy)
    caption = "One line a run; it ends when it reached the target (dotted) or diverged, or with the last epoch allowed."
    return picture(name, f"{model}: accuracy and loss over epochs", caption, figure)


def _draw_runs(axes: Axes, position: int, curves: LearningCurves, column: str, text: str) -> None:
    colour, marker = pick(position)
    for number, frame in enumerate(curves.runs.values()):
        axes.plot(
            frame["epoch"].to_list(),
            frame[column].to_list(),
            color=colour,
            marker=marker,
            markersize=3,
            linewidth=0.8,
            alpha=0.8,
            label=text if number == 0 else None,
        )


SECTION = Section("fits", "Training to an accuracy", build)
