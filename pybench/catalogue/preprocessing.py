# SPDX-License-Identifier: Apache-2.0
"""What becomes of a picture before a model takes it: how much is cropped, how it is resized, how it is normalised.

The three are `crop_pct`, `interpolation`, `mean` and `std` of timm, and of torchvision's `ImageClassification`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from pybench.catalogue.rows import Rows

INTERPOLATIONS = ("bilinear", "bicubic")  # both with antialiasing


@dataclass(frozen=True, slots=True, kw_only=True)
class Normalisation:
    """What is taken from a pixel in [0, 1], and what it is divided by: red, green and blue.

    name: as plans name it
    meaning: whose it is, in a phrase
    """

    name: str
    meaning: str
    mean: tuple[float, float, float]
    deviation: tuple[float, float, float]


_ROWS = (
    Normalisation(
        name="imagenet",
        meaning="of ImageNet's pixels, as torchvision and most of timm",
        mean=(0.485, 0.456, 0.406),
        deviation=(0.229, 0.224, 0.225),
    ),
    Normalisation(
        name="half",
        meaning="to [-1, 1], as Inception, MobileNet V1 and many vision transformers of timm",
        mean=(0.5, 0.5, 0.5),
        deviation=(0.5, 0.5, 0.5),
    ),
    Normalisation(
        name="clip",
        meaning="of the pixels that CLIP was trained on",
        mean=(0.48145466, 0.4578275, 0.40821073),
        deviation=(0.26862954, 0.26130258, 0.27577711),
    ),
    Normalisation(
        name="cifar10",
        meaning="of the 50,000 images of CIFAR-10 that train",
        mean=(0.4914, 0.4822, 0.4465),
        deviation=(0.2470, 0.2435, 0.2616),
    ),
    Normalisation(
        name="none",
        meaning="stays in [0, 1]",
        mean=(0.0, 0.0, 0.0),
        deviation=(1.0, 1.0, 1.0),
    ),
)

NORMALISATIONS = Rows("normalisation", _ROWS)


@dataclass(frozen=True, slots=True)
class Preprocessing:
    """How a picture of a folder is read; without arguments as torchvision does for its first ImageNet weights.

    crop_share: side of the model's input over the shorter side of the resized picture, of which the centre is cropped
    interpolation: one of INTERPOLATIONS
    normalisation: name of a row, for RGB; grey stays in [0, 1]
    """

    crop_share: float = 0.875
    interpolation: str = "bilinear"
    normalisation: str = "imagenet"

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Preprocessing:
        """By the factors' names; what is absent is as usual."""
        return cls(**{each.name: values[each.name] for each in fields(cls) if each.name in values})

    def unusual(self) -> dict[str, Any]:
        """By the factors' names, what differs from the usual."""
        return {name: value for name, value in asdict(self).items() if value != getattr(USUAL, name)}


USUAL = Preprocessing()
