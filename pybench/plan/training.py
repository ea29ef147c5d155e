# SPDX-License-Identifier: Apache-2.0
"""What cannot be trained, whatever the machine: batches that have no equal parts, norms without a spread.

And what nothing has trained, although its outputs are to be scored.
"""

from __future__ import annotations

from dataclasses import dataclass

from pybench.case import Case
from pybench.case.data import has_random_weights, trained_here
from pybench.catalogue.catalogue import Catalogue
from pybench.catalogue.data_sets import DATA_SETS, SYNTHETIC
from pybench.catalogue.models import Model


@dataclass(frozen=True, slots=True)
class Untrainable:
    """Why a case cannot be trained.

    factor: the one to change
    what: what is wrong
    hint: what to use instead
    """

    factor: str
    what: str
    hint: str


def untrainable(case: Case) -> Untrainable | None:
    """What does not fit in a case that trains, or whose weights are trained beforehand; None: all does."""
    if not case.workload_row.uses("training"):
        return _of_weights(case) or _of_scores(case)
    return _of_parts(case) or _of_norms(case) or _of_weights(case)


def trainable_models(data_set: str, catalogue: Catalogue) -> str:
    """Names of the models that `checkpoint: DATA_SET` trains, for a hint."""
    return ", ".join(name for name, model in catalogue.models.items() if is_trained_on(model, data_set))


def is_trained_on(model: Model, data_set: str) -> bool:
    """Whether `checkpoint: DATA_SET` trains a model."""
    return model.images_to_train is not None if data_set == SYNTHETIC else model.judged_on == data_set


def _of_weights(case: Case) -> Untrainable | None:
    """Whether weights that are trained beforehand can be trained in the precision that is asked for."""
    trained_on = trained_here(case)
    if case.trained_in is None or trained_on is None or case.trained_in in DATA_SETS[trained_on].trains_in:
        return None
    others = " or ".join(name for name, row in DATA_SETS.items() if case.trained_in in row.trains_in)
    what = f"weights that are trained on {trained_on} are not trained in {case.trained_in}"
    return Untrainable("trained_in", what, f"leave `trained_in` out; what is trained on {others} takes it")


def _of_scores(case: Case) -> Untrainable | None:
    """Random weights get no score: it would depend on the seed alone, and so would its loss in a lower precision. How
    far a precision moves the outputs is measured by `infer`, whatever the weights."""
    if not (case.workload_row.by_task and has_random_weights(case)):
        return None
    row = case.model_row
    trains = row is not None and row.images_to_train is not None
    what = f"workload {case.workload} needs trained weights, and those of {case.model} are random"
    by_training = f"use `checkpoint: {SYNTHETIC}`, which trains it, or a file of weights"
    return Untrainable("checkpoint", what, by_training if trains else "give `checkpoint` weights of this model")


def _of_parts(case: Case) -> Untrainable | None:
    if case.batch % case.accumulation == 0:
        return None
    return Untrainable(
        "accumulation",
        f"`accumulation` {case.accumulation} does not divide a batch of {case.batch}",
        "the batch is what one step of the optimiser sees, and each part has batch / accumulation samples",
    )


def _of_norms(case: Case) -> Untrainable | None:
    """Every batch norm needs two values of a channel in training: one has no spread."""
    row, part = case.model_row, case.batch // case.accumulation
    if row is None or row.normalised_values(part) != 1:
        return None
    return Untrainable(
        "accumulation" if case.accumulation > 1 else "batch",
        f"the last batch norm of {row.name} sees one value of each channel: {part} image of "
        f"{row.shape[-2]}x{row.shape[-1]} in a part of the batch",
        f"use at least 2 images in a part, or images larger than {row.norm_stride}x{row.norm_stride}",
    )
