# SPDX-License-Identifier: Apache-2.0
"""CIFAR-10's binary version: a folder with data_batch_1.bin to data_batch_5.bin, test_batch.bin, batches.meta.txt.

A record is one byte of label and 3,072 of pixels: red, green and blue, each 32 rows of 32 (Krizhevsky 2009,
https://www.cs.toronto.edu/~kriz/cifar.html). The files are mapped, not read. CIFAR's own means are not used: models
are given ImageNet's normalisation here, as with every other set.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from pybench.errors import InputError
from pybench.models.images.collection import Images, Shape, Split, check_shape, model_input, one_by_one

SHAPE: Shape = (3, 32, 32)
RECORD_BYTES = 1 + 3 * 32 * 32
NAMES_FILE = "batches.meta.txt"
_PATTERNS = {"train": "data_batch_*.bin", "validation": "test_batch*.bin"}


def is_cifar(root: Path) -> bool:
    """Whether a folder holds batches of CIFAR's binary version."""
    return any(next(root.glob(pattern), None) is not None for pattern in _PATTERNS.values())


def has_both(root: Path) -> bool:
    """Whether there are images that train beside those that judge."""
    return all(next(root.glob(pattern), None) is not None for pattern in _PATTERNS.values())


def read_cifar(root: Path, split: Split, shape: Shape) -> Images:
    """Images in the order of the files. A folder with one of the two splits serves both."""
    check_shape(shape, SHAPE, f"the images of {root}")
    paths = sorted(root.glob(_PATTERNS[split])) or sorted(path for p in _PATTERNS.values() for path in root.glob(p))
    parts = [_map(path) for path in paths]
    labels = np.concatenate([part[:, 0] for part in parts]).astype(np.int64)
    names = _names(root, labels)
    of_file = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    in_file = np.concatenate([np.arange(len(part)) for part in parts])
    ids = tuple(f"{paths[part].stem}/{number:05d}" for part, number in zip(of_file, in_file, strict=True))

    def read(i: int) -> npt.NDArray[np.float32]:
        return model_input(np.asarray(parts[of_file[i]][in_file[i], 1:]).reshape(SHAPE))

    return Images(ids, labels, names, shape, one_by_one(read))


def _map(path: Path) -> npt.NDArray[np.uint8]:
    size = path.stat().st_size
    if size == 0 or size % RECORD_BYTES:
        raise InputError(f"{path} is no batch of CIFAR-10: {size} bytes are no multiple of {RECORD_BYTES}",
                         hint="unpack the binary version (cifar-10-binary.tar.gz) again")  # fmt: skip
    return np.memmap(path, np.uint8, "r").reshape(-1, RECORD_BYTES)


def _names(root: Path, labels: npt.NDArray[np.int64]) -> tuple[str, ...]:
    try:
        lines = (root / NAMES_FILE).read_text(encoding="utf-8").split()
    except FileNotFoundError:
        lines = [str(label) for label in range(10)]
    if labels.max() >= len(lines):
        raise InputError(f"{root} labels an image {labels.max()}, and {NAMES_FILE} names {len(lines)} classes")
    return tuple(lines)
