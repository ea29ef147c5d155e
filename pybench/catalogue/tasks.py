# SPDX-License-Identifier: Apache-2.0
"""What accuracy is about: a row for each task.

A task says what one unit of its data is scored by, and which metrics are means of these scores.
How two cases pair follows from the scores: hits by their counts, numbers by their differences, logarithms by ratios.
"""

from __future__ import annotations

from dataclasses import dataclass

from pybench.catalogue.rows import Rows

ANY = "..."  # in `Task.output`


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task.

    name: as rows of data sets name it
    meaning: what a unit is scored by, in a phrase
    output: dimensions of what is judged; `...` stands for any number of them, also none
    classes: which of these dimensions has a score for each class; None: outputs are values, and no classes
    has_background: whether class 0 is what no unit is scored by, so that a unit of nothing else has no score
    judge: `module:callable`, from the outputs of a model and the data to the score of each unit
    yields: metrics of every case; the first is what a case is judged by where a plan does not say
    """

    name: str
    meaning: str
    output: tuple[str, ...]
    classes: int | None = None
    has_background: bool = False
    judge: str
    yields: tuple[str, ...]

    @property
    def headline(self) -> str:
        """The metric that a case is judged by where a plan does not say."""
        return self.yields[0]

    def takes(self, dimensions: int) -> bool:
        """Whether an output of so many dimensions can be judged."""
        if ANY not in self.output:
            return dimensions == len(self.output)
        return dimensions >= len(self.output) - 1


_ROWS = (
    Task(
        name="classification",
        meaning="whether the most probable class, or one of the five most probable, is right",
        output=("batch", "classes"),
        classes=1,
        judge="pybench.workloads.tasks.classification:judge",
        yields=("top1_percent", "top5_percent"),
    ),
    Task(
        name="segmentation",
        meaning="how far the pixels or voxels of each class overlap with the true ones (Dice)",
        output=("batch", "classes", "size", ANY),
        classes=1,
        has_background=True,
        judge="pybench.workloads.tasks.segmentation:judge",
        yields=("dice_percent",),
    ),
    Task(
        name="language",
        meaning="how unlikely the model finds the token that follows a text",
        output=("batch", ANY, "vocabulary"),
        classes=-1,
        judge="pybench.workloads.tasks.language:judge",
        yields=("perplexity",),
    ),
    Task(
        name="regression",
        meaning="the distance between output and truth",
        output=("batch", ANY),
        judge="pybench.workloads.tasks.regression:judge",
        yields=("l1_error", "linf_error"),
    ),
)

TASKS = Rows("task", _ROWS)
CLASSIFICATION, REGRESSION = TASKS["classification"], TASKS["regression"]
