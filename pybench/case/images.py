# SPDX-License-Identifier: Apache-2.0
"""The images of a case: those that it names, or those that its weights were trained for."""

from __future__ import annotations

from pybench.case.case import Case
from pybench.case.factors import SYNTHETIC


def images_of(case: Case) -> str | None:
    """The images that a case is calibrated and judged on: those it names, or those that its weights were trained for;
    None: there are none."""
    return case.images or usual_images_of(case)


def usual_images_of(case: Case) -> str | None:
    """The images that follow from the model and its weights, whatever images the case names; None: there are none.

    Weights are trained on them here. Outputs are compared on them where nothing is calibrated, so that the images of a
    case make no other artefact.
    """
    row = case.model_row
    return SYNTHETIC if case.checkpoint == SYNTHETIC else None if row is None else row.trained_on
