# SPDX-License-Identifier: Apache-2.0
"""Models of torchvision: one input of images or clips at the size that its published weights were judged at.

Its models of segmentation return several tensors by name, of which `out` counts. Their published weights have a second
head that only training uses. Models of optical flow take two inputs, and those of detection return as many boxes as an
image has objects: neither can be exported, so they are refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import MethodType
from typing import Any

from torch import Tensor, nn
from torchvision import models

from pybench.errors import InputError
from pybench.models.zoo.build import Built, ModelRequest
from pybench.models.zoo.feeds import ModelInputs, image_feeds
from pybench.models.zoo.weights import load

FRAMES = 16  # of a clip: the published weights of its video models were trained on 16, but for one
_SECOND_HEAD = r"^aux_classifier\."
_REFUSED = {"detection": "returns as many boxes as an image has objects", "optical_flow": "takes two images at once"}
SIZE = 224  # where a model's weights do not say


def names() -> list[str]:
    return list(models.list_models())


def inputs(request: ModelRequest) -> ModelInputs:
    builder = models.get_model_builder(request.name)
    for part, what in _REFUSED.items():
        if part in builder.__module__.split("."):
            hint = "take a model of classification, segmentation or video"
            raise InputError(f"{request.model} {what}, which pybench cannot export", hint=hint)
    return image_feeds("images", _shape(request.name, builder))


def build(request: ModelRequest) -> Built:
    feeds = inputs(request)
    builder = models.get_model_builder(request.name)
    accepted = inspect.signature(builder).parameters
    # The backbone of a model of segmentation comes with published weights otherwise, which would be downloaded.
    without = {"weights_backbone": None} if "weights_backbone" in accepted else {}
    module: nn.Module = builder(weights=None, **without)
    classes = _other_classes(module, request.state or {})
    if classes is not None:
        module = builder(weights=None, num_classes=classes, **without)
    if request.state is not None:
        load(module, request.state, request.file, request.model, unused=(_SECOND_HEAD,))
    if "segmentation" in builder.__module__:
        module.forward = MethodType(_segmented(module.forward), module)
    return Built(module, feeds)


def _other_classes(module: nn.Module, state: Mapping[str, Tensor]) -> int | None:
    """How many classes the user's weights tell apart; None: as many as the module. Its last matrix has a row each."""
    name, own = [(name, tensor) for name, tensor in module.state_dict().items() if tensor.dim() > 1][-1]
    given = state.get(name)
    if given is None or given.shape == own.shape or given.shape[1:] != own.shape[1:]:
        return None
    return int(given.shape[0])


def _segmented(called: Callable[..., Mapping[str, Tensor]]) -> Callable[[nn.Module, Tensor], Tensor]:
    """The one tensor that counts. The module stays itself, so that names of weights stay, too."""

    def of_images(self: nn.Module, images: Tensor) -> Tensor:
        return called(images)["out"]

    return of_images


def _shape(name: str, builder: Any) -> tuple[int, ...]:
    """Of one sample: channels, frames in a model of video, height and width."""
    preset = models.get_model_weights(name).DEFAULT.transforms()
    crop = getattr(preset, "crop_size", None) or getattr(preset, "resize_size", None) or [SIZE]
    sizes = [crop, crop] if isinstance(crop, int) else list(crop)
    height, width = sizes if len(sizes) == 2 else (sizes[0], sizes[0])
    return (3, FRAMES, height, width) if "video" in builder.__module__ else (3, height, width)
