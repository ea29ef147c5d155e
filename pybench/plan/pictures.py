# SPDX-License-Identifier: Apache-2.0
"""Whether what a case asks of images can be done with the user's: preprocessing, and training to an accuracy."""

from __future__ import annotations

from pybench.case import Case
from pybench.case.data import preprocessing_of
from pybench.case.factors import is_idle
from pybench.catalogue.data_sets import DATA_SETS
from pybench.image_files.layout import array_splits, layout_of
from pybench.image_files.tree import count_training, has_splits
from pybench.plan.files import UserFiles

_OTHERS = {"arrays": "arrays, which are used as prepared", "cifar": "CIFAR-10's files, which are read in one way"}


def picture_problem(case: Case, files: UserFiles) -> tuple[str, str, str] | None:
    """The factor that means nothing there, what is there instead, and what to do; None: nothing is wrong."""
    asked = next((name for name in preprocessing_of(case).unusual() if not is_idle(name, case)), None)
    if asked is None or "images" not in dict(case.sources):
        return None
    stored = _OTHERS.get(layout_of(files.find("images", str(case.images)).path))
    if stored is None:
        return None
    what = f"`{asked}` is for pictures in class folders, and {case.images} contains {stored}"
    return asked, what, f"leave `{asked}` out"


def held_out_problem(case: Case, files: UserFiles) -> tuple[str, str, str] | None:
    """What keeps a training to an accuracy from its images, as of `picture_problem`.

    How many images arrays and CIFAR-10's files have, and which of the latter are held out, is for the run.
    """
    if not case.workload_row.fits or case.images is None:
        return None
    row, count = DATA_SETS.get(case.images), None
    if row is not None:
        count = row.trains
    elif "images" in dict(case.sources):
        path = files.find("images", case.images).path
        layout = layout_of(path)
        if (layout == "tree" and not has_splits(path)) or (layout == "arrays" and len(array_splits(path)) < 2):
            what = f"`images`: {case.images} has no images that are held out, so nothing would judge the training"
            return "images", what, "put images into train/ and val/, as ImageNet has them"
        count = count_training(path, case.batch) if layout == "tree" else None
    if count is not None and count < case.batch:
        what = f"`batch` {case.batch} is more than the {count} images of {case.images} that train"
        return "batch", what, f"use a `batch` of at most {count}"
    return None
