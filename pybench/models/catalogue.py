# SPDX-License-Identifier: Apache-2.0
"""What is known of each built-in model without building it: its kind, its input, its classes.

Imports no framework: an onnxruntime case asks this file what to feed, and never torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pybench.factors import LONGEST_SEQUENCE

# Ids of the shipped tokenizer; TinyLM embeds as many unless a larger vocabulary is asked for.
VOCABULARY = 32_000
# Longest sequence that TinyLM has learned positions for.
POSITIONS = LONGEST_SEQUENCE["tinylm-small"]

Kind = Literal["image", "volume", "vector", "language", "encoder"]


@dataclass(frozen=True, slots=True)
class Description:
    """One built-in model. `kind`: what it takes; `language` continues text, `encoder` classifies a sequence of ids.
    `input_shape`: without the batch dimension; empty for models of ids, whose one further dimension is `seq_len`.
    `outputs`: classes as published, or the vocabulary; `vocabulary`: ids that may be fed, None where none are;
    `positions`: tokens of the longest sequence; `head`: the parameter whose first dimension is the number of classes.
    """

    name: str
    kind: Kind
    input_name: str
    input_shape: tuple[int, ...]
    outputs: int
    head: str
    vocabulary: int | None = None
    positions: int | None = None

    @property
    def takes_ids(self) -> bool:
        return self.vocabulary is not None


_LIST = (
    Description("resnet50", "image", "images", (3, 224, 224), 1000, "fc.weight"),
    Description("vgg16", "image", "images", (3, 224, 224), 1000, "classifier.6.weight"),
    Description("vgg16-cifar10", "image", "images", (3, 32, 32), 10, "classifier.weight"),
    Description("mobilenet-v1", "image", "images", (3, 224, 224), 1000, "classifier.weight"),
    Description("mobilenet-v2", "image", "images", (3, 224, 224), 1000, "classifier.1.weight"),
    Description("digits-cnn", "image", "images", (1, 8, 8), 10, "fc.weight"),
    Description("tinylm-small", "language", "ids", (), VOCABULARY, "head.weight", VOCABULARY, POSITIONS),
    Description("tinylm-large", "language", "ids", (), VOCABULARY, "head.weight", VOCABULARY, POSITIONS),
    Description("distilbert", "encoder", "ids", (), 2, "classifier.weight", 30_522, LONGEST_SEQUENCE["distilbert"]),
    Description("unet3d", "volume", "volumes", (1, 64, 64, 64), 3, "head.weight"),
    Description("mlp", "vector", "vectors", (64,), 10, "fc3.weight"),
)

BUILT_IN: dict[str, Description] = {description.name: description for description in _LIST}


def is_language(model: str | None) -> bool:
    """Whether a model is a built-in one that continues text; a user's ONNX file is told apart by its input instead."""
    return model in BUILT_IN and BUILT_IN[model].kind == "language"
