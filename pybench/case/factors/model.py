# SPDX-License-Identifier: Apache-2.0
"""Factors of what is measured: the model, its weights, what executes it and in which number types."""

from __future__ import annotations

from dataclasses import dataclass, field

from pybench.case import idle
from pybench.case.factor import factor
from pybench.catalogue.data_sets import TRAINED_IN, TRAINED_ON
from pybench.catalogue.models import MODELS
from pybench.catalogue.precisions import PRECISIONS
from pybench.catalogue.runtimes import RUNTIMES
from pybench.catalogue.workloads import WORKLOADS


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFactors:
    """What is measured."""

    workload: str = field(
        metadata={
            "kind": "choice",
            "meaning": "what is measured",
            "choices": tuple(WORKLOADS),
            "rows": "workloads",
            "answers": False,
        }
    )
    model: str | None = factor(
        "file",
        None,
        "a built-in model, one of a library (`timm/NAME`, `torchvision/NAME`, `hf/TYPE`), a folder with a config.json, "
        "or the path of your own ONNX file",
        "model",
        choices=tuple(MODELS),
        rows="models",
        absent="no model",
        answers=True,
    )
    shapes: str | None = factor(
        "text",
        None,
        "sizes of free dimensions of your own ONNX file, as in `{image: {height: [224, 384]}}`",
        "file",
        form="sizes",
        absent="the file leaves no dimension free but batch and sequence",
        answers=True,
        sets_work=True,
    )
    fixed_batch: int | None = factor(
        "integer",
        None,
        "the batch that your own ONNX file is fixed at, where `batch` is another: the file is then rewritten, and both "
        "are run to check that; pybench sets it",
        "file",
        minimum=1,
        absent="the file takes the batch as it is",
        idle=idle.BATCH_AS_IT_IS,
        follows=("batch",),
        answers=False,
    )
    checkpoint: str | None = factor(
        "file",
        None,
        "weights: a file of torch or safetensors, for a model of a library also a folder of these, or a built-in data "
        "set to train a built-in model on first",
        "model",
        choices=TRAINED_ON,
        absent="random weights, or those that the model is trained to here",
        idle=idle.NOT_COMPUTED,
        follows=("runtime",),
        answers=True,
    )
    trained_in: str | None = factor(
        "choice",
        None,
        "precision in which pybench trains the weights before the runs: FP32, or automatic mixed precision",
        "model",
        choices=TRAINED_IN,
        absent="the digits in `fp32`; other data in `amp-bf16` on a GPU, else in `fp32`",
        idle=idle.NOT_TRAINED,
        follows=("checkpoint",),
        answers=True,
    )
    training_seed: int = factor(
        "integer",
        0,
        "which training of the weights, where they are trained beforehand: its initial weights and order of data",
        "model",
        minimum=0,
        maximum=1_000_000,
        idle=idle.NOT_TRAINED,
        follows=("checkpoint",),
        answers=True,
    )
    runtime: str | None = factor(
        "choice",
        None,
        "what executes the model",
        "model",
        choices=tuple(RUNTIMES),
        rows="runtimes",
        idle=idle.NOT_EXECUTED,
        answers=True,
    )
    precision: str = factor(
        "choice",
        "fp32",
        "the number types that the model computes in",
        "model",
        choices=tuple(PRECISIONS),
        idle=idle.NOT_COMPUTED,
        follows=("runtime",),
        fixed_by="computes_in",
        answers=True,
    )
    environment: str | None = factor(
        "text",
        None,
        "which of the plan's `environments` makes and runs the case: an interpreter or a container image with packages "
        "of its own, such as other versions of a runtime",
        absent="the environment of pybench itself",
        hint="a name of `environments`",
        answers=True,
    )
