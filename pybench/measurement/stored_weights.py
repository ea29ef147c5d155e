# SPDX-License-Identifier: Apache-2.0
"""What onnxruntime makes of matrix products with stored weights: how many of them ran as such, and in which type.

A file allows its kernels to round activations (`accuracy_level`); whether they do depends on the provider and the CPU,
and nothing tells. So the provider is given a product of the same kind whose result shows it. Does not time anything.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pybench.catalogue.causes import Cause
from pybench.catalogue.reasons import Reason
from pybench.onnx_file.graph import OnnxGraph, read_graph
from pybench.onnx_file.products import (
    INTEGER_PRODUCTS,
    MULTIPLYING,
    STORED_PRODUCT,
    StoredProduct,
    multiplied,
    stored_products,
)
from pybench.precision.audit import FUSED, Audit

if TYPE_CHECKING:
    import onnx

_COLUMNS = 32
_ROWS = (2, 64)  # a kernel for few rows may be another one than for many
_SMALL = 2.0**-10  # beside a 1 it is below half a step of int8, and any floating type has it
_FINE = 1 + 2.0**-12  # FP32 has it; TF32, FP16 and BF16 round it to 1
_TOLERANCE = 2.0**-16


def audit_stored(declared: Audit, path: Path, provider: str, threads: int) -> Audit:
    """A file that is what it claims (`audit_onnx`), in the graph that a provider executes."""
    from pybench.runtimes import onnxruntime

    written = read_graph(path)
    with tempfile.TemporaryDirectory(prefix="pybench-audit-") as folder:
        optimised = Path(folder) / "optimised.onnx"
        onnxruntime.write_optimised(path, optimised, threads=threads, provider=provider)
        types = arithmetic_of(stored_products(written), provider, Path(folder))
        return judge_stored(declared, written, read_graph(optimised), types)


def judge_stored(declared: Audit, written: OnnxGraph, executed: OnnxGraph, types: Sequence[str]) -> Audit:
    """Whether products with stored weights ran as such. Passes may merge equal ones, but add no product of another
    kind. Code: `kernels_in_another_type`. `types`: what such products are multiplied in."""
    stored = len(stored_products(executed))
    facts = {**declared.facts, "executed_stored_products": stored, "stored_products_compute_in": list(types)}
    realised = f"{declared.realised}, multiplied in {' and '.join(types)}"
    if not stored or _other_products(executed) > _other_products(written):
        return Audit(realised, False, (Reason(Cause.KERNELS_IN_ANOTHER_TYPE),), facts)
    return replace(declared, realised=realised, facts=facts)


def _other_products(graph: OnnxGraph) -> int:
    return len(multiplied(graph, MULTIPLYING | INTEGER_PRODUCTS | FUSED))


def arithmetic_of(products: Sequence[StoredProduct], provider: str, folder: Path) -> list[str]:
    """The types that a provider multiplies such products in, sorted: `int8`, `fp32`, or `less than fp32`.

    `folder`: where a small file may be written for each kind of product.
    """
    import onnx

    from pybench.runtimes import onnxruntime

    found = set()
    for product in {(each.bits, each.block_size, each.accuracy_level): each for each in products}.values():
        path = folder / f"probe-{product.bits}-{product.block_size}-{product.accuracy_level}.onnx"
        onnx.save(_probe(product), path)
        for rows in _ROWS:
            found.add(told_by(onnxruntime.run_once(path, provider, _rows(product.block_size, rows))))
    return sorted(found)


def _probe(product: StoredProduct) -> onnx.ModelProto:
    """A product of the same kind in which all weights are 1: of a code above the zero point, times a scale of 1."""
    from onnx import TensorProto, helper, numpy_helper

    code = 0x99 if product.bits == 4 else 0x81  # two codes of 9 around 8; 129 around 128
    size = product.block_size
    codes = np.full((_COLUMNS, 1, size * product.bits // 8), code, np.uint8)
    node = helper.make_node(
        STORED_PRODUCT,
        ["activations", "codes", "scales"],
        ["sums"],
        domain="com.microsoft",
        K=size,
        N=_COLUMNS,
        bits=product.bits,
        block_size=size,
        accuracy_level=product.accuracy_level,
    )
    graph = helper.make_graph(
        [node],
        "probe",
        [helper.make_tensor_value_info("activations", TensorProto.FLOAT, ["rows", size])],
        [helper.make_tensor_value_info("sums", TensorProto.FLOAT, ["rows", _COLUMNS])],
        [
            numpy_helper.from_array(codes, "codes"),
            numpy_helper.from_array(np.ones((_COLUMNS, 1), np.float32), "scales"),
        ],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def _rows(size: int, rows: int) -> npt.NDArray[np.float32]:
    """float32 [rows, size]: even rows have 1 and a small number, odd ones a number that needs FP32."""
    values = np.zeros((rows, size), np.float32)
    values[::2, :2] = 1, _SMALL
    values[1::2, 0] = _FINE
    return values


def told_by(sums: npt.NDArray[np.float32]) -> str:
    """The type that a probe was multiplied in, by float32 [rows, columns] of sums."""
    keeps_small = bool(np.all(np.abs(sums[::2] - (1 + _SMALL)) < _TOLERANCE))
    keeps_fine = bool(np.all(np.abs(sums[1::2] - _FINE) < _TOLERANCE))
    if keeps_small:
        return "fp32" if keeps_fine else "less than fp32"
    return "int8"
