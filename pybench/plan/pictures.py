# SPDX-License-Identifier: Apache-2.0
"""Whether what a case asks of pictures is asked of a folder of pictures."""

from __future__ import annotations

from pybench.case import Case
from pybench.case.data import preprocessing_of
from pybench.case.factors import is_idle
from pybench.image_files.layout import layout_of
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
