# SPDX-License-Identifier: Apache-2.0
"""Numbers, names and files as arguments: what is none of these is an ArgumentError that names the argument.

Left to themselves, Python and cffi would say in some line of this package that two types do not fit.
"""

from __future__ import annotations

import operator
from os import PathLike, fspath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pybench_tokenizer.errors import ArgumentError


def integer(name: str, value: object) -> int:
    """An int, or what stands for one, as numpy's integers do."""
    try:
        return operator.index(value)  # type: ignore[arg-type]  # what it takes is what is asked
    except TypeError as error:
        raise _type_error(name, value, "an int") from error


def bounded_integer(name: str, value: object, bits: int) -> int:
    """One of 0 to 2^bits - 1."""
    number = integer(name, value)
    if not 0 <= number < 2**bits:
        raise ArgumentError(f"{name} is {number}; 0 to 2^{bits} - 1 is possible")
    return number


def integers(name: str, values: object) -> NDArray[Any]:
    """An array in one dimension; of any type where it is empty."""
    try:
        given = np.asarray(values)
    except ValueError as error:  # lists of lists that are not equally long
        raise ArgumentError(f"{name} have to be integers in one dimension") from error
    if given.ndim != 1 or (given.size and given.dtype.kind not in "ui"):
        raise ArgumentError(f"{name} have to be integers in one dimension")
    return given


def name_bytes(name: str, value: object) -> bytes:
    """A str, which may be any: what is not known by that name is for the shared object to say."""
    if not isinstance(value, str):
        raise _type_error(name, value, "a str")
    return value.encode(errors="surrogatepass")


def path_text(name: str, value: object) -> str:
    """A str or a path as a str."""
    if not isinstance(value, (str, PathLike)):
        raise _type_error(name, value, "a str or a path")
    path = fspath(value)
    if not isinstance(path, str):
        raise _type_error(name, path, "a str or a path of str")
    return path


def _type_error(name: str, value: object, wanted: str) -> ArgumentError:
    return ArgumentError(f"{name} is of type {type(value).__name__}; it has to be {wanted}")
