# SPDX-License-Identifier: Apache-2.0
"""scikit-learn's digits, read from the file inside the installed package without importing it (which costs seconds)."""

from __future__ import annotations

import gzip
import importlib.util
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pybench.case.factors import DIGITS_SIZE
from pybench.catalogue.causes import Cause
from pybench.errors import InputError, UnsupportedError
from pybench.models.images.collection import Images, Shape
from pybench.models.samples import Split

DIGITS_SHAPE: Shape = (1, DIGITS_SIZE, DIGITS_SIZE)
# Every fourth image judges, the others train: no random generator whose stream could change between versions.
DIGITS_VALIDATION_STRIDE = 4


def read_digits(split: Split) -> Images:
    """scikit-learn's 1,797 grey 8x8 digits, values in [0, 1]: 450 judge, 1,347 train."""
    table = _digits_table()
    numbers = np.arange(len(table))
    judges = numbers % DIGITS_VALIDATION_STRIDE == 0
    chosen = numbers[judges if split == "validation" else ~judges]
    pixels = (table[chosen, :64] / 16).astype(np.float32).reshape(-1, *DIGITS_SHAPE)  # 17 grey levels, 0 to 16
    return Images(
        tuple(f"{number:04d}" for number in chosen),
        table[chosen, 64].astype(np.int64),
        tuple(str(digit) for digit in range(10)),
        DIGITS_SHAPE,
        lambda indices: pixels[indices],
    )


def _digits_table() -> npt.NDArray[np.int64]:
    spec = importlib.util.find_spec("sklearn")
    if spec is None or spec.origin is None:
        raise UnsupportedError(
            "the digits are part of scikit-learn, which is not installed",
            code=Cause.NO_PACKAGE,
            names=("digits",),
            hint="install pybench-campaign[digits]",
        )
    path = Path(spec.origin).parent / "datasets" / "data" / "digits.csv.gz"
    try:
        with gzip.open(path, "rt", encoding="ascii") as file:
            table: npt.NDArray[np.int64] = np.loadtxt(file, delimiter=",", dtype=np.int64)
    except (OSError, EOFError, ValueError) as error:
        raise InputError(
            f"{path} is not scikit-learn's table of digits ({error})", hint="reinstall scikit-learn"
        ) from error
    return table
