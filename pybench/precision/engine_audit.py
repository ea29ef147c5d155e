# SPDX-License-Identifier: Apache-2.0
"""What a TensorRT engine really multiplies in, against the precision that it was built to have.

TensorRT may run an operator in another type than its graph says it could, and raises no error. For example, a Q/DQ pair
around a convolution without an INT8 kernel stays a pair around a floating-point one. So every multiplying layer is
asked. The answer is shares by layers, by time where a profile is given, and by FLOPs where the graph's are given. It
also names those that do not compute as claimed. Valid means: every convolution and matrix product outside the declared
keep-list multiplies in the claimed type. TF32 is a permission, not a demand: a `tf32` engine may hold FP32 kernels, but
not be without TF32 ones. Does not look at accuracy, and does not build or run the engine.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pybench.catalogue.causes import Cause
from pybench.catalogue.precisions import PRECISIONS, allows_tf32, floating_type
from pybench.catalogue.reasons import Reason
from pybench.kernels.engine_layers import FLOAT_TYPES, FLOATING, EngineLayer, launched_layer, read_layers
from pybench.precision.audit import Audit

SHARE_SEEN = 0.5  # of a graph's products, that kernels have to be seen of before they speak for the rest


@dataclass(frozen=True, slots=True)
class MultiplyingLayer:
    """A layer that multiplies. `nodes`: the ONNX nodes in it that do, or all of it where the graph's are not known.
    `kept`: they are declared to stay as they are."""

    layer: EngineLayer
    nodes: tuple[str, ...]
    kept: bool

    @property
    def type(self) -> str | None:
        return self.layer.multiplies


def audit_engine(
    inspector_json: str,
    precision: str,
    *,
    layer_times_ms: Mapping[str, float] | None = None,
    node_flops: Mapping[str, int] | None = None,
    counts_all: bool = True,
    keep: Collection[str] = (),
    tf32: bool | None = None,
) -> Audit:
    """An engine's inspector JSON against a claimed precision.

    layer_times_ms: layer name -> time
    node_flops: FLOPs of every convolution and matrix product of the graph by the node's name (`flops.count_flops`),
        which is then held complete: each must be found in a layer
    counts_all: whether nothing else of the graph multiplies, such as an LSTM; otherwise no share of FLOPs is told
    keep: nodes that the graph leaves unquantised, or in FP32, on purpose
    tf32: whether the build allowed TF32; None: not known
    Codes: `no_layer_information`, `no_multiplying_layers`, `not_in_claimed_type`, `type_not_told`, `tf32_kernels`,
    `no_tf32_kernels`, `nodes_without_layer`.
    """
    try:
        layers = [_decided(layer, tf32) for layer in read_layers(inspector_json)]
    except ValueError:
        layers = []
    if not layers:
        return Audit("not known: the engine tells no layers", False, (Reason(Cause.NO_LAYER_INFORMATION),))
    products = _products(layers, node_flops, keep)
    shares = _flop_shares(products, node_flops) if counts_all else None
    return _judge(layers, products, precision, layer_times_ms, node_flops, shares)


def audit_launched(
    kernels: Sequence[tuple[str, float]], precision: str, *, kept: int = 0, written: int | None = None
) -> Audit:
    """The kernels (name, ms) that one run of a model launched, against a claimed precision.

    That is what there is to ask where the engine is inside another runtime and tells nothing. `kept`: how many nodes
    its graph leaves in a higher type on purpose. Kernels are not known by their nodes, so as many of a higher type are
    let pass. `written`: how many products its graph has; None: not known. Generated code does not always tell that it
    multiplies, and fused attention is one kernel for several. So fewer may be seen, but less than half would prove
    nothing of the rest.

    Codes: `no_kernels_recorded`, `products_not_seen`, and those of `audit_engine` but `nodes_without_layer`.
    """
    if not kernels:
        return Audit("not known: no kernels were recorded", False, (Reason(Cause.NO_KERNELS_RECORDED),))
    layers = [launched_layer(f"{place} {name}", name) for place, (name, _) in enumerate(kernels)]
    times = {layer.name: time_ms for layer, (_, time_ms) in zip(layers, kernels, strict=True)}
    products = _products(layers, None, ())
    higher = [each for each in products if each.type in _around(precision)]
    if len(higher) <= kept:
        products = [replace(each, kept=each in higher) for each in products]
    return _with_unseen(_judge(layers, products, precision, times, None, None), len(products), written)


def _with_unseen(found: Audit, seen: int, written: int | None) -> Audit:
    """An audit of kernels, and how many products of the graph are in none that is seen to multiply."""
    if written is None or not seen:
        return found
    unseen = max(written - seen, 0)
    facts = {**found.facts, "unseen_products": unseen}
    if not unseen:
        return replace(found, facts=facts)
    realised = f"{found.realised}; not seen to multiply: {unseen} of the graph's {written} products"
    if seen >= SHARE_SEEN * written:
        return replace(found, realised=realised, facts=facts)
    return Audit(realised, False, (*found.reasons, Reason(Cause.PRODUCTS_NOT_SEEN)), facts)


def _judge(
    layers: Sequence[EngineLayer],
    products: Sequence[MultiplyingLayer],
    precision: str,
    times_ms: Mapping[str, float] | None,
    node_flops: Mapping[str, int] | None,
    flop_shares: Mapping[str, float] | None,
) -> Audit:
    if not products:
        return Audit("nothing multiplies", False, (Reason(Cause.NO_MULTIPLYING_LAYERS),), {"layers": len(layers)})
    refused = [each for each in products if not each.kept and each.type not in _claimed(precision)]
    missing = sorted(set(node_flops or ()) - {node for each in products for node in each.nodes})
    facts = {
        **_counts(layers, products),
        "time_share_ratio": _time_shares(layers, products, times_ms),
        "flop_share_ratio": flop_shares,
        "refused": [_named(each) for each in refused],
        "kept": [_named(each) for each in products if each.kept],
        "nodes_without_layer": missing,
    }
    reasons = _reasons(precision, products, refused, missing)
    return Audit(_words(precision, facts), not reasons, reasons, facts)


def _decided(layer: EngineLayer, tf32: bool | None) -> EngineLayer:
    """A kernel that reads FP32 and does not say what it multiplies in cannot be TF32 where the build forbade it."""
    return replace(layer, multiplies="fp32") if layer.multiplies == FLOATING and tf32 is False else layer


def _claimed(precision: str) -> frozenset[str]:
    if allows_tf32(precision):
        return FLOAT_TYPES
    return frozenset(PRECISIONS[precision].multiplies[:1])


def _around(precision: str) -> frozenset[str]:
    """The types that nodes are kept in where they do not compute as claimed."""
    return (FLOAT_TYPES | {floating_type(precision)}) - _claimed(precision)


def _products(
    layers: Sequence[EngineLayer], node_flops: Mapping[str, int] | None, keep: Collection[str]
) -> list[MultiplyingLayer]:
    """The multiplying layers. A node that no such layer has may be in generated code: `__myl_MulSum` is a product with
    one row, and computes in the type of what it reads."""
    known = None if node_flops is None else frozenset(node_flops)
    products = [_product(layer, known, keep) for layer in layers if layer.kind == "multiplying"]
    if known is None:
        return products
    missing = known - {node for each in products for node in each.nodes}
    generated = [
        replace(layer, kind="multiplying", multiplies=layer.largest)
        for layer in layers
        if layer.kind == "other" and missing & set(layer.nodes)
    ]
    return products + [_product(layer, missing, keep) for layer in generated]


def _product(layer: EngineLayer, known: frozenset[str] | None, keep: Collection[str]) -> MultiplyingLayer:
    nodes = layer.nodes if known is None else tuple(node for node in layer.nodes if node in known)
    chosen = [node in keep for node in nodes]
    return MultiplyingLayer(layer, nodes, bool(chosen) and (all(chosen) if known is not None else any(chosen)))


def _reasons(
    precision: str, products: Sequence[MultiplyingLayer], refused: Sequence[MultiplyingLayer], missing: Sequence[str]
) -> tuple[Reason, ...]:
    types, claimed = {each.type for each in products}, _claimed(precision)
    told = [each for each in refused if each.type is not None and not (claimed == {"fp32"} and each.type == FLOATING)]
    found = {
        Cause.NOT_IN_CLAIMED_TYPE: bool(told),
        Cause.TYPE_NOT_TOLD: len(told) < len(refused),
        Cause.TF32_KERNELS: not allows_tf32(precision) and "tf32" in types,
        Cause.NO_TF32_KERNELS: allows_tf32(precision) and "tf32" not in types,
        Cause.NODES_WITHOUT_LAYER: bool(missing),
    }
    return tuple(Reason(code) for code, holds in found.items() if holds)


def _counts(layers: Sequence[EngineLayer], products: Sequence[MultiplyingLayer]) -> dict[str, Any]:
    kernels = sum(layer.kind != "nothing" for layer in layers)
    by_type = Counter(each.type or "not_told" for each in products)
    return {
        "layers": len(layers),
        "kernels": kernels,
        "moving_kernels": sum(layer.kind == "moving" for layer in layers),
        "multiplying_layers": dict(by_type.most_common()),
        "layer_share_ratio": _shares(by_type),
        "accumulators": dict(Counter(each.layer.accumulates or "not_told" for each in products).most_common()),
    }


def _time_shares(
    layers: Sequence[EngineLayer], products: Sequence[MultiplyingLayer], times: Mapping[str, float] | None
) -> dict[str, float] | None:
    """Of the sum of all times: by type of what multiplies, then `moving`, and `other` with all that is unknown."""
    if not times or sum(times.values()) <= 0:
        return None
    classes = {layer.name: layer.kind if layer.kind == "moving" else "other" for layer in layers}
    classes |= {each.layer.name: each.type or "not_told" for each in products}
    sums: dict[str, float] = defaultdict(float)
    for name, time_ms in times.items():
        sums[classes.get(name, "other")] += time_ms
    return _shares(sums)


def _flop_shares(products: Sequence[MultiplyingLayer], node_flops: Mapping[str, int] | None) -> dict[str, float] | None:
    """By type. A node in several layers (a product cut along its sum) counts in each with an equal part."""
    if not node_flops or sum(node_flops.values()) <= 0:
        return None
    layers_of: dict[str, list[str]] = defaultdict(list)
    for each in products:
        for node in each.nodes:
            layers_of[node].append(each.type or "not_told")
    sums: dict[str, float] = defaultdict(float)
    for node, flops in node_flops.items():
        for kind in layers_of.get(node, ["not_found"]):
            sums[kind] += flops / max(len(layers_of[node]), 1)
    return _shares(sums)


def _shares(amounts: Mapping[str, float]) -> dict[str, float]:
    total = sum(amounts.values())
    return {name: amount / total for name, amount in sorted(amounts.items(), key=lambda pair: -pair[1])}


def _named(product: MultiplyingLayer) -> dict[str, Any]:
    layer = product.layer
    return {"nodes": list(product.nodes), "type": product.type, "layer": layer.name, "kernel": layer.tactic}


def _words(precision: str, facts: Mapping[str, Any]) -> str:
    """`int8: 53 of 54 convolutions and matrix products (99 % of FLOPs, 71 % of time), fp16: 1 of 54; 49 of 106 kernels
    only move data (12 % of time)`."""
    counts, times, flops = facts["multiplying_layers"], facts["time_share_ratio"], facts["flop_share_ratio"]
    total = sum(counts.values())
    parts = []
    for place, (name, count) in enumerate(counts.items()):
        what = " convolutions and matrix products" if place == 0 else ""
        shares = [(flops, "FLOPs"), (times, "time")]
        parts.append(f"{name}: {count} of {total}{what}{_parenthesis(name, shares)}")
    moving = f"{facts['moving_kernels']} of {facts['kernels']} kernels only move data"
    return f"{', '.join(parts)}; {moving}{_parenthesis('moving', [(times, 'time')])}"


def _parenthesis(name: str, shares: Iterable[tuple[Mapping[str, float] | None, str]]) -> str:
    told = [f"{100 * share.get(name, 0.0):.3g} % of {what}" for share, what in shares if share is not None]
    return f" ({', '.join(told)})" if told else ""
