# SPDX-License-Identifier: Apache-2.0
"""Weights of matrix products in 8 or 4 bits, each block of them with a scale, by onnxruntime's own tool.

The tool rounds each block to nearest and writes MatMulNBits, an operator of ONNX Runtime: the file contains packed
codes, and its kernels read them as they are. Activations stay in FP32 in the graph. `ACCURACY_LEVEL` lets kernels round
them to int8 inside a product, block by block, as users of ONNX Runtime do on a CPU. A provider without such a kernel
multiplies in floating point, and each run tells which (`pybench.measurement.stored_weights`).
Does not round embeddings, convolutions, or products of two activations.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from pathlib import Path

import onnx

from pybench.catalogue.causes import Cause
from pybench.errors import InputError, UnsupportedError, in_short
from pybench.onnx_file.graph import read_graph
from pybench.onnx_file.products import multiplied, stored_products
from pybench.precision.audit import SHARE_FOR_INT8, stored_share
from pybench.precision.int8 import products_of
from pybench.precision.network import open_network

BITS = {"int8": 8, "int4": 4}
# int8: with FP32 (1), onnxruntime 1.31 has no fast kernel of 8 bits on a CPU. 768x3072 and back, one vector, one core:
# 6 ms instead of 0.08 ms, against 0.32 ms in FP32 (docs/decisions/037-weight-only.md).
ACCURACY_LEVEL = 4
_SUFFIX = "_Q{}"  # what the tool puts behind the name of a node


def store_weights(
    source: Path,
    destination: Path,
    kind: str,
    *,
    block_size: int,
    scheme: str = "asymmetric",
    excluded: Collection[str] = (),
) -> dict[str, str]:
    """Writes a graph whose matrix products read weights of `kind`, `int8` or `int4`. `excluded`: names of nodes that
    keep theirs. Returns: multiplying node that keeps its weights or has none -> why.

    Raises UnsupportedError (`nothing_to_store`) where most weights are not those of matrix products, InputError where
    onnxruntime cannot quantise the file.
    """
    network = open_network(source)
    products_of(network)
    names = {node.name for node in network.nodes}
    found = _with_stored_weights(network.model, source, BITS[kind], block_size, scheme, excluded)
    for node in found.graph.node:
        title = node.name.removesuffix(_SUFFIX.format(BITS[kind]))
        node.name = title if title in names else node.name
    onnx.save(found, destination)
    graph = read_graph(destination)
    if not excluded and stored_share(graph) < SHARE_FOR_INT8:
        raise UnsupportedError(
            f"{source.name}: {stored_share(graph):.0%} of the weights that are multiplied are those of matrix products",
            code=Cause.NOTHING_TO_STORE,
            hint="use another quantiser, or a model of linear layers",
        )
    if not stored_products(graph):
        raise InputError(
            f"{source} has no matrix product with a weight that is not kept in FP32",
            hint="keep fewer nodes in FP32 (`keep_fp32`)",
        )
    stored = {product.name for product in stored_products(graph)}
    return {
        name: "keep_fp32" if name in excluded else "not_a_product_with_a_weight"
        for name in multiplied(graph)
        if name not in stored
    }


def _with_stored_weights(
    model: onnx.ModelProto, source: Path, bits: int, block_size: int, scheme: str, excluded: Collection[str]
) -> onnx.ModelProto:
    """What onnxruntime's tool makes of a model. Of a weight that several nodes read it writes a copy for each, under
    one name: one is kept."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    try:
        from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer  # it sets up the root logger

        root.setLevel(logging.ERROR)
        tool = MatMulNBitsQuantizer(
            model,
            bits=bits,
            block_size=block_size,
            is_symmetric=scheme == "symmetric",
            accuracy_level=ACCURACY_LEVEL,
            nodes_to_exclude=sorted(excluded),
        )
        tool.process()
    except (ValueError, RuntimeError, LookupError, AssertionError) as error:
        text = in_short(error)
        raise InputError(f"{source}: its weights cannot be stored in {bits} bits ({text})", hint="use fp32") from error
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
    written: onnx.ModelProto = tool.model.model
    once = {tensor.name: tensor for tensor in written.graph.initializer}
    if len(once) < len(written.graph.initializer):
        kept = list(once.values())
        del written.graph.initializer[:]
        written.graph.initializer.extend(kept)
    return written
