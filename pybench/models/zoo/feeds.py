# SPDX-License-Identifier: Apache-2.0
"""What a library's model is fed with. A file that is made of the model carries it, as no runtime could tell."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

KEY = "pybench.feeds"  # of the property of an ONNX file, and of the extra file of a program
LONGEST = 65_536  # of a batch, and of a sequence where the model states no other


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInput:
    """One input.

    name: as the library calls it
    shape: None where any size is taken: of the batch, and then of the sequence
    below: every integer that is fed is less; None: it takes numbers in the model's own type
    least: the least integer that is fed
    about: what restricts the integers, for people
    """

    name: str
    shape: tuple[int | None, ...]
    below: int | None = None
    least: int = 0
    about: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInputs:
    """The inputs of a model, in the order of its call. `longest`: of its sequences, in tokens."""

    inputs: tuple[ModelInput, ...]
    longest: int | None = None


def image_feeds(name: str, shape: tuple[int, ...]) -> ModelInputs:
    """One input of images, volumes or clips. `shape`: without the batch."""
    return ModelInputs(inputs=(ModelInput(name=name, shape=(None, *shape)),))


def feeds_to_text(feeds: ModelInputs) -> str:
    return json.dumps(asdict(feeds), sort_keys=True)


def feeds_from_text(text: str) -> ModelInputs:
    """The inverse of `feeds_to_text`."""
    stored = json.loads(text)
    inputs = tuple(ModelInput(**{**feed, "shape": tuple(feed["shape"])}) for feed in stored["inputs"])
    return ModelInputs(inputs=inputs, longest=stored["longest"])
