# SPDX-License-Identifier: Apache-2.0
"""CIFAR-10 in either of its own formats (Krizhevsky 2009, https://www.cs.toronto.edu/~kriz/cifar.html).

The binary version: data_batch_1.bin to data_batch_5.bin, test_batch.bin, batches.meta.txt. A record is one byte of
label and 3,072 of pixels: red, green and blue, each 32 rows of 32. These files are mapped, not read.
The Python version: the same names without .bin, pickled (`cifar_pickle`).

Images are resized whole to the model's input, bilinear, and normalised by CIFAR's own mean and deviation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pybench.errors import InputError
from pybench.image_files.layout import CIFAR_BINARY, CIFAR_PICKLED
from pybench.models.images import cifar_pickle
from pybench.models.images.collection import Images, Pixels, Shape, one_by_one, times
from pybench.models.images.normalisation import normalise
from pybench.models.samples import Split

SHAPE: Shape = (3, 32, 32)
IMAGE_BYTES = 3 * 32 * 32
RECORD_BYTES = 1 + IMAGE_BYTES
CLASSES = 10

Batch = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]  # pixels [n, 3072], labels [n]


@dataclass(frozen=True, slots=True)
class _Version:
    """One format: which files train and judge, which names the classes, and how a batch is read."""

    patterns: Mapping[str, str]
    names_file: str
    read_names: Callable[[Path], tuple[str, ...]]
    read: Callable[[Path], Batch]

    def files(self, root: Path, split: Split) -> list[Path]:
        return sorted(root.glob(self.patterns[split]))


def has_both(root: Path) -> bool:
    """Whether there are images that train beside those that judge."""
    return all(_version(root).files(root, split) for split in ("train", "validation"))


def read_cifar(root: Path, split: Split, shape: Shape) -> Images:
    """Images in the order of the files. A folder with one of the two splits serves both."""
    if shape[0] != 3:
        raise InputError(
            f"the images of {root} are RGB, the model takes {times(shape)}", hint="use a model of 3 channels"
        )
    version = _version(root)
    paths = version.files(root, split) or version.files(root, "validation") or version.files(root, "train")
    parts = [version.read(path) for path in paths]
    names = _names(root, version)
    for path, (_, found) in zip(paths, parts, strict=True):
        _check_labels(path, found, names)
    sizes = [len(found) for _, found in parts]
    of_file, in_file = np.repeat(np.arange(len(parts)), sizes), np.concatenate([np.arange(size) for size in sizes])
    ids = tuple(f"{paths[part].stem}/{number:05d}" for part, number in zip(of_file, in_file, strict=True))

    def read(i: int) -> Pixels:
        pixels, _ = parts[of_file[i]]
        return prepared(np.asarray(pixels[in_file[i]]).reshape(SHAPE), shape[1], shape[2])

    return Images(ids, np.concatenate([found for _, found in parts]), names, shape, one_by_one(read))


def prepared(image: npt.NDArray[np.uint8], height: int, width: int) -> Pixels:
    """uint8 [3, 32, 32], as float32 [3, height, width]."""
    rows: npt.NDArray[np.uint8] = np.ascontiguousarray(image.transpose(1, 2, 0))
    if rows.shape[:2] != (height, width):
        from PIL import Image

        rows = np.asarray(Image.fromarray(rows).resize((width, height), Image.Resampling.BILINEAR))
    return normalise(rows.astype(np.float32) / np.float32(255), "cifar10")


def _version(root: Path) -> _Version:
    """The format of a folder: the binary one where there are both."""
    return next((one for one in _VERSIONS if one.files(root, "train") or one.files(root, "validation")), _VERSIONS[0])


def _read_records(path: Path) -> Batch:
    size = path.stat().st_size
    if size == 0 or size % RECORD_BYTES:
        raise InputError(
            f"{path} is no batch of CIFAR-10: {size} bytes are no multiple of {RECORD_BYTES}",
            hint="unpack the binary version (cifar-10-binary.tar.gz) again",
        )
    records = np.memmap(path, np.uint8, "r").reshape(-1, RECORD_BYTES)
    return records[:, 1:], records[:, 0].astype(np.int64)


def _read_lines(path: Path) -> tuple[str, ...]:
    try:
        return tuple(path.read_text(encoding="utf-8").split())
    except UnicodeDecodeError as error:
        raise InputError(f"{path} names no classes ({error})", hint="one name a line") from error


def _names(root: Path, version: _Version) -> tuple[str, ...]:
    path = root / version.names_file
    return version.read_names(path) if path.is_file() else tuple(str(label) for label in range(CLASSES))


def _check_labels(path: Path, labels: npt.NDArray[np.int64], names: tuple[str, ...]) -> None:
    wrong = np.flatnonzero((labels < 0) | (labels >= len(names)))
    if len(wrong):
        raise InputError(
            f"{path} labels image {wrong[0]} with {labels[wrong[0]]}, and there are {len(names)} classes",
            hint=f"labels are 0 to {len(names) - 1}; unpack CIFAR-10 again",
        )


_VERSIONS = (
    _Version(CIFAR_BINARY, "batches.meta.txt", _read_lines, _read_records),
    _Version(
        CIFAR_PICKLED,
        "batches.meta",
        cifar_pickle.read_names,
        lambda path: cifar_pickle.read_batch(path, IMAGE_BYTES),
    ),
)
