# SPDX-License-Identifier: Apache-2.0
"""How images are laid out in a path, told by the names of its files: arrays, CIFAR-10's batches, or class folders.

The first that fits counts, so a picture that is next to arrays or batches is no image of the set.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

Layout = Literal["arrays", "cifar", "tree"]

ARRAYS_FILE = "images.npy"
SPLITS = {"train": ("train",), "validation": ("val", "validation", "test", "valid")}  # their folders
CIFAR_BINARY = {"train": "data_batch_*.bin", "validation": "test_batch*.bin"}
CIFAR_PICKLED = {"train": "data_batch_[0-9]", "validation": "test_batch"}


def layout_of(path: Path) -> Layout:
    """Whatever is neither arrays nor batches is taken for class folders."""
    if path.suffix == ".npz" or (path / ARRAYS_FILE).is_file() or array_splits(path):
        return "arrays"
    patterns = (*CIFAR_BINARY.values(), *CIFAR_PICKLED.values())
    return "cifar" if any(any(path.glob(pattern)) for pattern in patterns) else "tree"


def array_splits(path: Path) -> dict[str, Path]:
    """Those of the splits that have a folder of arrays of their own."""
    found = {}
    for split, names in SPLITS.items():
        folder = next((path / name for name in names if (path / name / ARRAYS_FILE).is_file()), None)
        if folder is not None:
            found[split] = folder
    return found
