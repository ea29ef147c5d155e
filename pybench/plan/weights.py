# SPDX-License-Identifier: Apache-2.0
"""Whether weights can be stored as a plan asks: in blocks, with FP32 around them, in a model that has such weights."""

from __future__ import annotations

from collections.abc import Iterator

from pybench.case.factors import FACTORS
from pybench.catalogue.models import Model
from pybench.catalogue.precisions import floating_type


def weight_problems(block_size: int, precision: str, model: Model | None) -> Iterator[tuple[str, str, str]]:
    """Of each problem the factor that it is about, what is wrong, and a hint. `model`: None: not a built-in one."""
    if block_size & (block_size - 1):
        hint = str(FACTORS["block_size"].hint)
        yield "block_size", f"`block_size` takes a power of two, not {block_size}", f"use {hint}"
    around = floating_type(precision)
    if around != "fp32":
        what = f"weight-only leaves FP32 around the weights, and {precision} has {around} there"
        yield "precision", what, "use precision: int8 or int4"
    if model is not None and model.is_convolutional:
        what = (
            f"weight-only stores the weights of matrix products, and most weights of {model.name} are of convolutions"
        )
        yield "quantiser", what, "use another quantiser, or a model of linear layers such as distilbert"
