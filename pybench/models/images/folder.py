# SPDX-License-Identifier: Apache-2.0
"""A folder of class folders, as torchvision's ImageFolder reads it. Nothing is shuffled, augmented or downloaded."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from pybench.errors import InputError
from pybench.models.images.collection import Images, Shape, one_by_one
from pybench.models.images.picture import read_picture
from pybench.models.samples import Split

EXTENSIONS = frozenset({".bmp", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"})
CLASSES_FILE = "classes.txt"  # names of all classes that a model tells apart, one a line, in the order of its outputs


def has_splits(root: Path) -> bool:
    """Whether a folder is laid out as ImageNet is: `train` beside `val` (or `validation`, or `test`)."""
    return _split_folder(root, "train") is not None and _split_folder(root, "validation") is not None


def read_folder(root: Path, split: Split, shape: Shape) -> Images:
    """As torchvision's ImageFolder: `root/<class>/**/<image>`, classes sorted and numbered from 0, files sorted.

    With `train` beside `val` in `root`, `split` chooses between them; else both splits are the same images. Where
    `root` holds `classes.txt`, its lines number the classes instead: a part of ImageNet keeps ImageNet's numbers.
    """
    base = (_split_folder(root, split) if has_splits(root) else None) or root
    folders = _class_folders(base)
    names = _named_classes(root) or tuple(folder.name for folder in folders)
    if len(names) == 1:
        raise InputError(
            f"{base} has one class folder, {names[0]}, and images are told apart by two classes or more",
            hint=f"lay images out as folder/<class>/<image>, or name all classes in {CLASSES_FILE}",
        )
    strange = [folder.name for folder in folders if folder.name not in names]
    if strange:
        raise InputError(f"{root / CLASSES_FILE} does not name the folder {strange[0]}", hint="one name a line")
    paths = [(names.index(folder.name), path) for folder in folders for path in _image_files(folder)]
    if not paths:
        raise InputError(f"{base} contains no images", hint=f"known endings: {' '.join(sorted(EXTENSIONS))}")
    channels, height, width = shape
    if channels not in (1, 3):
        raise InputError(f"the model takes {channels} channels; images have 1 (grey) or 3 (RGB)")
    return Images(
        tuple(path.relative_to(base).as_posix() for _, path in paths),
        np.array([label for label, _ in paths], np.int64),
        names,
        shape,
        one_by_one(lambda i: read_picture(paths[i][1], channels, height, width)),
    )


def _named_classes(root: Path) -> tuple[str, ...]:
    try:
        lines = (root / CLASSES_FILE).read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{root / CLASSES_FILE} cannot be read ({error})") from error
    return tuple(line.strip() for line in lines if line.strip())


def _split_folder(root: Path, split: Split) -> Path | None:
    names = ("train",) if split == "train" else ("val", "validation", "test")
    return next((root / name for name in names if (root / name).is_dir()), None)


def _class_folders(root: Path) -> list[Path]:
    try:
        folders = sorted(entry for entry in root.iterdir() if entry.is_dir())
    except OSError as error:
        raise InputError(f"{root} is not a readable folder ({error.strerror})") from error
    if not folders:
        raise InputError(f"{root} contains no class folders", hint="lay images out as folder/<class>/<image>")
    return folders


def _image_files(folder: Path) -> list[Path]:
    found = [Path(at) / name for at, _, names in os.walk(folder, followlinks=True) for name in names]
    return sorted(path for path in found if path.suffix.lower() in EXTENSIONS)
