# SPDX-License-Identifier: Apache-2.0
"""The pictures of a folder of class folders, read when they are asked for. Nothing is shuffled, augmented or
downloaded."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pybench.catalogue.preprocessing import USUAL, Preprocessing
from pybench.errors import InputError
from pybench.image_files.tree import read_tree
from pybench.models.images.collection import Images, Shape, one_by_one
from pybench.models.images.picture import read_picture
from pybench.models.samples import Split


def read_folder(root: Path, split: Split, shape: Shape, preprocessing: Preprocessing = USUAL) -> Images:
    """The pictures of a tree in its order. Raises InputError for what is none, and for models of other channels."""
    tree = read_tree(root, split)
    if shape[0] not in (1, 3):
        raise InputError(f"the model takes {shape[0]} channels; images have 1 (grey) or 3 (RGB)")
    return Images(
        tuple(path.relative_to(tree.base).as_posix() for _, path in tree.pictures),
        np.array([label for label, _ in tree.pictures], np.int64),
        tree.classes,
        shape,
        one_by_one(lambda i: read_picture(tree.pictures[i][1], shape, preprocessing)),
    )
