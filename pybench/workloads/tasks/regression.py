# SPDX-License-Identifier: Apache-2.0
"""L1 and L-infinity errors of real outputs. Differences are taken in float64, in the units of the data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from pybench.errors import InputError
from pybench.measure.quantity import Quantity
from pybench.models.samples import Samples
from pybench.workloads.tasks.scores import Outputs, TaskScores, mean_score


def judge(outputs: Outputs, samples: Samples, model: str, unit: str) -> TaskScores:
    """`outputs`: [m, ...]; the truth has the same shape, but for dimensions of size 1. A sample with several values has
    the largest of their errors. Samples with an output below 0 where no truth is are counted. Raises InputError where
    the shapes differ."""
    errors, finite, negative = [], True, 0
    for chosen, values in outputs:
        truth = samples.truth(np.arange(chosen.start, chosen.stop))
        if _without_ones(values) != _without_ones(truth):
            raise InputError(f"{model} gives {list(values.shape)}, and the truth has {list(truth.shape)}")
        truth = truth.reshape(values.shape)
        finite = finite and bool(np.isfinite(values).all())
        negative += int(((values < 0) & (truth >= 0)).any(axis=tuple(range(1, values.ndim))).sum())
        error = np.abs(values.astype(np.float64) - truth)
        errors.append(error.reshape(len(error), -1).max(axis=1))
    absolute = np.concatenate(errors)
    mean, largest = mean_score(absolute, f"{unit}s"), float(absolute.max())
    worst = Quantity(value=largest, samples=len(absolute), method=f"largest over {unit}s")
    return TaskScores(
        columns={"absolute_error": absolute},
        metrics={"l1_error": mean, "linf_error": worst if math.isfinite(largest) else mean},
        is_finite=finite,
        labels={"negative_outputs": negative},
    )


def _without_ones(values: npt.NDArray[Any]) -> tuple[int, ...]:
    """Samples, and the sizes of all dimensions that have more than one value."""
    return (len(values), *(size for size in values.shape[1:] if size != 1))
