# SPDX-License-Identifier: Apache-2.0
"""The data of a case: arrays or images that it names, or what its weights are trained and judged on; and the task.

Labelled arrays are a file of the user's. Images are named by a path or by a built-in name; everything else is a
built-in data set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybench.catalogue.data_sets import DATA_SETS, DataSet, arrays_row
from pybench.catalogue.preprocessing import Preprocessing
from pybench.catalogue.tasks import CLASSIFICATION, TASKS, Task

if TYPE_CHECKING:
    from pybench.case.case import Case


def data_of(case: Case) -> str | None:
    """What a case is calibrated and judged on: samples that it names, or what its weights were trained for; None: there
    is nothing."""
    return case.data or case.images or usual_data_of(case)


def content_of(case: Case) -> str | None:
    """The sha256 of the samples that it names; None: they are built in, or there are none."""
    return dict(case.sources).get("images" if case.data is None else "data")


def preprocessing_of(case: Case) -> Preprocessing:
    """How the pictures of its folder are read."""
    return Preprocessing(case.crop_share, case.interpolation, case.normalisation)


def usual_data_of(case: Case) -> str | None:
    """What follows from the model and its weights, whatever images the case names; None: there is nothing.

    Weights are trained on it here. Outputs are compared on it where nothing is calibrated, so that the images of a case
    make no other artefact.
    """
    row = case.model_row
    if case.checkpoint in DATA_SETS:
        return case.checkpoint
    if row is None:
        return None
    return row.trained_on or (row.judged_on if case.workload_row.by_task else None)


def trained_here(case: Case) -> str | None:
    """What the weights of a case are trained on before it runs; None: they are random, or a file of the user's."""
    if case.workload_row.trains and case.checkpoint is None:
        return None  # it begins with random weights
    is_file = case.checkpoint is not None and case.checkpoint not in DATA_SETS
    return None if case.model_row is None or is_file else usual_data_of(case)


def has_random_weights(case: Case) -> bool:
    """Whether the case runs a network that nothing has trained. An ONNX file of the user's has weights of its own."""
    is_solver = case.runtime_row is not None and case.runtime_row.computes_in is not None
    is_given = case.model is None or case.names_onnx or case.checkpoint is not None
    return not (is_given or is_solver) and trained_here(case) is None


def data_set_of(case: Case) -> DataSet | None:
    """The row of its data; None: images of the user's, or nothing."""
    if case.data is not None:
        return arrays_row(case.data, case.task or CLASSIFICATION.name)
    return DATA_SETS.get(data_of(case) or "")


def task_of(case: Case) -> Task | None:
    """What the outputs of a case are scored by; None: nothing scores them."""
    if not case.workload_row.by_task:
        return None
    row = data_set_of(case)
    return CLASSIFICATION if row is None else TASKS[row.task]
