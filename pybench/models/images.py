# SPDX-License-Identifier: Apache-2.0
"""Images with labels in a fixed order: scikit-learn's digits, or a folder of class folders (ImageFolder).

The digits are read from the file inside the installed scikit-learn, without importing it (that import costs seconds a
run). The folder's preprocessing is torchvision's of evaluation: shorter side to 256/224 of the model's input, bilinear
with antialiasing; centre crop; [0, 1]; ImageNet's mean and deviation. Nothing is shuffled, augmented or downloaded.
"""

from __future__ import annotations

import gzip
import importlib.util
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pybench.errors import InputError, UnsupportedError

Split = Literal["train", "validation"]
Shape = tuple[int, int, int]
Pixels = npt.NDArray[np.float32]

DIGITS_SHAPE: Shape = (1, 8, 8)
# Every fourth image judges, the others train: no random generator whose stream could change between versions.
DIGITS_VALIDATION_STRIDE = 4

EXTENSIONS = frozenset({".bmp", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"})
IMAGENET_MEAN = np.array([0.485, 0.456, 0.406], np.float32)
IMAGENET_DEVIATION = np.array([0.229, 0.224, 0.225], np.float32)
RESIZE_SHARE = 256 / 224  # of the crop's side; ImageNet's usual evaluation


@dataclass(frozen=True, slots=True)
class Images:
    """A data set. `ids[i]` is stable across runs and machines; `labels`: int64 [n], an index into `classes`;
    `shape`: of one image, channels first; `read(i)`: float32 of that shape."""

    ids: tuple[str, ...]
    labels: npt.NDArray[np.int64]
    classes: tuple[str, ...]
    shape: Shape
    read: Callable[[int], Pixels]

    def __len__(self) -> int:
        return len(self.ids)

    def limited(self, limit: int | None) -> Images:
        """At most `limit` images, evenly spaced over the order, so that a sorted folder keeps all of its classes."""
        if limit is None or limit >= len(self):
            return self
        chosen = np.arange(limit) * len(self) // limit
        read = self.read
        return Images(
            tuple(self.ids[i] for i in chosen),
            self.labels[chosen],
            self.classes,
            self.shape,
            lambda i: read(int(chosen[i])),
        )

    def batches(self, batch: int) -> Iterator[tuple[slice, Pixels]]:
        """(which images, float32 [batch, C, H, W]) in order; the last batch is filled up with zeros."""
        for start in range(0, len(self), batch):
            stop = min(start + batch, len(self))
            pixels = np.zeros((batch, *self.shape), np.float32)
            for i in range(start, stop):
                pixels[i - start] = self.read(i)
            yield slice(start, stop), pixels

    def load_all(self) -> Pixels:
        """float32 [n, C, H, W]."""
        return np.stack([self.read(i) for i in range(len(self))])


def open_images(source: str | Path, split: Split, shape: Shape) -> Images:
    """`digits`, or a folder. `shape` is what the model takes; raises InputError where the images cannot give it."""
    if source == "digits":
        if shape != DIGITS_SHAPE:
            raise InputError(
                f"the digits are 1x8x8 images, the model takes {_times(shape)}", hint="give `images` a folder"
            )
        return read_digits(split)
    return read_folder(Path(source), split, shape)


def read_digits(split: Split) -> Images:
    """scikit-learn's 1,797 grey 8x8 digits, values in [0, 1]: 450 judge, 1,347 train."""
    table = _digits_table()
    numbers = np.arange(len(table))
    judges = numbers % DIGITS_VALIDATION_STRIDE == 0
    chosen = numbers[judges if split == "validation" else ~judges]
    pixels = (table[chosen, :64] / 16).astype(np.float32).reshape(-1, *DIGITS_SHAPE)  # 17 grey levels, 0 to 16
    return Images(
        tuple(f"{number:04d}" for number in chosen),
        table[chosen, 64].astype(np.int64),
        tuple(str(digit) for digit in range(10)),
        DIGITS_SHAPE,
        lambda i: pixels[i],
    )


def _digits_table() -> npt.NDArray[np.int64]:
    spec = importlib.util.find_spec("sklearn")
    if spec is None or spec.origin is None:
        raise UnsupportedError("the digits are part of scikit-learn, which is not installed", code="no_digits",
                               hint="install pybench[digits]")  # fmt: skip
    path = Path(spec.origin).parent / "datasets" / "data" / "digits.csv.gz"
    try:
        with gzip.open(path, "rt", encoding="ascii") as file:
            table: npt.NDArray[np.int64] = np.loadtxt(file, delimiter=",", dtype=np.int64)
    except (OSError, EOFError, ValueError) as error:
        raise InputError(
            f"{path} is not scikit-learn's table of digits ({error})", hint="reinstall scikit-learn"
        ) from error
    return table


def has_splits(root: Path) -> bool:
    """Whether a folder is laid out as ImageNet is: `train` beside `val` (or `validation`, or `test`)."""
    return _split_folder(root, "train") is not None and _split_folder(root, "validation") is not None


def read_folder(root: Path, split: Split, shape: Shape) -> Images:
    """As torchvision's ImageFolder: `root/<class>/**/<image>`, classes sorted and numbered from 0, files sorted.

    With `train` beside `val` in `root`, `split` chooses between them; else both splits are the same images.
    """
    base = (_split_folder(root, split) if has_splits(root) else None) or root
    classes = _class_folders(base)
    paths = [(label, path) for label, folder in enumerate(classes) for path in _image_files(folder)]
    if not paths:
        raise InputError(f"{base} holds no images", hint=f"known endings: {' '.join(sorted(EXTENSIONS))}")
    channels, height, width = shape
    if channels not in (1, 3):
        raise InputError(f"the model takes {channels} channels; images have 1 (grey) or 3 (RGB)")
    return Images(
        tuple(path.relative_to(base).as_posix() for _, path in paths),
        np.array([label for label, _ in paths], np.int64),
        tuple(folder.name for folder in classes),
        shape,
        lambda i: read_image(paths[i][1], channels, height, width),
    )


def read_image(path: Path, channels: int, height: int, width: int) -> Pixels:
    """One file as float32 [channels, height, width]; grey images stay in [0, 1], RGB ones are normalised as ImageNet's.

    Raises InputError naming the file when it is missing, truncated, no image, or too large to be one.
    """
    from PIL import Image

    try:
        with Image.open(path) as file:
            image = file.convert("L" if channels == 1 else "RGB")
    except Image.DecompressionBombError as error:
        raise InputError(f"{path} is too large an image ({error})") from error
    except (OSError, SyntaxError, ValueError, EOFError) as error:  # PIL raises SyntaxError for a broken PNG
        raise InputError(f"{path} is not a readable image ({error})", hint="remove it or store it again") from error
    cropped = _resize_and_crop(image, height, width)
    values: Pixels = np.asarray(cropped, np.float32) / np.float32(255)
    if channels == 1:
        return values[np.newaxis]
    normalised: Pixels = (values - IMAGENET_MEAN) / IMAGENET_DEVIATION
    return np.ascontiguousarray(normalised.transpose(2, 0, 1))


def _resize_and_crop(image: Any, height: int, width: int) -> Any:
    from PIL import Image

    side = round(max(height, width) * RESIZE_SHARE)
    short, long = sorted(image.size)
    resized = side, int(side * long / short)  # as torchvision computes it: the longer side is cut off, not rounded
    image = image.resize(resized if image.width <= image.height else resized[::-1], Image.Resampling.BILINEAR)
    left, top = round((image.width - width) / 2), round((image.height - height) / 2)
    return image.crop((left, top, left + width, top + height))


def _split_folder(root: Path, split: Split) -> Path | None:
    names = ("train",) if split == "train" else ("val", "validation", "test")
    return next((root / name for name in names if (root / name).is_dir()), None)


def _class_folders(root: Path) -> list[Path]:
    try:
        folders = sorted(entry for entry in root.iterdir() if entry.is_dir())
    except OSError as error:
        raise InputError(f"{root} is not a readable folder ({error.strerror})") from error
    if not folders:
        raise InputError(f"{root} holds no class folders", hint="lay images out as folder/<class>/<image>")
    return folders


def _image_files(folder: Path) -> list[Path]:
    found = [Path(at) / name for at, _, names in os.walk(folder, followlinks=True) for name in names]
    return sorted(path for path in found if path.suffix.lower() in EXTENSIONS)


def _times(shape: Shape) -> str:
    return "x".join(str(size) for size in shape)
