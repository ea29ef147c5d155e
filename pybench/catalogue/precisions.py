# SPDX-License-Identifier: Apache-2.0
"""The numeric contracts that a case may ask for, and the number types that they multiply in."""

from __future__ import annotations

from dataclasses import dataclass

from pybench.catalogue.rows import Rows


@dataclass(frozen=True, slots=True)
class NumberType:
    """A type of numbers. `capability`: NVIDIA's compute capability from which on a GPU multiplies in it; 0: any."""

    name: str
    capability: float = 0.0


@dataclass(frozen=True, slots=True)
class Precision:
    """One numeric contract.

    `multiplies`: the types of convolutions and matrix products, the claimed one first.
    `floating`: the type of everything that is not quantised; of `tf32` it is `fp32`, in which its tensors are stored.
    `quantised`: the type of what is quantised; None: nothing is.
    `autocast`: weights stay in FP32, and torch casts at each operator; this is how models train.
    `weights_alone`: only weights have the quantised type, and nothing is multiplied in it.
    """

    name: str
    multiplies: tuple[str, ...]
    floating: str
    quantised: str | None = None
    autocast: bool = False
    weights_alone: bool = False


_TYPES = (
    NumberType("fp32"),
    NumberType("tf32", capability=8.0),  # Ampere: the first tensor cores with TF32 and BF16
    NumberType("fp16"),
    NumberType("bf16", capability=8.0),
    NumberType("int8"),
    NumberType("fp8", capability=8.9),  # Ada
)

_PRECISIONS = (
    Precision("fp32", ("fp32",), floating="fp32"),
    Precision("tf32", ("tf32",), floating="fp32"),
    Precision("fp16", ("fp16",), floating="fp16"),
    Precision("bf16", ("bf16",), floating="bf16"),
    Precision("int8", ("int8",), floating="fp32", quantised="int8"),
    Precision("fp8", ("fp8",), floating="fp32", quantised="fp8"),
    Precision("int8+fp16", ("int8", "fp16"), floating="fp16", quantised="int8"),
    Precision("int8+bf16", ("int8", "bf16"), floating="bf16", quantised="int8"),
    Precision("fp8+fp16", ("fp8", "fp16"), floating="fp16", quantised="fp8"),
    Precision("fp8+bf16", ("fp8", "bf16"), floating="bf16", quantised="fp8"),
    Precision("int4", ("fp32",), floating="fp32", quantised="int4", weights_alone=True),
    Precision("amp-fp16", ("fp16",), floating="fp16", autocast=True),
    Precision("amp-bf16", ("bf16",), floating="bf16", autocast=True),
)

NUMBER_TYPES = Rows("type of numbers", _TYPES)
PRECISIONS = Rows("precision", _PRECISIONS)


def quantised_type(precision: str) -> str | None:
    """`int8`, `int4` or `fp8`: what a precision's convolutions and matrix products read; None: it is not quantised."""
    return PRECISIONS[precision].quantised


def floating_type(precision: str) -> str:
    """What a precision computes in where it is not quantised: `fp32` (also of `tf32`), `fp16` or `bf16`."""
    return PRECISIONS[precision].floating


def allows_tf32(precision: str) -> bool:
    """Whether FP32 is multiplied in TF32: what the switches of torch, TensorRT and onnxruntime are set to."""
    return "tf32" in PRECISIONS[precision].multiplies


def is_single(precision: str) -> bool:
    """Whether everything is stored in FP32, so that TF32 is what tells two of such precisions apart."""
    row = PRECISIONS[precision]
    return row.floating == "fp32" and row.quantised is None


def missing_type(precision: str, capability: float) -> NumberType | None:
    """The first type of a precision that a GPU of this compute capability does not multiply in; None: it has all."""
    types = (NUMBER_TYPES[name] for name in PRECISIONS[precision].multiplies)
    return next((kind for kind in types if capability < kind.capability), None)
