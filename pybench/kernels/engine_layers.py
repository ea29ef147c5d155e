# SPDX-License-Identifier: Apache-2.0
"""The layers of a TensorRT engine, read from its inspector's JSON: what each one is, and what it multiplies in.

Source: `IEngineInspector.get_engine_information(LayerInformationFormat.JSON)` of an engine built with
`ProfilingVerbosity.DETAILED`; with less there are only names. TensorRT 10 writes `Format/Datatype` for a tensor, 11
writes `Datatype` beside `Format`; both are read. What a kernel multiplies in is told by its name: a TF32 kernel reads
and writes `Float` like an FP32 one. Where a kernel has no name that tells (fused attention, generated code), its
largest input does; FP32 and TF32 then stay undecided (`FLOATING`). Does not judge: `pybench.precision` does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

# multiplying: convolutions and matrix products. moving: kernels that only copy, transpose, or convert the type of a
# tensor. other: everything else that runs. nothing: no kernel stands behind it.
Kind = Literal["multiplying", "moving", "other", "nothing"]

FLOATING = "fp32_or_tf32"  # what a kernel on FP32 tensors multiplies in, when its name does not say
FLOAT_TYPES = frozenset({"fp32", "tf32", FLOATING})

# Words for types in datatypes and formats of tensors ("Half", "Row major linear FP16 format"); first match wins,
# because `BFloat16` holds `Float`.
_TENSOR_TYPES = (
    ("bf16", r"bfloat16|bf16"),
    ("fp16", r"half|fp16|float16"),
    ("fp8", r"fp8|float8|e4m3|e5m2"),
    ("fp4", r"fp4|float4|e2m1"),
    ("int8", r"\bint8"),
    ("int4", r"\bint4"),
    ("int32", r"\bint32"),
    ("int64", r"\bint64"),
    ("uint8", r"uint8"),
    ("bool", r"bool"),
    ("fp32", r"float|fp32"),
)

# Words for types in kernels' names, longest first.
_KERNEL_TYPES = {
    "bf16": "bf16", "tf32": "tf32", "e4m3": "fp8", "e5m2": "fp8", "e2m1": "fp4", "int8": "int8", "fp16": "fp16",
    "fp32": "fp32", "f16": "fp16", "f32": "fp32", "i32": "int32", "i8": "int8", "u8": "int8", "s8": "int8",
    "i4": "int4", "f8": "fp8",
}  # fmt: skip
_WORD = "(" + "|".join(_KERNEL_TYPES) + ")"
# sm90_xmma_gemm_i8f32_i8i32_f32_...: reads i8, writes f32; multiplies i8, accumulates i32; scales in f32.
_FOUR = re.compile(f"_{_WORD}{_WORD}_{_WORD}{_WORD}_{_WORD}(?=_|$)")
# sm80_xmma_fprop_wngd_f32f32_f32_f32_...: the third word is the accumulator, and it multiplies what it reads.
_THREE = re.compile(f"_{_WORD}{_WORD}_{_WORD}_{_WORD}(?=_|$)")
_ANY = re.compile(f"(?<![a-z]){_WORD}(?![0-9])|{_WORD}gemm", re.IGNORECASE)
_HASH = re.compile("0x[0-9a-f]+")  # of generated code: its digits may look like a type
# cuBLAS's, cuDNN's and cutlass's own: volta_fp32_icudnn_int8x4_... writes fp32 and multiplies int8, the word after the
# letter; cutlass_80_simt_sgemm_128x64_..., turing_h1688gemm_... have the letter alone.
_LETTER = re.compile("_([shi])([0-9]*)(?:gemm|cudnn)(?=_)")
_NVJET = re.compile(r"\bnvjet_(?:sm[0-9]+_)?(hs|ts)[a-z]_")  # cuBLAS, from Hopper on: factors, accumulator, output
_NVJETS = {"hs": "fp16", "ts": "bf16"}

# Layer types and kernels' names of convolutions and matrix products; `Fc` is Myelin's word for one in generated code.
_MULTIPLYING_TYPE = re.compile(r"conv|correlation|gemm|matrixmultiply|matmul|mha", re.IGNORECASE)
_MULTIPLYING_KERNEL = re.compile(
    r"gemm|gemv|nvjet|_mha_|fmha|flash_fwd|fprop|dgrad|cudnn|xmma_(?:convolution|deconv|cublas)"
    r"|conv_depthwise|depthwiseConv|conv[123]d_|^__myl_\w*?Fc(?=[A-Z_])"
)
# Named like a product, and none: the second kernel of one that was cut along its sum, which adds the parts; what cuDNN
# has beside convolutions.
_BESIDE_PRODUCTS = re.compile("execute_split_k_kernel|^void cudnn::(?:ops::|bn_|pooling)")
# Of TensorRT, cuTENSOR and cuDNN: other layouts, and conversions on the way. Of torch: copies, casts and `cat`.
_MOVING_KERNEL = re.compile(
    r"nchwToNhwc|nhwcToNchw|permutationKernel|genericReformat::|_copy_kernel_cuda|CatArrayBatchedCopy"
)
_NOTHING = frozenset({"Constant", "NoOp", "signal", "wait", "shape_call", "Barrier"})
_MOVING_TYPES = frozenset({"Reformat", "Shuffle", "Cast", "Copy", "Concat", "Slice"})
# Generated kernels are named after their operations, cut to three or four letters: __myl_MulMinMaxRouCas_0x...
_GENERATED = re.compile(r"^__myl_(?:bb\d+_\d+_)?([A-Za-z]+)")
_MOVING_WORDS = ("Mov", "Cas", "Tra", "Res", "Con", "Sli", "Pad")
_SCALING_WORDS = ("Mul", "Div", "Min", "Max", "Rou")
NARROW = frozenset({"int8", "fp8", "fp4", "int4"})


@dataclass(frozen=True, slots=True)
class EngineLayer:
    """One layer of an engine.

    tactic: TensorRT's name of the kernel
    inputs, outputs: element types; None: the inspector does not say
    nodes: names of the ONNX nodes that it came from
    kind: what it does
    multiplies, accumulates: element types; None where it does not multiply, or nothing tells
    largest: element type of the largest input
    reads, writes: names of tensors
    """

    name: str
    type: str
    tactic: str
    inputs: tuple[str | None, ...]
    outputs: tuple[str | None, ...]
    nodes: tuple[str, ...]
    kind: Kind
    multiplies: str | None
    accumulates: str | None
    largest: str | None
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


def read_layers(inspector_json: str) -> list[EngineLayer]:
    """The layers in the order of execution; empty when the text has none with details. Raises ValueError for text
    that is not JSON."""
    document = json.loads(inspector_json)
    entries = document.get("Layers", []) if isinstance(document, dict) else []
    return [_layer(entry) for entry in entries if isinstance(entry, dict) and "LayerType" in entry]


def launched_layer(name: str, kernel: str) -> EngineLayer:
    """A layer of which no more is known than its kernel's name, as a profiler records it."""
    kind = _kind("", kernel, set())
    multiplies, accumulates = kernel_types(kernel) if kind == "multiplying" else (None, None)
    return EngineLayer(name, "", kernel, (), (), (), kind, multiplies, accumulates, None)


