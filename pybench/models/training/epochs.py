# SPDX-License-Identifier: Apache-2.0
"""Images for a training to an accuracy: those that train, epoch by epoch, and those that are held out and judge.

Stored images are read once and stay on the device, in another order in each epoch. Those of synthetic-100 are drawn on
the device when they are due, and none is seen twice. Nothing is augmented; the last images of an epoch that make no
whole batch are left out of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from pybench.catalogue.data_sets import SYNTHETIC
from pybench.catalogue.preprocessing import USUAL, Preprocessing
from pybench.errors import InputError
from pybench.models.images import Images, Shape, has_splits, open_images
from pybench.models.images.synthetic import CLASS_NAMES, TRAINING_IMAGES, VALIDATION_IMAGES
from pybench.models.training.synthetic import JUDGED_TOGETHER, draw_batch

Batch = tuple[Tensor, Tensor]  # images, float32 [N, C, H, W], and labels, int64 [N], on the device
_SEEDS = 2**30  # of synthetic-100: each has 2^32 images, and numbers of images are int64


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Images that judge, on the device: float32 [n, C, H, W], int64 [n]. `classes`: names, whose numbers are labels."""

    images: Tensor
    labels: Tensor
    classes: tuple[str, ...]

    def batches(self) -> Iterator[Batch]:
        """In their order; the last batch may be smaller."""
        pieces = -(-len(self.labels) // JUDGED_TOGETHER)
        return zip(self.images.chunk(pieces), self.labels.chunk(pieces), strict=True)


class Epochs(Protocol):
    """Images that train.

    classes: names, whose numbers are labels
    images: how many an epoch has, before whole batches are made of it
    """

    classes: tuple[str, ...]
    images: int

    def batches(self, batch: int) -> Iterator[Batch]:
        """Those of the next epoch."""
        ...


class StoredEpochs:
    """All images of a data set in each epoch. `seed`: of their orders."""

    def __init__(self, images: Images, seed: int, device: str) -> None:
        self.classes, self.images = images.classes, len(images)
        self._pixels = torch.from_numpy(images.load_all()).to(device)
        self._labels = torch.from_numpy(images.labels).to(device)
        self._orders = np.random.default_rng(seed)

    def batches(self, batch: int) -> Iterator[Batch]:
        order = torch.from_numpy(self._orders.permutation(self.images)).to(self._labels.device)
        for start in range(0, self.images - batch + 1, batch):
            chosen = order[start : start + batch]
            yield self._pixels[chosen], self._labels[chosen]


class DrawnEpochs:
    """Images of synthetic-100, drawn anew. `seed`: which of them."""

    classes = CLASS_NAMES
    images = TRAINING_IMAGES

    def __init__(self, shape: Shape, seed: int, device: str) -> None:
        self._shape, self._device = shape, torch.device(device)
        self._next = (seed % _SEEDS) << 32

    def batches(self, batch: int) -> Iterator[Batch]:
        for _ in range(self.images // batch):
            numbers = self._next + np.arange(batch)
            self._next += batch
            yield draw_batch("train", numbers, self._shape, self._device)


def open_epochs(
    source: str | Path, shape: Shape, seed: int, batch: int, device: str, preprocessing: Preprocessing = USUAL
) -> Epochs:
    """The images of `source` that train. Raises InputError where they are none but those that judge, or no batch."""
    if source == SYNTHETIC:
        epochs: Epochs = DrawnEpochs(shape, seed, device)
    else:
        if isinstance(source, Path) and not has_splits(source):
            raise InputError(
                f"{source} has no images that are held out, so nothing would judge the training",
                hint="put images into train/ and val/, as ImageNet has them",
            )
        epochs = StoredEpochs(open_images(source, "train", shape, preprocessing), seed, device)
    if epochs.images < batch:
        raise InputError(
            f"{source} has {epochs.images} images that train, which is less than a batch of {batch}",
            hint=f"use a `batch` of at most {epochs.images}",
        )
    return epochs


def open_held_out(
    source: str | Path, shape: Shape, limit: int | None, device: str, preprocessing: Preprocessing = USUAL
) -> HeldOut:
    """The images of `source` that judge, at most `limit` of them, evenly spaced over their order."""
    if source == SYNTHETIC:
        count = min(limit or VALIDATION_IMAGES, VALIDATION_IMAGES)
        numbers = np.arange(count) * VALIDATION_IMAGES // count
        drawn = [
            draw_batch("validation", numbers[start : start + JUDGED_TOGETHER], shape, torch.device(device))
            for start in range(0, count, JUDGED_TOGETHER)
        ]
        pixels, labels = (torch.cat(parts) for parts in zip(*drawn, strict=True))
        return HeldOut(pixels, labels, CLASS_NAMES)
    images = open_images(source, "validation", shape, preprocessing).limited(limit)
    pixels, labels = (torch.from_numpy(values).to(device) for values in (images.load_all(), images.labels))
    return HeldOut(pixels, labels, images.classes)


def check_classes(source: str | Path, epochs: Epochs, held_out: HeldOut) -> None:
    """Raises InputError where images that judge are of a class that no image trains: of stored arrays, whose labels
    number the classes. Images that judge may lack the last classes."""
    trains, judges = len(epochs.classes), len(held_out.classes)
    if judges > trains:
        raise InputError(
            f"class {judges - 1} of {source} is in the images that are held out, and not in those that train",
            hint="give both parts images of the same classes",
        )
