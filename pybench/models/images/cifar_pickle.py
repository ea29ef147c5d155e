# SPDX-License-Identifier: Apache-2.0
"""Pickled batches of CIFAR-10's Python version, read without running what a pickle may ask for.

Such a file is a dictionary that Python 2 pickled: `data`, uint8 [n, 3072], and `labels`, n integers
(https://www.cs.toronto.edu/~kriz/cifar.html). A pickle may name any function of any package. This reader knows the
three names that an array needs, puts its own plain objects in their place, and refuses every other name.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pybench.errors import InputError

_HINT = "unpack the Python version (cifar-10-python.tar.gz) again"
# What a file that is cut, damaged or hostile makes of the reader.
_UNREADABLE = (
    pickle.UnpicklingError,
    EOFError,
    OSError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    ImportError,
    OverflowError,
    MemoryError,
)


class _StoredType:
    """What stands for a numpy.dtype: its code, as `u1`."""

    def __init__(self, code: bytes | str, *_: object) -> None:
        self.code = code.decode("ascii") if isinstance(code, bytes) else code

    def __setstate__(self, state: object) -> None:
        """Byte order and the like, which a type of one byte has none of."""


class _PickledArray:
    """What stands for a numpy.ndarray: its state, as numpy pickles it."""

    def __init__(self, *_: object) -> None:
        self.shape: tuple[int, ...] = ()
        self.code, self.content = "", b""

    def __setstate__(self, state: tuple[int, tuple[int, ...], _StoredType, bool, bytes]) -> None:
        _, self.shape, kind, is_column_major, self.content = state
        self.code = "" if is_column_major else kind.code

    def as_bytes(self) -> npt.NDArray[np.uint8]:
        """uint8 of the shape stored. Raises ValueError for another type, or another number of bytes."""
        if self.code != "u1":
            raise ValueError("`data` is no array of uint8, row by row")
        return np.frombuffer(self.content, np.uint8).reshape(self.shape)


_KNOWN = {
    ("multiarray", "_reconstruct"): _PickledArray,
    ("numpy", "ndarray"): _PickledArray,
    ("numpy", "dtype"): _StoredType,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        short = "multiarray" if module in ("numpy.core.multiarray", "numpy._core.multiarray") else module
        if (short, name) not in _KNOWN:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return _KNOWN[short, name]


def read_batch(path: Path, pixels: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """(uint8 [n, pixels], labels int64 [n]) of one file. Raises InputError for what is no such batch."""
    stored = _read(path)
    try:
        data = stored["data"].as_bytes()
        labels = np.array(stored["labels"], np.int64)
    except _UNREADABLE as error:
        raise InputError(f"{path} is no batch of CIFAR-10 ({error})", hint=_HINT) from error
    if data.ndim != 2 or data.shape[1] != pixels or labels.shape != (len(data),) or len(data) == 0:
        what = f"`data` is {list(data.shape)} and `labels` {list(labels.shape)}, not [n, {pixels}] and [n]"
        raise InputError(f"{path} is no batch of CIFAR-10: {what}", hint=_HINT)
    return data, labels


def read_names(path: Path) -> tuple[str, ...]:
    """The names of the classes in `batches.meta`. Raises InputError."""
    try:
        return tuple(name if isinstance(name, str) else name.decode("utf-8") for name in _read(path)["label_names"])
    except _UNREADABLE as error:
        raise InputError(f"{path} names no classes ({error})", hint=_HINT) from error


def _read(path: Path) -> dict[str, Any]:
    """The dictionary in a file, by names: Python 2's are bytes."""
    try:
        with path.open("rb") as file:
            stored = _Unpickler(file, encoding="bytes").load()
        return {key if isinstance(key, str) else key.decode("utf-8"): value for key, value in stored.items()}
    except _UNREADABLE as error:
        raise InputError(f"{path} is not a readable batch of CIFAR-10 ({error})", hint=_HINT) from error
