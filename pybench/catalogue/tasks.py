# SPDX-License-Identifier: Apache-2.0
"""What accuracy is about: a row for each task.

A task says what one unit of its data is scored by, and which metrics are means of these scores.
How two cases pair follows from the scores: hits by their counts, numbers by their differences, logarithms by ratios.
"""

from __future__ import annotations

from dataclasses import dataclass

from pybench.catalogue.rows import Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task.

    name: as rows of data sets name it
    meaning: what a unit is scored by, in a phrase
    output: dimensions of what is judged, the first output of a model
    judge: `module:callable`, from the outputs of a model and the data to the score of each unit
    yields: metrics of every case; the first is what a case is judged by where a plan does not say
    """

    name: str
    meaning: str
    output: tuple[str, ...]
    judge: str
    yields: tuple[str, ...]

    @property
    def headline(self) -> str:
        """The metric that a case is judged by where a plan does not say."""
        return self.yields[0]


_ROWS = (
    Task(
        name="classification",
        meaning="whether the most probable class, or one of the five most probable, is right",
        output=("batch", "classes"),
        judge="pybench.workloads.tasks.classification:judge",
        yields=("top1_percent", "top5_percent"),
    ),
    Task(
        name="segmentation",
        meaning="how far the voxels of each class overlap with the true ones (Dice)",
        output=("batch", "classes", "depth", "height", "width"),
        judge="pybench.workloads.tasks.segmentation:judge",
        yields=("dice_percent",),
    ),
    Task(
        name="language",
        meaning="how unlikely the model finds the token that follows a text",
        output=("batch", "vocabulary"),
        judge="pybench.workloads.tasks.language:judge",
        yields=("perplexity",),
    ),
    Task(
        name="regression",
        meaning="the distance between output and truth",
        output=("batch", "values"),
        judge="pybench.workloads.tasks.regression:judge",
        yields=("l1_error", "linf_error"),
    ),
)

TASKS = Rows("task", _ROWS)
CLASSIFICATION = TASKS["classification"]
