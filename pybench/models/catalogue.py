# SPDX-License-Identifier: Apache-2.0
"""What is known of each built-in model without building it: its kind, its input, its classes.

Imports no framework: an onnxruntime case asks this file what to feed, and never torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pybench.case import LONGEST_SEQUENCE

# Ids of the shipped tokenizer; TinyLM embeds as many unless a larger vocabulary is asked for.
VOCABULARY = 32_000
# Longest sequence that TinyLM has learned positions for.
POSITIONS = LONGEST_SEQUENCE


@dataclass(frozen=True, slots=True)
class Description:
    """One built-in model. `input_shape`: without the batch dimension; empty for language models, whose one further
    dimension is `seq_len`. `outputs`: classes, or the vocabulary."""

    name: str
    kind: Literal["image", "language"]
    input_name: str
    input_shape: tuple[int, ...]
    outputs: int


_LIST = (
    Description("resnet50", "image", "images", (3, 224, 224), 1000),
    Description("digits-cnn", "image", "images", (1, 8, 8), 10),
    Description("tinylm-small", "language", "ids", (), VOCABULARY),
    Description("tinylm-large", "language", "ids", (), VOCABULARY),
)

BUILT_IN: dict[str, Description] = {description.name: description for description in _LIST}


def is_language(model: str | None) -> bool:
    """Whether a model is a built-in language model; a user's ONNX file is told apart by its input's type instead."""
    return model in BUILT_IN and BUILT_IN[model].kind == "language"