def element_type(text: str) -> str | None:
    """`int8` of "Channel major INT8 format where channel % 16 == 0"; None for words that name no type."""
    return next((name for name, words in _TENSOR_TYPES if re.search(words, text, re.IGNORECASE)), None)


def kernel_types(tactic: str) -> tuple[str | None, str | None]:
    """What a kernel multiplies in and what it accumulates in, by its name; None where the name does not say."""
    tactic = _HASH.sub("", tactic)
    for pattern, multiplied, accumulated in ((_FOUR, 3, 4), (_THREE, 1, 3)):
        found = pattern.search(tactic)
        if found is not None:
            return _KERNEL_TYPES[found[multiplied]], _KERNEL_TYPES[found[accumulated]]
    if "tf32" in tactic:  # cutlass_80_tensorop_s1688tf32gemm_f32_...: reads f32 too
        return "tf32", None
    return _loose_type(tactic), None


def _loose_type(tactic: str) -> str | None:
    """Of names without a group of types: the first word that is one, after the letter of a product where there is
    one; else what the letter says."""
    if jet := _NVJET.search(tactic):
        return _NVJETS[jet[1]]
    letter = _LETTER.search(tactic)
    found = None if letter is None else _ANY.search(tactic, letter.end())
    if found is None and (letter is None or letter[1] != "i"):
        found = _ANY.search(tactic)
    if found is not None:
        return _KERNEL_TYPES[(found[1] or found[2]).lower()]
    if letter is None or letter[1] == "i":
        return None
    if letter[1] == "h":
        return "fp16"
    return None if letter[2] else "fp32"  # with a shape of tensor cores, `s` is the accumulator's


