# SPDX-License-Identifier: Apache-2.0
"""Models of timm: one input of images at the size of its default configuration, and the scores of its classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import timm
from timm.layers.config import set_fused_attn

from pybench.models.zoo.build import Built, ModelRequest
from pybench.models.zoo.feeds import ModelInputs, image_feeds
from pybench.models.zoo.weights import load


def names() -> list[str]:
    return list(timm.list_models())


def inputs(request: ModelRequest) -> ModelInputs:
    configuration: Any = timm.get_pretrained_cfg(request.name)
    return _images(configuration.to_dict())


def build(request: ModelRequest) -> Built:
    set_fused_attn(request.fused)
    module: Any = timm.create_model(request.name, pretrained=False, **_classes(request))
    if request.state is not None:
        load(module, request.state, request.file, request.model)
    return Built(module, _images(module.pretrained_cfg))


def _images(configuration: Mapping[str, Any]) -> ModelInputs:
    return image_feeds("images", tuple(configuration["input_size"]))


def _classes(request: ModelRequest) -> Mapping[str, Any]:
    """The number of classes that the user's weights tell apart; nothing where they do not say."""
    heads = timm.get_pretrained_cfg(request.name, allow_unregistered=True)
    named = None if heads is None else heads.classifier
    head = named[0] if isinstance(named, tuple) else named  # a distilled model has two, of the same classes
    weight = (request.state or {}).get(f"{head}.weight")
    return {} if weight is None else {"num_classes": int(weight.shape[0])}
