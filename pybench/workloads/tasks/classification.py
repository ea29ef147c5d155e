# SPDX-License-Identifier: Apache-2.0
"""Top-1 and Top-5 of class scores. Ties go to the lower class."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pybench.catalogue.cautions import Caution, CautionCode
from pybench.errors import InputError
from pybench.measure.quantity import Quantity
from pybench.models.samples import Samples
from pybench.workloads.tasks.scores import Outputs, TaskScores

TOP = 5


def judge(outputs: Outputs, samples: Samples, model: str, unit: str) -> TaskScores:
    """`outputs`: scores [m, classes]. Raises InputError when the model gives no class scores, or too few."""
    labels = samples.all_truth()
    top1, top5_hit, finite, classes = [], [], True, 0
    for chosen, scores in outputs:
        classes = _classes(scores, chosen, samples, model, unit)
        finite = finite and bool(np.isfinite(scores).all())
        order = np.argsort(-scores, axis=1, kind="stable")[:, :TOP]
        top1.append(order[:, 0])
        top5_hit.append((order == labels[chosen, np.newaxis]).any(axis=1))
    first, hits = np.concatenate(top1).astype(np.int64), np.concatenate(top5_hit)
    cautions = []
    if len(samples.classes) < classes:
        detail = f"{len(samples.classes)} classes, {classes} outputs"
        cautions.append(Caution(CautionCode.FEWER_CLASSES, detail, "top1_percent"))
    return TaskScores(
        columns={"label": labels, "top1": first, "top5_hit": hits},
        metrics={"top1_percent": _share(first == labels, unit), "top5_percent": _share(hits, unit)},
        is_finite=finite,
        cautions=tuple(cautions),
        labels={"classes": len(samples.classes)},
    )


def _classes(scores: npt.NDArray[Any], chosen: slice, samples: Samples, model: str, unit: str) -> int:
    count = chosen.stop - chosen.start
    if scores.ndim != 2 or len(scores) != count:
        raise InputError(f"{model} gives {list(scores.shape)} for {count} {unit}s, not [{count}, classes]")
    classes = int(scores.shape[1])
    if classes < len(samples.classes):
        raise InputError(
            f"{model} tells {classes} classes apart, the {unit}s have {len(samples.classes)}",
            hint=f"judge a model on {unit}s of the classes that it was trained on",
        )
    return classes


def _share(hits: npt.NDArray[np.bool_], unit: str) -> Quantity:
    share, count = float(hits.mean()), len(hits)
    deviation = (share * (1 - share) / count) ** 0.5
    return Quantity(
        value=100 * share, u_standard=100 * deviation, samples=count, method=f"share of {unit}s; binomial deviation"
    )
