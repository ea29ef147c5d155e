# SPDX-License-Identifier: Apache-2.0
"""Outputs of a model against the truth, as the task of its data says, with the score of each unit.

Deterministic: samples in the order of the data set, threads as the case says, no shuffling. A model does not vary
between runs, so its uncertainty is over units: scores are stored, and intervals are found from them by pairing cases
unit by unit. Times nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pybench.case.data import content_of, data_of, data_set_of, task_of
from pybench.catalogue.code import named_code
from pybench.catalogue.reasons import Reason, ReasonCode
from pybench.catalogue.tasks import CLASSIFICATION
from pybench.errors import InputError
from pybench.measurement.doubts import (
    allowed_threads,
    calibration_cautions,
    floor_cautions,
    images_identity,
    thread_cautions,
)
from pybench.measurement.inputs import file_ranges
from pybench.measurement.labelled import judged_output
from pybench.measurement.model import OpenedModel, conclude, open_model
from pybench.measurement.result import Result, RunRequest, Validity
from pybench.measurement.supply import judging_samples
from pybench.models.samples import Samples
from pybench.workloads.tasks.scores import TaskScores

IMAGE = "image"
ID_BATCH = 256  # samples whose ids are looked at together


def run(request: RunRequest) -> Result:
    case = request.case
    opened = open_model(request, deterministic=True)
    samples = judging_samples(request, opened).limited(case.image_limit)
    data_set, task = data_set_of(case), task_of(case) or CLASSIFICATION
    unit = IMAGE if data_set is None else data_set.unit
    _check_ids(samples, opened, request.artefacts.get("model"))
    judged = judged_output(request, opened.session.output_names)
    outputs = outputs_of(opened, samples, case.batch, allowed_threads(case), judged=judged)
    scored: TaskScores = named_code(task.judge)(outputs, samples, opened.name, unit)
    result = Result(labels={"data": str(data_of(case)), "task": task.name, "unit": unit, **scored.labels})
    result.metrics = dict(scored.metrics)
    result.tables["predictions"] = _table(scored, samples, unit)
    accuracy = Validity(True) if scored.is_finite else Validity(False, (Reason(ReasonCode.NOT_FINITE),))
    result.valid = {"timing": Validity(None), "energy": Validity(None), "accuracy": accuracy}
    identity = images_identity(data_of(case), content_of(case))
    result.cautions = calibration_cautions(opened.metadata, case.calibration_images, judged_on=identity)
    result.cautions += [*thread_cautions(case), *scored.cautions, *floor_cautions(data_set, result.metrics)]
    return conclude(result, opened, case)


def _check_ids(samples: Samples, opened: OpenedModel, path: Path | None) -> None:
    """Raises InputError for weights that embed fewer ids than the data has: their file would be read beyond its end."""
    taken = file_ranges(path).get(opened.session.inputs[0].name)
    if taken is None or not np.issubdtype(samples.dtype, np.integer):
        return
    largest = max(int(inputs.max()) for _, inputs in samples.batches(ID_BATCH))
    if largest >= taken.below:
        raise InputError(
            f"{opened.name} embeds {taken.below} ids, and its data has ids up to {largest}",
            hint="give weights that were trained on ids of the shipped tokenizer, or leave `checkpoint` out",
        )


def outputs_of(
    opened: OpenedModel, samples: Samples, batch: int, threads: int = 1, judged: int = 0
) -> Iterator[tuple[slice, npt.NDArray[Any]]]:
    """Runs each sample once. Of each batch: which samples, and the output for them. `judged`: the place of that output.
    Raises InputError where the model takes no such batch."""
    specs = {spec.name: spec for spec in opened.session.inputs}
    first = opened.session.inputs[0]
    first.resolved(batch, next(iter(samples.shape), 0), opened.name)
    for chosen, inputs in samples.feeds(first.name, batch, threads):
        fed = {name: array.astype(specs[name].dtype) for name, array in inputs.items()}
        output = opened.session.run(fed)[judged]
        kept = chosen.stop - chosen.start
        yield chosen, output[:kept] if np.ndim(output) and len(output) == batch else output


def _table(scored: TaskScores, samples: Samples, unit: str) -> dict[str, npt.NDArray[Any]]:
    """One row a unit. Images have had ids of their own name since the first files."""
    named = {"image_id" if unit == IMAGE else "unit_id": np.array(samples.ids)}
    grouped = {} if samples.groups is None else {"group": np.array(samples.groups)}
    return {**named, **grouped, **scored.columns}
