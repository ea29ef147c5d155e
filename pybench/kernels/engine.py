# SPDX-License-Identifier: Apache-2.0
"""The profile of a TensorRT engine: its layers by the inspector's JSON, with the times of TensorRT's own profiler.

A layer without a kernel stays in the profile, because tensors pass through it; it has the work `nothing`. Without times
a profile is structure alone: types, nodes and moves. The inspector leaves biases out of a convolution's inputs, so a
move of `layer1.0.conv1.m.bias` is read by the one layer that is named after `layer1.0.conv1.m.weight`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pybench.kernels.engine_layers import NARROW, EngineLayer, read_layers
from pybench.kernels.profile import Kernel, Profile, Work

LAYERS_FILE = "layers.json"  # beside an engine: the inspector's JSON
TIMED = "mean of {} executions with TensorRT's profiler, which waits for each layer, after every window"
UNTIMED = "the inspector's layers, without times"

_JOINED = " + "  # between the parts of a fused layer's name


def profile_of_engine(
    inspector_json: str, *, times_ms: Mapping[str, float] | None = None, iterations: int = 0
) -> Profile:
    """An engine's profile. `times_ms`: layer -> mean time. Raises ValueError for text that is no JSON, or that has no
    layers with details."""
    layers = read_layers(inspector_json)
    if not layers:
        raise ValueError("the engine tells no layers")
    times = dict(times_ms or {})
    method = TIMED.format(iterations) if times else UNTIMED
    constants, readers = _constants(layers), _unlisted(layers)
    kernels: dict[str, Kernel] = {}
    for layer in layers:
        kernel = _kernel(layer, constants, readers.get(layer.name, ()), times.pop(layer.name, None))
        name = f"{layer.name} #{len(kernels)}" if layer.name in kernels else layer.name
        kernels[name] = replace(kernel, name=name)
    # What the profiler names and the inspector does not is no layer's, and no time is lost.
    for name, time_ms in times.items():
        kernels[name] = Kernel(name=name, kernel=name, work="other", time_ms=time_ms)
    return Profile(
        source="tensorrt",
        method=method,
        iterations=iterations if times_ms else 0,
        kernels=tuple(kernels.values()),
    )


def _kernel(layer: EngineLayer, constants: frozenset[str], unlisted: Sequence[str], time_ms: float | None) -> Kernel:
    return Kernel(
        name=layer.name,
        kernel=layer.tactic or layer.type,
        work=_work(layer),
        computes_in=layer.multiplies,
        inputs=layer.inputs,
        outputs=layer.outputs,
        nodes=layer.nodes,
        reads=(*layer.reads, *unlisted),
        writes=layer.writes,
        of_constants=layer.kind == "moving" and bool(layer.writes) and constants.issuperset(layer.writes),
        time_ms=time_ms if layer.kind != "nothing" or time_ms else None,
    )


def _work(layer: EngineLayer) -> Work:
    """A move between a narrow type and another quantises."""
    narrow = [bool(NARROW & set(types)) for types in (layer.inputs, layer.outputs)]
    return "quantising" if layer.kind == "moving" and narrow[0] != narrow[1] else layer.kind


def _constants(layers: Iterable[EngineLayer]) -> frozenset[str]:
    """Tensors that are known before an execution: constants, and what is moved of nothing but these."""
    found: set[str] = set()
    for layer in layers:
        is_source = layer.type == "Constant"
        is_copy = layer.kind in ("moving", "nothing") and bool(layer.reads) and found.issuperset(layer.reads)
        if is_source or is_copy:
            found.update(layer.writes)
    return frozenset(found)


def _unlisted(layers: Sequence[EngineLayer]) -> dict[str, list[str]]:
    """Layer -> tensors that it reads by its name, though the inspector does not list them."""
    read = {name for layer in layers for name in layer.reads}
    owners: dict[str, list[str]] = {}
    for layer in layers:
        for part in layer.name.split(_JOINED) if layer.kind == "multiplying" else ():
            owners.setdefault(part.rpartition(".")[0], []).append(layer.name)
    found: dict[str, list[str]] = {}
    for layer in layers:
        for name in layer.writes:
            stem = name.rpartition(".")[0]
            named = owners.get(stem, []) if stem and name not in read else []
            if len(named) == 1:
                found.setdefault(named[0], []).append(name)
    return found
