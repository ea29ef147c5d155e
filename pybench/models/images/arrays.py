# SPDX-License-Identifier: Apache-2.0
"""Images in numpy's files: an .npz with `images` and `labels`, or a folder with images.npy and labels.npy (mapped).

`images`: uint8 or float32, [n, C, H, W] or [n, H, W, C] or, grey, [n, H, W]; `labels`: integers [n]. uint8 is treated
as any picture: [0, 1], and RGB normalised as ImageNet's. float32 is given to the model as it is: whoever stored it
has prepared it. A folder may hold train/ beside val/. Nothing is unpickled.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pybench.errors import InputError
from pybench.image_files.layout import ARRAYS_FILE, array_splits
from pybench.models.images.collection import Images, Shape, check_shape, model_input, one_by_one
from pybench.models.samples import Split

LABELS_FILE = "labels.npy"


def has_both(path: Path) -> bool:
    """Whether there are images that train beside those that judge."""
    return len(array_splits(path)) == 2


def read_arrays(path: Path, split: Split, shape: Shape) -> Images:
    """Images in the order stored; ids are their numbers. Raises InputError for arrays that are no labelled images."""
    base = array_splits(path).get(split, path) if has_both(path) else path
    stored, labels = _load(base)
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise InputError(
            f"{base}: labels are {labels.dtype} {list(labels.shape)}, not integers, one an image",
            hint="store int64 [n]",
        )
    if len(labels) == 0:
        raise InputError(f"{base} contains no images", hint="store images and as many labels")
    if labels.min() < 0:
        raise InputError(
            f"{base}: labels are integers from 0, and the smallest here is {labels.min()}",
            hint="number the classes in the order of the model's outputs",
        )
    if stored.dtype not in (np.uint8, np.float32) or stored.ndim not in (3, 4) or len(stored) != len(labels):
        raise InputError(
            f"{base}: images are {stored.dtype} {list(stored.shape)}, but there are {len(labels)} labels",
            hint="store uint8 or float32 [n, C, H, W]",
        )
    pixels = _channels_first(stored)
    check_shape(shape, (pixels.shape[1], pixels.shape[2], pixels.shape[3]), f"the images of {base}")

    def read(i: int) -> npt.NDArray[np.float32]:
        image = np.ascontiguousarray(pixels[i])
        if image.dtype == np.uint8:
            return model_input(image)
        if not np.isfinite(image).all():  # onnxruntime's calibration passes over NaN, and a score of NaN has no class
            raise InputError(f"{base}: image {i} contains numbers that are NaN or infinite")
        return image

    classes = tuple(str(label) for label in range(int(labels.max()) + 1))
    return Images(
        tuple(f"{i:06d}" for i in range(len(labels))), labels.astype(np.int64), classes, shape, one_by_one(read)
    )


def _load(path: Path) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    try:
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as archive:
                missing = {"images", "labels"} - set(archive.files)
                if missing:
                    raise InputError(
                        f"{path} contains no array `{min(missing)}`", hint="np.savez(path, images=..., labels=...)"
                    )
                return archive["images"], archive["labels"]
        images = np.load(path / ARRAYS_FILE, mmap_mode="r", allow_pickle=False)
        return images, np.load(path / LABELS_FILE, allow_pickle=False)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} contains no readable arrays ({error})", hint="store them again") from error


def _channels_first(stored: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if stored.ndim == 3:
        return stored[:, np.newaxis]
    return stored.transpose(0, 3, 1, 2) if stored.shape[3] in (1, 3) and stored.shape[1] not in (1, 3) else stored
