# SPDX-License-Identifier: Apache-2.0
"""Perplexity of the tokens that follow in each window of text: the exponential of their mean cross-entropy in nats.

Of a built-in data set one token a window, because that is what every runtime gives: an exported language model has the
scores of the next token only. A user's file may have scores at each position, and labels of all of them. Scores become
probabilities in float64.
"""

from __future__ import annotations

import math

import numpy as np

from pybench.errors import InputError
from pybench.measure.quantity import Quantity
from pybench.models.samples import Samples
from pybench.workloads.tasks.scores import Outputs, TaskScores, mean_score, unknown_score

NATS_LIMIT = 700.0  # above 709.78 the exponential overflows; its standard error needs some room


def judge(outputs: Outputs, samples: Samples, model: str, unit: str) -> TaskScores:
    """`outputs`: scores [m, ..., vocabulary]; truth: the ids that follow, [m, ...]. A window with several of them has
    their mean. Raises InputError where an id has no score."""
    nats, finite = [], True
    for chosen, scores in outputs:
        follows = samples.truth(np.arange(chosen.start, chosen.stop))
        if scores.shape[:-1] != follows.shape or scores.shape[-1] <= int(follows.max()):
            raise InputError(
                f"{model} gives {list(scores.shape)} for {len(follows)} {unit}s, whose next ids reach {follows.max()}"
            )
        finite = finite and bool(np.isfinite(scores).all())
        wide = scores.astype(np.float64)
        top = wide.max(axis=-1)
        with np.errstate(invalid="ignore"):  # an infinite score gives NaN, which the mean tells
            total = top + np.log(np.exp(wide - top[..., np.newaxis]).sum(axis=-1))
            own = total - np.take_along_axis(wide, follows[..., np.newaxis], -1)[..., 0]
            nats.append(own.reshape(len(own), -1).mean(axis=1))
    each = np.concatenate(nats)
    perplexity = _exponential(mean_score(each, f"{unit}s"), len(each))
    return TaskScores(columns={"nats": each}, metrics={"perplexity": perplexity}, is_finite=finite)


def _exponential(mean: Quantity, count: int) -> Quantity:
    """The perplexity of a mean in nats."""
    if mean.value is None:
        return mean
    if mean.value >= NATS_LIMIT:
        return unknown_score(f"the exponential of {mean.value:.4g} nats is larger than any float64", count)
    value = math.exp(mean.value)
    error = None if mean.u_standard is None else value * mean.u_standard
    error = error if error is None or math.isfinite(error) else None
    return Quantity(value=value, u_standard=error, samples=count, method=f"exponential of the {mean.method}")
