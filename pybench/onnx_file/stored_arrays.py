# SPDX-License-Identifier: Apache-2.0
"""Arrays of a user's .npz as inputs of a model: names, types, shapes and integers, against what the model accepts.

Headers are read first, and only integers are read whole: a range is checked on them. Nothing is unpickled.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pybench.errors import InputError
from pybench.onnx_file.graph import Value
from pybench.onnx_file.inputs import Misfit
from pybench.onnx_file.ranges import UNKNOWN, IntegerRange

FACTOR = "inputs"
_SUFFIX = ".npy"
# How numpy stores what it has no type for: the raw 16 bits, as ml_dtypes writes them or as plain integers.
_STORED_AS = {"bfloat16": ("bfloat16", "void16", "uint16")}
_AS_NUMPY = "write it with numpy.savez, one array for each input"


@dataclass(frozen=True, slots=True)
class StoredArray:
    """`element`: numpy's word for the type, such as `float32`."""

    element: str
    shape: tuple[int, ...]


def read_headers(path: Path) -> dict[str, StoredArray]:
    """Name -> type and shape of each array. Raises InputError for a file that is no .npz."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {_name(entry): _header(archive, entry) for entry in archive.namelist()}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise InputError(f"it is no .npz of numpy ({error})", hint=_AS_NUMPY) from error


def misfit_of_arrays(
    path: Path,
    inputs: Sequence[Value],
    shapes: Mapping[str, tuple[int, ...]],
    ranges: Mapping[str, IntegerRange],
) -> Misfit | None:
    """The first thing in a file that does not fit a model's inputs, or None. `shapes`: of the inputs, in this case;
    `ranges`: of the integers that are known."""
    try:
        stored = read_headers(path)
        return next(_misfits(path, stored, inputs, shapes, ranges), None)
    except InputError as error:
        return Misfit(error.message, error.hint or _AS_NUMPY, FACTOR)


def _misfits(
    path: Path,
    stored: Mapping[str, StoredArray],
    inputs: Sequence[Value],
    shapes: Mapping[str, tuple[int, ...]],
    ranges: Mapping[str, IntegerRange],
) -> Iterator[Misfit]:
    names = ", ".join(value.name for value in inputs)
    for value in inputs:
        if value.name not in stored:
            yield Misfit(f"it has no array {value.name}", f"the model's inputs are {names}", FACTOR)
    for name in stored:
        if name not in shapes:
            yield Misfit(f"the model has no input {name}", f"its inputs are {names}", FACTOR)
    for value in inputs:
        array = stored[value.name]
        if array.element not in _STORED_AS.get(value.element, (value.element,)):
            what = f"{value.name} is {array.element}, the model takes {value.element}"
            yield Misfit(what, f'store it as that: array.astype("{value.element}")', FACTOR)
        if array.shape != shapes[value.name]:
            what = f"{value.name} is {_sizes(array.shape)}, this case feeds {_sizes(shapes[value.name])}"
            yield Misfit(what, _hint(array.shape, shapes[value.name]), FACTOR)
    for value in inputs:
        if value.element.removeprefix("u").startswith("int"):
            yield from _outside(path, value.name, ranges.get(value.name, UNKNOWN))


def _outside(path: Path, name: str, taken: IntegerRange) -> Iterator[Misfit]:
    """Integers that a node does not accept. Negative ones count from the end of a table, as in numpy."""
    if not taken.node:
        return
    import numpy as np

    with np.load(path, allow_pickle=False) as archive:
        array = archive[name]
    least = taken.least if taken.least > 0 else -taken.below
    if array.size and not (least <= int(array.min()) and int(array.max()) < taken.below):
        found = f"{int(array.min())} to {int(array.max())}"
        what = f"{name} has numbers from {found}, and {taken.node} takes {taken.least} to {taken.below - 1}"
        yield Misfit(what, "store numbers within that range", FACTOR)


def _hint(stored: Sequence[int], fed: Sequence[int]) -> str:
    if len(stored) == len(fed) and stored[1:] == fed[1:]:
        return f"set batch: {stored[0]}, or store {fed[0]} samples"
    return "store an array of that shape, or set batch, seq_len and shapes to those of the array"


def _sizes(shape: Sequence[int]) -> str:
    return f"[{', '.join(str(size) for size in shape)}]"


def _name(entry: str) -> str:
    return entry.removesuffix(_SUFFIX)


def _header(archive: zipfile.ZipFile, entry: str) -> StoredArray:
    from numpy.lib import format as npy

    with archive.open(entry) as file:
        version = npy.read_magic(file)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read(file)
    return StoredArray(_element(dtype), tuple(shape))


def _element(dtype: Any) -> str:
    return f"void{8 * dtype.itemsize}" if dtype.kind == "V" and dtype.names is None else str(dtype.name)
