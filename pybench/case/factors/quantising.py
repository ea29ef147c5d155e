# SPDX-License-Identifier: Apache-2.0
"""Factors of quantising a model."""

from __future__ import annotations

from dataclasses import dataclass

from pybench.case import idle
from pybench.case.factor import factor, quantising_factor
from pybench.case.factors.model import ModelFactors
from pybench.catalogue.quantisers import CALIBRATIONS, EXTENTS, GRANULARITIES, PLACEMENTS, QUANTISERS, SCHEMES


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantisingFactors(ModelFactors):
    """What the ranges, scales and rounding of a lower precision follow."""

    keep_fp32: str | None = quantising_factor(
        "text",
        None,
        "ONNX nodes that stay in FP32 in a lower precision: a regular expression that matches their whole names",
        idle.ALL_FP32,
        form="pattern",
        absent="none",
    )
    keep_error_max: float | None = quantising_factor(
        "number",
        None,
        "how large the signal error of int8 or fp8 may be: a search keeps as few ONNX nodes in FP32 as that needs",
        idle.NOT_QUANTISED,
        minimum=0.0001,
        maximum=1,
        hint="0.05 leaves outputs near those in FP32; 1 is an error as large as what the inputs change",
        absent="no search",
    )
    quantiser: str | None = quantising_factor(
        "choice",
        None,
        "which quantiser inserts the rounding; `qat` fine-tunes with it; `dynamic` finds ranges in each run; "
        "`weight-only`: only weights, in int8 or int4; `modelopt-autotune` measures where pairs pay",
        idle.NOT_QUANTISED,
        choices=tuple(QUANTISERS),
        absent="`pybench`, but `onnxruntime` for kernels of onnxruntime",
    )
    calibration: str = quantising_factor(
        "choice",
        "minmax",
        "how the ranges of int8 and fp8 are chosen from samples",
        idle.NOT_CALIBRATED,
        choices=CALIBRATIONS,
    )
    calibration_images: int = quantising_factor(
        "integer",
        100,
        "how many samples the ranges of int8 and fp8 are chosen from",
        idle.NOT_CALIBRATED,
        minimum=1,
    )
    scheme: str | None = quantising_factor(
        "choice",
        None,
        "whether ranges of int8 and int4 have a zero point: `symmetric` ones have none",
        idle.NOT_QUANTISED,
        choices=SCHEMES,
        absent="that of the runtime's kernels: `asymmetric` for onnxruntime on a CPU, else `symmetric`",
    )
    range: str = quantising_factor(
        "choice",
        "restricted",
        "which int8 codes a symmetric range uses: -127 to 127 (`restricted`), or -128, too (`full`)",
        idle.NOT_INT8,
        choices=EXTENTS,
    )
    granularity: str = quantising_factor(
        "choice",
        "channel",
        "how many scales a weight has: one for each output channel, or one for the tensor",
        idle.NOT_QUANTISED,
        choices=GRANULARITIES,
    )
    block_size: int = quantising_factor(
        "integer",
        32,
        "how many weights of an output channel share one scale, with `quantiser: weight-only`; a power of two",
        idle.NOT_STORED,
        minimum=16,
        maximum=256,
        step=16,
        hint="16, 32, 64, 128 or 256",
    )
    placement: str = factor(
        "choice",
        "fused",
        "where Q/DQ pairs stand: so that TensorRT fuses sums and means, too (`fused`), or only in front of each "
        "convolution and matrix product (`naive`)",
        "quantising",
        choices=PLACEMENTS,
        idle=idle.NOT_PLACED,
        follows=("precision",),
        answers=True,
    )
