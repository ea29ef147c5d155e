# SPDX-License-Identifier: Apache-2.0
"""Labelled images in a fixed order, by where they come from. Each kind of source is a module.

`digits` (scikit-learn's), `synthetic-100` (generated), an ImageFolder tree, CIFAR-10's own files, numpy's files.
Nothing is shuffled, augmented or downloaded, and no source imports a framework.
"""

from __future__ import annotations

from pathlib import Path

from pybench.catalogue.data_sets import SYNTHETIC
from pybench.catalogue.preprocessing import USUAL, Preprocessing
from pybench.image_files import tree
from pybench.image_files.layout import layout_of
from pybench.models.images import arrays, cifar, collection, folder
from pybench.models.images.collection import Images, Shape
from pybench.models.images.digits import DIGITS_SHAPE, read_digits
from pybench.models.images.generated import open_synthetic
from pybench.models.samples import Split

__all__ = ["Images", "Shape", "has_splits", "open_images"]


def open_images(source: str | Path, split: Split, shape: Shape, preprocessing: Preprocessing = USUAL) -> Images:
    """`digits`, `synthetic-100`, or a path. `shape` is what the model takes; raises InputError where the images cannot
    give it. `preprocessing`: of class folders, whose pictures have other sizes; a plan asks for none elsewhere."""
    if source == "digits":
        collection.check_shape(shape, DIGITS_SHAPE, "the digits")
        return read_digits(split)
    if source == SYNTHETIC:
        return open_synthetic(split, shape)
    path = Path(source)
    layout = layout_of(path)
    if layout == "tree":
        return folder.read_folder(path, split, shape, preprocessing)
    return {"arrays": arrays.read_arrays, "cifar": cifar.read_cifar}[layout](path, split, shape)


def has_splits(path: Path) -> bool:
    """Whether a user's images that train are others than those that judge."""
    splits = {"arrays": arrays.has_both, "cifar": cifar.has_both, "tree": tree.has_splits}
    return splits[layout_of(path)](path)
