# SPDX-License-Identifier: Apache-2.0
"""What a task gives back: scores of units, metrics, and doubts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from pybench.catalogue.cautions import Caution
from pybench.catalogue.reasons import Reason, ReasonCode
from pybench.measure.quantity import Quantity

Outputs = Iterable[tuple[slice, npt.NDArray[Any]]]
"""Of each batch, in order: which samples it is of, and the model's first output for them."""


@dataclass(frozen=True, slots=True)
class TaskScores:
    """columns: name -> one value a unit, as stored
    metrics: name -> value
    is_finite: whether all outputs are numbers
    cautions: doubts about the metrics
    labels: facts that are no numbers
    """

    columns: Mapping[str, npt.NDArray[Any]]
    metrics: Mapping[str, Quantity]
    is_finite: bool
    cautions: tuple[Caution, ...] = ()
    labels: Mapping[str, Any] = field(default_factory=dict)


def mean_score(scores: npt.NDArray[np.float64], what: str) -> Quantity:
    """Mean over units, and its standard error with units taken as independent; no value where a score is no number.

    `what`: the units, in words.
    """
    count, finite = len(scores), int(np.isfinite(scores).sum())
    if finite < count:
        return unknown_score(f"{count - finite} of {count} {what} have no finite score", count)
    error = float(scores.std(ddof=1)) / count**0.5 if count > 1 else None
    return Quantity(value=float(scores.mean()), u_standard=error, samples=count, method=f"mean over {what}")


def unknown_score(why: str, count: int) -> Quantity:
    """A metric of `count` units without a value, because a number is NaN or infinite."""
    return Quantity(samples=count, reasons=(Reason(ReasonCode.NOT_FINITE, why),))
