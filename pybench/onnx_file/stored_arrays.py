# SPDX-License-Identifier: Apache-2.0
"""Arrays of a user's .npz as inputs of a model: names, types, shapes and numbers, against what the model accepts.

Headers are read first, then numbers, piece by piece: integers have a range, and floats have to be finite. Nothing is
unpickled. Does not import numpy, which who reads a plan has not loaded. Source of the format: numpy.lib.format.
"""

from __future__ import annotations

import array
import ast
import math
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO

from pybench.errors import InputError
from pybench.onnx_file.graph import Value
from pybench.onnx_file.inputs import Misfit
from pybench.onnx_file.ranges import UNKNOWN, IntegerRange

FACTOR = "inputs"
_SUFFIX, _MAGIC = ".npy", b"\x93NUMPY"
_LONGEST_HEADER = 1 << 16  # bytes; a header of plain arrays has about a hundred
_PIECE_BYTES = 1 << 20
_LETTERS = {"f": "float", "i": "int", "u": "uint", "c": "complex", "V": "void"}
_CODES = {
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
}
_FLOATS = frozenset({"float16", "bfloat16", "float32", "float64"})
_BROKEN = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    EOFError,
    SyntaxError,
    struct.error,
    zlib.error,
    zipfile.BadZipFile,
    RuntimeError,
)
# How numpy stores what it has no type for: the raw 16 bits, as ml_dtypes writes them or as plain integers.
_STORED_AS = {"bfloat16": ("bfloat16", "void16", "uint16")}
_AS_NUMPY = "write it with numpy.savez, one array for each input"


@dataclass(frozen=True, slots=True)
class StoredArray:
    """`element`: numpy's word for the type, such as `float32`; `is_swapped`: its bytes are in the other order;
    `is_fortran`: the first index changes fastest."""

    element: str
    shape: tuple[int, ...]
    is_swapped: bool = False
    is_fortran: bool = False


def read_headers(path: Path) -> dict[str, StoredArray]:
    """Name -> type and shape of each array. Raises InputError for a file that is no .npz."""
    try:
        with zipfile.ZipFile(path) as archive:
            found = {}
            for entry in archive.namelist():
                with archive.open(entry) as file:
                    found[entry.removesuffix(_SUFFIX)] = _header(file)
            return found
    except _BROKEN as error:
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
            yield from out_of_range(path, value.name, stored[value.name], ranges.get(value.name, UNKNOWN))
        elif value.element in _FLOATS:
            yield from not_finite(path, value.name, stored[value.name], value.element)


def out_of_range(path: Path, name: str, stored: StoredArray, taken: IntegerRange) -> Iterator[Misfit]:
    """Integers that a node does not accept."""
    if not taken.node:
        return
    least, most, has_zero = extremes(path, name, stored)
    if not taken.accepts(least, most, has_zero=has_zero):
        zero = ", also 0" if has_zero and taken.least > 0 and least != 0 != most else ""
        what = f"{name} has numbers from {least} to {most}{zero}, and {taken.node} accepts {taken.accepted}"
        yield Misfit(what, "store numbers that it accepts", FACTOR)


def not_finite(
    path: Path, name: str, stored: StoredArray, element: str, *, can_be_mask: bool = True
) -> Iterator[Misfit]:
    """NaN and infinities, of which outputs mean nothing, and which change speed and power. `can_be_mask`: a negative
    infinity beside other numbers is accepted, which masks of attention have."""
    found = _count_floats(path, name, stored, element, *_content(path))
    is_mask = can_be_mask and found.below < found.numbers
    if found.nan or found.above or (found.below and not is_mask):
        counts = {"NaN": found.nan, "inf": found.above, "-inf": found.below}
        said = ", ".join(f"{number} {word}" for word, number in counts.items() if number)
        masks = "; -inf is accepted beside other numbers only, as in a mask" if can_be_mask else ""
        hint = f"store finite numbers{masks}"
        yield Misfit(f"{name} is not finite: of its {found.numbers} numbers are {said}", hint, FACTOR)


@dataclass(frozen=True, slots=True)
class FloatCounts:
    """How many numbers an array of floats has, and how many of them are NaN, infinity and negative infinity."""

    numbers: int
    nan: int
    above: int
    below: int


@lru_cache(maxsize=64)  # all cases of a plan ask about the same few files
def _count_floats(
    path: Path, name: str, stored: StoredArray, element: str, changed_ns: int, size_bytes: int
) -> FloatCounts:
    """`changed_ns` and `size_bytes` tell one content of the file from another. Raises InputError where it cannot be
    read."""
    numbers = nan = above = below = 0
    try:
        with zipfile.ZipFile(path) as archive, archive.open(name + _SUFFIX) as file:
            _header(file)
            while piece := file.read(_PIECE_BYTES):
                values = _floats(piece, element, stored.is_swapped)
                numbers += len(values)
                if not math.isfinite(sum(values)):  # quick: a sum of finite numbers is finite, or very large
                    nan += sum(map(math.isnan, values))
                    above += values.count(math.inf)
                    below += values.count(-math.inf)
    except _BROKEN as error:
        raise InputError(f"its array {name} cannot be read ({error})", hint=_AS_NUMPY) from error
    return FloatCounts(numbers, nan, above, below)


