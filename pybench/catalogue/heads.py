# SPDX-License-Identifier: Apache-2.0
"""Heads of a shared vision backbone: a row for each kind, how they are dispatched, and their metrics' names.

The backbone is ViT-S/16 (Dosovitskiy et al. 2020; DINOv2's S has the same layers with patches of 14).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pybench.catalogue.rows import Rows

PATCH, WIDTH, LAYERS = 16, 384, 12
CLASSES = 1000
BOX = 5  # four coordinates and a score
TRUNK = "backbone"
MOST_HEADS = 6  # two of each kind; each number of a head has its own metrics

DISPATCHES = {
    "one-engine": "the backbone once, then the heads one after another, in one graph",
    "sequential": "a network for each head, with a backbone of its own, one after another",
    "streams": "the backbone once, then each head in a thread of its own, or on a stream of its own on a GPU",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadKind:
    """One kind of head.

    name: in words of tables
    build: `module:callable`, from the width of the features to a torch module
    position, sample: multiply-adds for one position (patch) of an image, and for an image, at the usual width
    """

    name: str
    build: str
    position: float = 0.0
    sample: float = 0.0


_QUARTER = WIDTH // 4

HEADS = Rows(
    "head",
    (
        HeadKind(
            name="depth",
            build="pybench.models.vit_heads:DepthHead",
            position=9 * WIDTH * _QUARTER + _QUARTER * PATCH**2,
        ),
        HeadKind(name="boxes", build="pybench.models.vit_heads:BoxHead", position=WIDTH**2 + WIDTH * BOX),
        HeadKind(name="classes", build="pybench.models.vit_heads:ClassHead", sample=WIDTH * CLASSES),
    ),
)


def heads_of(count: int) -> tuple[HeadKind, ...]:
    """The kinds of the first heads: depth, boxes, classes, depth, ..."""
    kinds = tuple(HEADS.values())
    return tuple(kinds[number % len(kinds)] for number in range(count))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelParts:
    """What a model falls into where its heads run apart from each other.

    trunk: the part that takes the model's input and whose one output the branches take
    branches: the part behind the trunk for each head, in their order; heads of one kind are one part
    arguments: of the model that the parts are cut from, so that they are the same for any number of heads
    """

    trunk: str
    branches: tuple[str, ...]
    arguments: Mapping[str, str | int]

    @property
    def names(self) -> tuple[str, ...]:
        """Every part once, the trunk first."""
        return (self.trunk, *dict.fromkeys(self.branches))


def role_of(part: str) -> str:
    """The role of the artefact that a part of a model is opened from."""
    return f"engine-{part}"


def vit_parts(arguments: Mapping[str, str | int]) -> ModelParts | None:
    """The backbone and the heads of a `vit-heads` in `dispatch: streams`; None: all of it is one graph."""
    if arguments["dispatch"] != "streams":
        return None
    heads = heads_of(int(arguments["heads"]))
    return ModelParts(
        trunk=TRUNK,
        branches=tuple(head.name for head in heads),
        arguments={"heads": len(HEADS), "dispatch": "streams"},
    )


def vit_multiply_adds(shape: Sequence[int], outputs: int, arguments: Mapping[str, str | int]) -> float:
    """Of one sample of shape [channels, height, width], by `heads` and `dispatch`."""
    positions = (shape[1] // PATCH) * (shape[2] // PATCH)
    layer = positions * (12 * WIDTH**2 + 2 * WIDTH * positions)
    backbone = positions * shape[0] * PATCH**2 * WIDTH + LAYERS * layer
    heads = heads_of(int(arguments["heads"]))
    passes = len(heads) if arguments["dispatch"] == "sequential" else 1
    return passes * backbone + sum(head.position * positions + head.sample for head in heads)


def rates_of(text: str) -> tuple[float, ...]:
    """`30,10` as numbers. Raises ValueError for another text, or a rate that is not above 0."""
    rates = tuple(float(part) for part in text.split(","))
    if not all(0 < rate < float("inf") for rate in rates):
        raise ValueError(f"{text!r} has a rate that is not above 0")
    return rates


def head_metrics(heads: int, has_deadlines: bool) -> tuple[str, ...]:
    """Names of the metrics of the first heads; heads with a rate have a deadline."""
    told = ("rate_per_s", "latency_p50_ms", "latency_p99_ms", *(("deadline_miss_ratio",) if has_deadlines else ()))
    return tuple(f"head{number}_{name}" for number in range(1, heads + 1) for name in told)
