# SPDX-License-Identifier: Apache-2.0
"""Models of timm: one input of images at the size of its default configuration, and the scores of its classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import timm
from timm.layers.config import set_fused_attn

from pybench.models.zoo.build import Built, Wanted
from pybench.models.zoo.feeds import ModelInputs, image_feeds
from pybench.models.zoo.weights import load


def names() -> list[str]:
    return list(timm.list_models())


def inputs(wanted: Wanted) -> ModelInputs:
    configuration: Any = timm.get_pretrained_cfg(wanted.name)
    return _images(configuration.to_dict())


def build(wanted: Wanted) -> Built:
    set_fused_attn(wanted.fused)
    module: Any = timm.create_model(wanted.name, pretrained=False, **_classes(wanted))
    if wanted.state is not None:
        load(module, wanted.state, wanted.file, wanted.model)
    return Built(module, _images(module.pretrained_cfg))


def _images(configuration: Mapping[str, Any]) -> ModelInputs:
    return image_feeds("images", tuple(configuration["input_size"]))


def _classes(wanted: Wanted) -> Mapping[str, Any]:
    """The number of classes that the user's weights tell apart; nothing where they do not say."""
    heads = timm.get_pretrained_cfg(wanted.name, allow_unregistered=True)
    named = None if heads is None else heads.classifier
    head = named[0] if isinstance(named, tuple) else named  # a distilled model has two, of the same classes
    weight = (wanted.state or {}).get(f"{head}.weight")
    return {} if weight is None else {"num_classes": int(weight.shape[0])}
