# SPDX-License-Identifier: Apache-2.0
"""Models of torchvision: one input of images or clips at the size that its published weights were judged at.

Its models of segmentation return several tensors by name, of which `out` counts. Models that take more than one input,
or return lists of boxes, cannot be exported; the export says so.
"""

from __future__ import annotations

import inspect
from typing import Any

from torch import Tensor, nn
from torchvision import models

from pybench.models.zoo.build import Built, Wanted
from pybench.models.zoo.feeds import image_feeds

FRAMES = 16  # of a clip: the published weights of its video models were trained on 16, but for one
SIZE = 224  # where a model's weights do not say


def names() -> list[str]:
    return list(models.list_models())


def build(wanted: Wanted) -> Built:
    builder = models.get_model_builder(wanted.name)
    accepted = inspect.signature(builder).parameters
    # The backbone of a model of segmentation comes with published weights otherwise, which would be downloaded.
    without = {"weights_backbone": None} if "weights_backbone" in accepted else {}
    module: nn.Module = builder(weights=None, **without)
    if hasattr(module, "aux_logits"):  # a second head that only training uses
        module.eval()
    if "segmentation" in builder.__module__:
        module = _Segmented(module)
    return Built(module, image_feeds("images", _shape(wanted.name, builder)))


class _Segmented(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, images: Tensor) -> Tensor:
        out: Tensor = self.inner(images)["out"]
        return out


def _shape(name: str, builder: Any) -> tuple[int, ...]:
    """Of one sample: channels, frames in a model of video, height and width."""
    preset = models.get_model_weights(name).DEFAULT.transforms()
    crop = getattr(preset, "crop_size", None) or getattr(preset, "resize_size", None) or [SIZE]
    sizes = [crop, crop] if isinstance(crop, int) else list(crop)
    height, width = sizes if len(sizes) == 2 else (sizes[0], sizes[0])
    return (3, FRAMES, height, width) if "video" in builder.__module__ else (3, height, width)
