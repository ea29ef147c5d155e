# SPDX-License-Identifier: Apache-2.0
"""Perplexity of the token that follows each window of text: the exponential of its mean cross-entropy in nats.

One token a window, because that is what every runtime gives: an exported language model has the scores of the next
token only. Scores become probabilities in float64.
"""

from __future__ import annotations

import math

import numpy as np

from pybench.errors import InputError
from pybench.measure.quantity import Quantity
from pybench.models.samples import Samples
from pybench.workloads.tasks.scores import Outputs, TaskScores, mean_score


def judge(outputs: Outputs, samples: Samples, model: str, unit: str) -> TaskScores:
    """`outputs`: scores [m, vocabulary]; truth: the ids that follow. Raises InputError where an id has no score."""
    nats, finite = [], True
    for chosen, scores in outputs:
        follows = samples.truth(np.arange(chosen.start, chosen.stop))
        if scores.ndim != 2 or len(scores) != len(follows) or scores.shape[1] <= int(follows.max()):
            raise InputError(
                f"{model} gives {list(scores.shape)} for {len(follows)} {unit}s, whose next ids reach {follows.max()}"
            )
        finite = finite and bool(np.isfinite(scores).all())
        wide = scores.astype(np.float64)
        top = wide.max(axis=1)
        total = top + np.log(np.exp(wide - top[:, np.newaxis]).sum(axis=1))
        nats.append(total - wide[np.arange(len(follows)), follows])
    each = np.concatenate(nats)
    mean = mean_score(each, f"{unit}s")
    value = math.exp(mean.value) if mean.value is not None and mean.value < 700 else None
    error = None if mean.u_standard is None or value is None else value * mean.u_standard
    perplexity = Quantity(value=value, u_standard=error, samples=len(each), method=f"exponential of the {mean.method}")
    return TaskScores(columns={"nats": each}, metrics={"perplexity": perplexity}, is_finite=finite)
