# SPDX-License-Identifier: Apache-2.0
"""Factors of sizes: of an iteration, and of the layers of a model."""

from __future__ import annotations

from dataclasses import dataclass

from pybench.case import idle
from pybench.case.factor import factor, shaping_factor
from pybench.case.factors.runtimes import RuntimeFactors
from pybench.catalogue.blocks import BLOCKS, WIDTH_STEP
from pybench.catalogue.heads import DISPATCHES, MOST_HEADS
from pybench.catalogue.models import SHORTEST_SEQUENCE

DIGITS_SIZE = 8  # height of the digits, which nothing resizes


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeFactors(RuntimeFactors):
    """Sizes of an iteration, and of the layers of a model."""

    batch: int = factor(
        "integer", 1, "samples in an iteration", "model", minimum=1, answers=False, sizes_iteration=True
    )
    image_size: int | None = factor(
        "integer",
        None,
        "height and width of the images of a built-in model; the layers of the model follow",
        "sizing",
        minimum=1,
        maximum=4096,
        absent="the model's own",
        answers=True,
        sets_work=True,
    )
    block_type: str = shaping_factor(
        "block_type",
        "choice",
        "conv",
        "the block that a `stack` repeats",
        choices=tuple(BLOCKS),
    )
    depth: int = shaping_factor("depth", "integer", 4, "how many blocks a `stack` has", minimum=1, maximum=256)
    width: int = shaping_factor(
        "width",
        "integer",
        64,
        "channels of each block of a `stack`",
        minimum=WIDTH_STEP,
        maximum=4096,
        step=WIDTH_STEP,
    )
    heads: int = shaping_factor(
        "heads",
        "integer",
        3,
        "how many heads `vit-heads` has: depth, boxes, classes, and the same again",
        minimum=1,
        maximum=MOST_HEADS,
    )
    dispatch: str = shaping_factor(
        "dispatch",
        "choice",
        "one-engine",
        "how the heads of `vit-heads` share the backbone, and how they run",
        choices=tuple(DISPATCHES),
    )
    head_rates_hz: str | None = factor(
        "text",
        None,
        "how often each head runs in a second, as in `30,10,5`; its deadline is one period after a frame's arrival",
        "arriving",
        form="rates",
        idle=idle.NO_HEADS,
        follows=("model",),
        absent="each head runs in each iteration, and has no deadline",
        answers=False,
        sets_work=True,
    )
    seq_len: int = factor(
        "integer",
        128,
        "tokens in a sample of a language model; in `generate`, its prompt",
        "tokens",
        idle=idle.NO_TOKENS,
        minimum=SHORTEST_SEQUENCE,
        answers=False,
        sets_work=True,
    )
    new_tokens: int = factor(
        "integer",
        64,
        "tokens that each prompt is continued by; the first ends the prefill, and no token ends a sample early",
        "generating",
        minimum=2,
        answers=False,
        sets_work=True,
    )
    temperature: float = factor(
        "number",
        0.0,
        "0: the likeliest token each time (greedy); else tokens are drawn, with a seed, after logits are divided by it",
        "generating",
        minimum=0,
        answers=False,
    )