def _floats(piece: bytes, element: str, is_swapped: bool) -> array.array[float] | tuple[float, ...]:
    if element == "float16":  # which `array` does not have
        order = (">" if sys.byteorder == "little" else "<") if is_swapped else "="
        return struct.unpack(f"{order}{len(piece) // 2}e", piece)
    if element == "bfloat16":  # the upper half of a float32
        wide = bytearray(2 * len(piece))
        wide[2::4], wide[3::4] = piece[0::2], piece[1::2]
        piece = bytes(wide)
    values: array.array[float] = array.array("d" if element == "float64" else "f", piece)
    if is_swapped:
        values.byteswap()
    return values


def extremes(path: Path, name: str, stored: StoredArray) -> tuple[int, int, bool]:
    """The least and the greatest of an array of integers, and whether one of them is 0. Raises InputError where it
    cannot be read."""
    return _extremes(path, name, stored, *_content(path))


def count_distinct(path: Path, name: str, stored: StoredArray) -> int:
    """How many different elements an array has. Raises InputError where it cannot be read."""
    return _count_distinct(path, name, math.prod(stored.shape), *_content(path))


def count_zero_rows(path: Path, name: str, stored: StoredArray) -> int:
    """How many rows of an array of integers are zeros alone. Raises InputError where it cannot be read."""
    return _count_zero_rows(path, name, stored, *_content(path))


def _content(path: Path) -> tuple[int, int]:
    """What tells one content of a file from another: when it changed, and its size."""
    status = path.stat()
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=64)
def _count_distinct(path: Path, name: str, count: int, changed_ns: int, size_bytes: int) -> int:
    return len(set(_rows(path, name, count)))


@lru_cache(maxsize=64)
def _count_zero_rows(path: Path, name: str, stored: StoredArray, changed_ns: int, size_bytes: int) -> int:
    count = stored.shape[0]
    if not stored.is_fortran:
        return sum(row.count(0) == len(row) for row in _rows(path, name, count))
    (whole,) = _rows(path, name, 1)
    numbers = array.array(_CODES[stored.element], whole)
    return sum(row.count(0) == len(row) for row in (numbers[first::count] for first in range(count)))


def _rows(path: Path, name: str, count: int) -> Iterator[bytes]:
    """The bytes of each of `count` rows."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open(name + _SUFFIX) as file:
            _header(file)
            size = (archive.getinfo(name + _SUFFIX).file_size - file.tell()) // count
            for _ in range(count):
                yield file.read(size)
    except _BROKEN as error:
        raise InputError(f"its array {name} cannot be read ({error})", hint=_AS_NUMPY) from error


@lru_cache(maxsize=64)
def _extremes(path: Path, name: str, stored: StoredArray, changed_ns: int, size_bytes: int) -> tuple[int, int, bool]:
    least, most, has_zero = [], [], False
    try:
        with zipfile.ZipFile(path) as archive, archive.open(name + _SUFFIX) as file:
            _header(file)
            while piece := file.read(_PIECE_BYTES):
                numbers = array.array(_CODES[stored.element], piece)
                if stored.is_swapped:
                    numbers.byteswap()
                least.append(min(numbers))
                most.append(max(numbers))
                has_zero = has_zero or 0 in numbers
    except _BROKEN as error:
        raise InputError(f"its array {name} cannot be read ({error})", hint=_AS_NUMPY) from error
    if not least:
        raise InputError(f"its array {name} is empty", hint=_AS_NUMPY)
    return min(least), max(most), has_zero


def _hint(stored: Sequence[int], fed: Sequence[int]) -> str:
    if len(stored) == len(fed) and stored[1:] == fed[1:]:
        return f"set batch: {stored[0]}, or store {fed[0]} samples"
    return "store an array of that shape, or set batch, seq_len and shapes to those of the array"


def _sizes(shape: Sequence[int]) -> str:
    return f"[{', '.join(str(size) for size in shape)}]"


def _header(file: IO[bytes]) -> StoredArray:
    """The header of an .npy, which is a literal of Python; leaves the file at the first number."""
    beginning = file.read(len(_MAGIC) + 2)
    if beginning[: len(_MAGIC)] != _MAGIC:
        raise ValueError("an entry is no array")
    form = "<H" if beginning[len(_MAGIC)] == 1 else "<I"
    (length,) = struct.unpack(form, file.read(struct.calcsize(form)))
    if length > _LONGEST_HEADER:
        raise ValueError(f"a header of {length} bytes")
    header = ast.literal_eval(file.read(length).decode("utf-8").strip())
    description, shape = header["descr"], tuple(int(size) for size in header["shape"])
    if not isinstance(description, str):
        return StoredArray("a structure", shape)
    other = ">" if sys.byteorder == "little" else "<"
    is_fortran = bool(header["fortran_order"])
    return StoredArray(_element(description), shape, description.startswith(other), is_fortran)


def _element(description: str) -> str:
    """numpy's `<f4` as `float32`."""
    letter, size = description[1:2], description[2:]
    if letter == "b":
        return "bool"
    if letter not in _LETTERS or not size.isdecimal():
        return {"O": "object", "U": "text", "S": "text"}.get(letter, description)
    return f"{_LETTERS[letter]}{8 * int(size)}"
