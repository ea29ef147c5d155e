# SPDX-License-Identifier: Apache-2.0
"""Top-1 and Top-5 of an image model on labelled images, with the prediction for each image.

Deterministic: images in the order of the data set, threads as the case says, no shuffling. Ties go to the lower
class. A model does not vary between runs, so its uncertainty is over images: predictions are stored, and intervals
are found from them by pairing cases image by image. Times nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pybench.case.images import images_of
from pybench.catalogue.cautions import Caution, CautionCode
from pybench.errors import InputError
from pybench.measure.quantity import Quantity
from pybench.measurement.doubts import allowed_threads, calibration_cautions, images_identity, thread_cautions
from pybench.measurement.model import OpenedModel, conclude, open_model
from pybench.measurement.result import Result, RunRequest, Validity
from pybench.measurement.supply import image_shape, image_source
from pybench.models.images import Images, open_images

TOP = 5


@dataclass(frozen=True, slots=True)
class Predictions:
    """Of each image, in order: int64 [n] `top1`, bool [n] `top5_hit`. `finite`: all outputs are; `outputs`: scores."""

    top1: npt.NDArray[np.int64]
    top5_hit: npt.NDArray[np.bool_]
    finite: bool
    outputs: int


def run(request: RunRequest) -> Result:
    case = request.case
    opened = open_model(request, deterministic=True)
    source = image_source(request)
    images = open_images(source, "validation", image_shape(opened)).limited(case.image_limit)
    predictions = predict(opened, images, case.batch, allowed_threads(case))
    hits = predictions.top1 == images.labels
    result = Result(labels={"images": str(case.images or source), "classes": len(images.classes)})
    result.metrics = {"top1_percent": _share(hits), "top5_percent": _share(predictions.top5_hit)}
    result.tables["predictions"] = {
        "image_id": np.array(images.ids),
        "label": images.labels,
        "top1": predictions.top1,
        "top5_hit": predictions.top5_hit,
    }
    result.valid = {"timing": Validity(None), "energy": Validity(None), "accuracy": _judge(predictions)}
    identity = images_identity(images_of(case), dict(case.sources).get("images"))
    result.cautions = [*thread_cautions(case), *calibration_cautions(opened.metadata, judged_on=identity)]
    if len(images.classes) < predictions.outputs:
        detail = f"{len(images.classes)} classes, {predictions.outputs} outputs"
        result.cautions.append(Caution(CautionCode.FEWER_CLASSES, detail, "top1_percent"))
    return conclude(result, opened, case)


def predict(opened: OpenedModel, images: Images, batch: int, threads: int = 1) -> Predictions:
    """Runs every image once. Raises InputError when the model gives no class scores, or too few."""
    spec = opened.session.inputs[0]
    spec.resolved(batch, 0, opened.name)
    top1, top5_hit, finite, outputs = [], [], True, 0
    for chosen, pixels in images.batches(batch, threads):
        scores = opened.session.run({spec.name: pixels.astype(spec.dtype)})[0]
        outputs = _check_scores(scores, batch, images, opened)
        scores = scores[: chosen.stop - chosen.start]
        finite = finite and bool(np.isfinite(scores).all())
        order = np.argsort(-scores, axis=1, kind="stable")[:, :TOP]
        top1.append(order[:, 0])
        top5_hit.append((order == images.labels[chosen, np.newaxis]).any(axis=1))
    return Predictions(np.concatenate(top1).astype(np.int64), np.concatenate(top5_hit), finite, outputs)


def _check_scores(scores: npt.NDArray[Any], batch: int, images: Images, opened: OpenedModel) -> int:
    if scores.ndim != 2 or len(scores) != batch:
        raise InputError(f"{opened.name} gives {list(scores.shape)} for {batch} images, not [{batch}, classes]")
    classes = int(scores.shape[1])
    if classes < len(images.classes):
        raise InputError(
            f"{opened.name} tells {classes} classes apart, the images have {len(images.classes)}",
            hint="judge a model on images of the classes that it was trained on",
        )
    return classes


def _share(hits: npt.NDArray[np.bool_]) -> Quantity:
    share, count = float(hits.mean()), len(hits)
    deviation = (share * (1 - share) / count) ** 0.5
    return Quantity(
        value=100 * share, u_standard=100 * deviation, samples=count, method="share of images; binomial deviation"
    )


def _judge(predictions: Predictions) -> Validity:
    return Validity(True) if predictions.finite else Validity(False, ("not_finite",))
