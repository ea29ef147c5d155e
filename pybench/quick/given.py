# SPDX-License-Identifier: Apache-2.0
"""Arrays that a user gives to `quick`: they say the batch, the sequence and every free size."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pybench.errors import InputError
from pybench.onnx_file.graph import Value
from pybench.onnx_file.inputs import factor_of, has_sequence
from pybench.onnx_file.stored_arrays import read_headers


@dataclass(frozen=True, slots=True)
class GivenArrays:
    """A file of arrays, and what their shapes say of a model's free dimensions.

    named: as the plan names it, a path relative to the plan's folder
    batch: the leading dimension
    seq_len: the second dimension of ids; None: the model takes none
    sizes: of other free dimensions, `INPUT.DIM` -> size
    """

    named: str
    file: Path
    batch: int
    seq_len: int | None
    sizes: Mapping[str, int]


def read_given(path: Path, plan_folder: Path, inputs: Sequence[Value]) -> GivenArrays:
    """What a file says. Raises InputError for one that is no .npz, or has an empty array.

    Whether it fits is judged with everything else.
    """
    if not path.exists():
        raise InputError(f"--input {path}: no such file", hint="give an .npz of numpy, with one array for each input")
    try:
        stored = read_headers(path)
    except InputError as error:
        raise InputError(f"--input {path}: {error.message}", hint=error.hint) from error
    for name, array in stored.items():
        if 0 in array.shape:
            raise InputError(
                f"--input {path}: its array `{name}` has no values, but the shape {array.shape}",
                hint="give at least one sample of each input",
            )
    batch, seq_len = 1, None
    sizes: dict[str, int] = {}
    for value in reversed(inputs):  # the first input decides
        shape = value.shape or ()
        found = stored[value.name].shape if value.name in stored else ()
        if not found or len(found) != len(shape):
            continue
        batch = found[0]
        if has_sequence(inputs, value):
            seq_len = found[1]
        free = {f"{value.name}.{size or place}": place for place, size in enumerate(shape) if not isinstance(size, int)}
        sizes |= {key: found[place] for key, place in free.items() if factor_of(inputs, key) is None}
    named = os.path.relpath(path.absolute(), plan_folder.absolute())
    return GivenArrays(named, path, batch, seq_len, sizes)
