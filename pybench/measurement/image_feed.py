# SPDX-License-Identifier: Apache-2.0
"""Batches of labelled images for training: read, decoded, resized and normalised while a model trains.

torch's DataLoader, as most trainings have it: `workers` processes, two batches each ahead, and on a GPU page-locked
memory, from which a batch is copied without waiting. With no workers the training process does all of this between
two steps. Images come in a shuffled order, epoch after epoch, so that a window has as many batches as it asks for; a
batch may be of two epochs. Leaves out augmentation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from pybench.case.data import preprocessing_of
from pybench.case.factors import is_built_in
from pybench.catalogue.cautions import Caution
from pybench.errors import InputError, PybenchError
from pybench.measure import monotonic_ns
from pybench.measure.quantity import Quantity
from pybench.measure.timing.clock import NANOSECONDS_PER_SECOND
from pybench.measurement.result import RunRequest
from pybench.models.images import Images, Shape, open_images

Batch = tuple[Tensor, Tensor]  # images, float32 [N, C, H, W], and labels, int64 [N]


class ImageFeed:
    """An endless stream of the images of a case that train. `images`: all of them; `wait_s`: how long batches were
    waited for so far. Enter it to start the processes. Raises InputError for images that cannot be read.
    """

    text_bytes = 0
    made = None

    def __init__(self, request: RunRequest, shape: Shape, kind: str) -> None:
        case = request.case
        name = case.images or ""
        source = name if is_built_in("images", name) else request.files["images"]
        self.images = open_images(source, "train", shape, preprocessing_of(case))
        self._wait_ns = 0
        self._place: Callable[[Tensor, Tensor], Batch] = lambda images, labels: (images, labels)
        order: Any = _shuffled(len(self.images), case.batch, request.seed)
        self._loader: DataLoader[Any] = DataLoader(
            _Labelled(self.images),
            batch_sampler=order,
            num_workers=case.workers or 0,
            collate_fn=lambda batch: batch,  # it comes in one piece
            pin_memory=kind == "cuda",
            generator=torch.Generator().manual_seed(request.seed),  # else it draws from the global one
        )
        self._batches: Iterator[Any] | None = None

    def __enter__(self) -> Self:
        self._batches = iter(self._loader)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._batches = None  # with its last reference the processes end

    def bring_to(self, place: Callable[[Tensor, Tensor], Batch]) -> None:
        """From now on batches are where this puts them, which may not wait for a GPU."""
        self._place = place

    def next(self) -> Batch:
        """The next batch."""
        if self._batches is None:
            raise RuntimeError("the feed was not entered")
        begin_ns = monotonic_ns()
        batch = next(self._batches)
        self._wait_ns += monotonic_ns() - begin_ns
        if isinstance(batch, _Refusal):
            raise InputError(batch.message, hint=batch.hint)
        images, labels = batch
        return self._place(images, labels)

    @property
    def wait_s(self) -> float:
        return self._wait_ns / NANOSECONDS_PER_SECOND

    def metrics(self) -> dict[str, Quantity]:
        """None but the wait."""
        return {}

    def cautions(self) -> list[Caution]:
        """None: images that train are read again in each epoch."""
        return []


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Why images could not be read, on its way to the process that trains: torch would wrap an error in a traceback."""

    message: str
    hint: str | None


class _Labelled(Dataset[Any]):
    """Images with their labels, a whole batch at a time."""

    def __init__(self, images: Images) -> None:
        self._images = images

    def __getitems__(self, indices: Sequence[int]) -> Batch | _Refusal:
        chosen = np.asarray(indices)
        try:
            pixels = self._images.load(chosen)
        except PybenchError as error:
            return _Refusal(error.message, error.hint)
        return torch.from_numpy(pixels), torch.from_numpy(self._images.labels[chosen])


def _shuffled(count: int, batch: int, seed: int) -> Iterator[npt.NDArray[np.int64]]:
    """Endless batches of the numbers below `count`: each once an epoch, in another order in each."""
    order, left = np.random.default_rng(seed), np.empty(0, np.int64)
    while True:
        while len(left) < batch:
            left = np.concatenate([left, order.permutation(count)])
        yield left[:batch]
        left = left[batch:]
