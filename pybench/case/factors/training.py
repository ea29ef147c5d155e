# SPDX-License-Identifier: Apache-2.0
"""Factors of training."""

from __future__ import annotations

from dataclasses import dataclass

from pybench.case.factor import factor
from pybench.case.factors.inputs import InputFactors

OPTIMISERS = ("adamw", "sgd")
MEMORY_FORMATS = CONTIGUOUS, CHANNELS_LAST = ("contiguous", "channels-last")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingFactors(InputFactors):
    """How a model is trained."""

    gradient_checkpointing: bool = factor(
        "boolean",
        False,
        "keep only the inputs of each block, and compute the rest again for the gradients",
        "blocks",
        answers=False,
    )
    accumulation: int = factor(
        "integer",
        1,
        "parts of the batch whose gradients are summed, one after the other, before the optimiser steps",
        "training",
        minimum=1,
        answers=False,
    )
    optimiser: str = factor(
        "choice",
        "adamw",
        "what changes the weights in training: AdamW, which has two numbers of state for each weight, or SGD with "
        "momentum, which has one",
        "training",
        choices=OPTIMISERS,
        answers=False,
    )
    memory_format: str | None = factor(
        "choice",
        None,
        "the order of an image's numbers in the memory of training: plane by plane, or pixel by pixel "
        "(`channels-last`)",
        "layout",
        choices=MEMORY_FORMATS,
        absent="`channels-last` on a GPU, `contiguous` on a CPU",
        answers=False,
    )
    fused_optimiser: bool | None = factor(
        "boolean",
        None,
        "one kernel for the whole optimiser; else several for each group of parameters, or on a CPU for each parameter",
        "training",
        absent="fused on a GPU",
        answers=False,
    )
    target_top1_percent: float | None = factor(
        "number",
        None,
        "Top-1 on held-out images, in percent, at which training ends",
        "fitting",
        minimum=0,
        maximum=100,
        absent="`fit` needs one",
        answers=False,
    )
    epochs_max: int = factor(
        "integer",
        50,
        "epochs after which training ends without having reached the accuracy",
        "fitting",
        minimum=1,
        answers=False,
    )
    learning_rate: float | None = factor(
        "number",
        None,
        "the step of the optimiser from the second epoch on; it rises evenly through the first",
        "fitting",
        minimum=1e-9,
        maximum=1000,
        absent="0.0003 for adamw, 0.01 for sgd",
        answers=False,
    )
