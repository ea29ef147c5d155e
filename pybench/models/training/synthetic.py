# SPDX-License-Identifier: Apache-2.0
"""Training of an image model on synthetic-100: every image is drawn anew where the model trains, and seen once.

SGD with Nesterov's momentum, one cycle of the learning rate (linear up, linear down; Smith 2017), and smoothed labels
(Szegedy et al. 2015). The last batch norm of a residual block starts at zero, and the rate is in proportion to the
batch (Goyal et al. 2017, arXiv:1706.02677). On a GPU under bfloat16 autocast, unless told otherwise, and channels last.
No augmentation: the images do not repeat. Fast, not bit-reproducible on a GPU, where sums have no fixed order: the
checkpoint is what is kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from pybench.catalogue.data_sets import SYNTHETIC
from pybench.catalogue.models import Model
from pybench.models.building import build
from pybench.models.images.normalisation import mean_and_deviation
from pybench.models.images.rendering import render
from pybench.models.images.synthetic import CLASSES, DIFFICULTY, VALIDATION_IMAGES, ceiling, draw_scenes
from pybench.models.training.mixed import MixedPrecision
from pybench.models.training.trained import Trained, device_name, training_device

Shape = tuple[int, int, int]

JUDGED_TOGETHER = 250  # validation images a batch
MOMENTUM = 0.9
GRADIENT_NORM = 5.0  # above it a step is shortened: the first steps of a deep network without it sometimes diverge


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """How long and how fast.

    images: seen in all
    rate: the highest learning rate, of 256 images a step
    warm_up: share of the steps in which the rate rises
    limit_s: ends earlier, with the cycle squeezed into it
    """

    images: int
    batch: int = 256
    rate: float = 0.4
    weight_decay: float = 5e-5
    smoothing: float = 0.05
    warm_up: float = 0.15
    limit_s: float | None = None
    precision: str | None = None  # None: the usual one of the device
    difficulty: float = DIFFICULTY

    def progress(self, seen: int, elapsed_s: float) -> float:
        """The share of the course that is behind, by images or by time, whichever is further; from 1 on it is over."""
        if seen >= self.images:
            return 1.0
        return max(seen / self.images, elapsed_s / self.limit_s if self.limit_s else 0.0)


def course_of(row: Model, images: int, precision: str | None = None) -> TrainingSettings:
    """What a model is trained with."""
    return TrainingSettings(images, batch=row.training_batch, rate=row.training_rate, precision=precision)


def course_with_rounding(row: Model, images: int) -> TrainingSettings:
    """What trained weights are trained on with, so that they get used to INT8.

    A tenth of the images at a twentieth of the rate, without autocast, whose eight bits of mantissa are another
    rounding."""
    course = course_of(row, images // 10)
    return replace(course, rate=course.rate / 20, precision="fp32")


def train_on_synthetic(row: Model, parameters: Mapping[str, Any]) -> Trained:
    """The model trained on as many images as `parameters` say, on the first GPU. What a GPU trains is not
    bit-reproducible, so its file is what a campaign keeps."""
    seed, device = parameters["seed"], training_device(row, SYNTHETIC)
    channels, height, width = row.shape
    model = build(row, seed=seed, outputs=CLASSES)
    course = course_of(row, parameters["images"], parameters.get("trained_in"))
    seen = train(model, (channels, height, width), course, seed, device)
    top1_percent = judge(model, (channels, height, width), device)
    labels = {"device": device_name(device), "images": seen, "ceiling_percent": round(100 * ceiling(), 2)}
    return Trained(model, {"top1_percent": top1_percent}, VALIDATION_IMAGES, labels)


@dataclass(frozen=True, slots=True)
class TrainingStep:
    """One step done: its number, images seen so far, loss in nats, share of the cycle done, seconds since the start."""

    number: int
    images: int
    loss: Tensor
    progress: float
    elapsed_s: float


def train(
    model: nn.Module,
    shape: Shape,
    course: TrainingSettings,
    seed: int,
    device: torch.device,
    watch: Callable[[TrainingStep], None] | None = None,
) -> int:
    """Trains in place, leaves the model on `device` in evaluation mode and returns how many images it saw.

    `seed`: which images of the endless training split; `watch`: called after each step (its loss is still on the
    device: reading it waits).
    """
    _start_residuals_at_zero(model)
    layout = torch.channels_last if device.type == "cuda" else torch.contiguous_format
    model.to(device=device, memory_format=layout).train()  # type: ignore[call-overload]
    peak = course.rate * course.batch / 256
    optimiser = torch.optim.SGD(_groups(model, course.weight_decay), lr=peak, momentum=MOMENTUM, nesterov=True)
    mixed = MixedPrecision(course.precision, device)
    seen, begin_s = 0, time.monotonic()
    for number, (images, labels) in enumerate(_endless(shape, course, seed, device)):
        elapsed_s = time.monotonic() - begin_s
        progress = course.progress(seen, elapsed_s)
        if progress >= 1:
            break
        rate = peak * min(progress / course.warm_up, (1 - progress) / (1 - course.warm_up))
        for group in optimiser.param_groups:
            group["lr"] = max(rate, 1e-4 * peak)
        with mixed.casts():
            loss = functional.cross_entropy(
                model(images.contiguous(memory_format=layout)), labels, label_smoothing=course.smoothing
            )
        optimiser.zero_grad(set_to_none=True)
        mixed.backward(loss)
        mixed.step(optimiser, model.parameters(), GRADIENT_NORM)
        seen += len(labels)
        if watch is not None:
            watch(TrainingStep(number, seen, loss.detach(), progress, elapsed_s))
    model.eval()
    return seen


def judge(
    model: nn.Module,
    shape: Shape,
    device: torch.device,
    images: int = VALIDATION_IMAGES,
    difficulty: float = DIFFICULTY,
) -> float:
    """Top-1 in percent on the first validation images, in FP32 (in TF32 where the caller has left that on)."""
    hits = 0
    for start in range(0, images, JUDGED_TOGETHER):
        numbers = np.arange(start, min(start + JUDGED_TOGETHER, images))
        pixels, labels = draw_batch("validation", numbers, shape, device, difficulty)
        with torch.inference_mode():
            hits += int((model(pixels).argmax(1) == labels).sum())
    return 100 * hits / images


def draw_batch(
    split: str, numbers: npt.NDArray[np.int64], shape: Shape, device: torch.device, difficulty: float = DIFFICULTY
) -> tuple[Tensor, Tensor]:
    """(normalised images [N, C, H, W], labels int64 [N]) on the device."""
    scenes = draw_scenes(split, numbers, difficulty)
    channels, height, width = shape

    def place(values: npt.NDArray[np.generic]) -> Tensor:
        """Does not wait for the GPU, which may be at the last step: pageable memory is staged before this returns."""
        return torch.from_numpy(np.ascontiguousarray(values)).to(device, non_blocking=True)

    pixels: Tensor = render(scenes, height, width, torch, place)
    if channels == 1:
        pixels = torch.floor(pixels.sum(1, keepdim=True) / 3)  # whole numbers, as `generated.grey` has them
    pixels = pixels * (1 / 255)
    if channels != 1:
        mean, deviation = (torch.from_numpy(v).to(device).view(1, 3, 1, 1) for v in mean_and_deviation())
        pixels = (pixels - mean) / deviation
    return pixels, torch.from_numpy(scenes.labels).to(device)


def _endless(
    shape: Shape, course: TrainingSettings, seed: int, device: torch.device
) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches of images that no other seed sees (up to 2^32 images) and none of which is seen twice."""
    first = seed << 32
    while True:
        yield draw_batch("train", first + np.arange(course.batch), shape, device, course.difficulty)
        first += course.batch


def _groups(model: nn.Module, weight_decay: float) -> list[dict[str, object]]:
    """Biases and norms are not decayed."""
    parameters = list(model.parameters())
    return [
        {"params": [parameter for parameter in parameters if parameter.dim() > 1], "weight_decay": weight_decay},
        {"params": [parameter for parameter in parameters if parameter.dim() <= 1], "weight_decay": 0.0},
    ]


def _start_residuals_at_zero(model: nn.Module) -> None:
    for module in model.modules():
        last = getattr(module, "bn3", None)
        if isinstance(last, nn.BatchNorm2d) and hasattr(module, "downsample"):
            nn.init.zeros_(last.weight)