def _layer(entry: Mapping[str, Any]) -> EngineLayer:
    kind_name, tactic = str(entry["LayerType"]), str(entry.get("TacticName", ""))
    inputs, outputs = (tuple(_tensor_type(each) for each in entry.get(key, [])) for key in ("Inputs", "Outputs"))
    largest = _largest(entry.get("Inputs", []))
    kind = _kind(kind_name, tactic, {*inputs, *outputs})
    multiplies, accumulates = kernel_types(tactic) if kind == "multiplying" else (None, None)
    if kind == "multiplying" and multiplies is None:
        multiplies = FLOATING if largest == "fp32" else largest
    return EngineLayer(
        str(entry.get("Name", "")),
        kind_name,
        tactic,
        inputs,
        outputs,
        _nodes(str(entry.get("Metadata", ""))),
        kind,
        multiplies,
        accumulates,
        largest,
        _names(entry.get("Inputs", [])),
        _names(entry.get("Outputs", [])),
    )


def _kind(layer_type: str, tactic: str, types: set[str | None]) -> Kind:
    if layer_type in _NOTHING:
        return "nothing"
    generated = _GENERATED.match(tactic)
    product = _MULTIPLYING_KERNEL.search(tactic) and not _BESIDE_PRODUCTS.search(tactic)
    if product or (_MULTIPLYING_TYPE.search(layer_type) and generated is None):
        return "multiplying"
    if layer_type in _MOVING_TYPES or _MOVING_KERNEL.search(tactic):
        return "moving"
    if generated is None:
        return "other"
    words = re.findall("[A-Z][a-z]*", generated[1])
    rest = [word for word in words if not word.startswith(_MOVING_WORDS)]
    quantises = len(rest) < len(words) and bool(types & NARROW)
    moves = not rest or (quantises and all(word.startswith(_SCALING_WORDS) for word in rest))
    return "moving" if moves else "other"


def _names(tensors: list[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(str(tensor.get("Name", "")) for tensor in tensors)


def _nodes(metadata: str) -> tuple[str, ...]:
    """`[ONNX Layer: a]\x1e[ONNX Layer: b]`, with \x1e, \x1f or nothing between."""
    return tuple(dict.fromkeys(re.findall(r"\[ONNX Layer: (.*?)\](?=[\x1e\x1f]|\[|$)", metadata)))


def _tensor_type(tensor: Mapping[str, Any]) -> str | None:
    """11.x writes `Datatype`; 10.x `Format/Datatype`, which is a type or the name of a format that has one in it."""
    for key in ("Datatype", "DataType", "Format/Datatype", "Format"):
        found = element_type(str(tensor.get(key, "")))
        if found is not None:
            return found
    return None


def _largest(tensors: list[Mapping[str, Any]]) -> str | None:
    sizes = [(prod(max(int(size), 1) for size in each.get("Dimensions", [])), _tensor_type(each)) for each in tensors]
    return max(sizes, key=lambda pair: pair[0])[1] if sizes else None
