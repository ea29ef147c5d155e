# SPDX-License-Identifier: Apache-2.0
"""Dice of segmented images and volumes (Dice 1945, Ecology 26:297), class by class: 2 |A and B| / (|A| + |B|), in
percent.

Class 0 is the background and has no score. A class that the truth of a volume lacks is left out there: a score of 1 or
0 for what is absent would say how rare the class is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pybench.errors import InputError
from pybench.models.samples import Samples
from pybench.workloads.tasks.scores import Outputs, TaskScores, mean_score


def judge(outputs: Outputs, samples: Samples, model: str, unit: str) -> TaskScores:
    """`outputs`: scores [m, classes, ...]; truth: [m, ...]. A model may tell more classes apart than there are. Raises
    InputError where the shapes do not fit."""
    classes = len(samples.classes)
    rows, finite = [], True
    for chosen, scores in outputs:
        truth = samples.truth(np.arange(chosen.start, chosen.stop))
        expected = (len(truth), classes, *truth.shape[1:])
        given = (*scores.shape[:1], min(classes, scores.shape[1]), *scores.shape[2:]) if scores.ndim > 1 else ()
        if given != expected:
            raise InputError(f"{model} gives {list(scores.shape)}, and the {unit}s need {list(expected)}")
        finite = finite and bool(np.isfinite(scores).all())
        rows += [dice_of(one, true, classes) for one, true in zip(scores.argmax(axis=1), truth, strict=True)]
    by_class = 100 * np.stack(rows)  # [n, classes - 1]
    dice = np.nanmean(by_class, axis=1)
    columns = {f"dice_{name}_percent": by_class[:, i] for i, name in enumerate(samples.classes[1:])}
    by_name = {
        name: float(np.nanmean(by_class[:, i]))
        for i, name in enumerate(samples.classes[1:])
        if not np.isnan(by_class[:, i]).all()
    }
    return TaskScores(
        columns={"dice_percent": dice, **columns},
        metrics={"dice_percent": mean_score(dice, f"{unit}s")},
        is_finite=finite,
        labels={"classes": classes, "dice_percent_by_class": by_name},
    )


def dice_of(predicted: npt.NDArray[Any], truth: npt.NDArray[Any], classes: int) -> npt.NDArray[np.float64]:
    """Of each class but the background, in [0, 1]; NaN for a class that the truth lacks. [classes - 1]."""
    found = []
    for label in range(1, classes):
        mine, true = predicted == label, truth == label
        true_voxels = int(true.sum())
        voxels = int(mine.sum()) + true_voxels
        found.append(2 * int((mine & true).sum()) / voxels if true_voxels else np.nan)
    return np.array(found)
