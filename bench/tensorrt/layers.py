# SPDX-License-Identifier: Apache-2.0
"""Where one engine is slower than another of the same model, layer by layer.

    python3 -P -m bench.tensorrt.layers SLOW.engine FAST.engine [--all]

Layers are paired by the convolutions and matrix products of the graph that they hold (TensorRT fuses, so a layer may
hold several nodes, and one engine's layer may be several of another's). Times are TensorRT's profiler's: each layer is
waited for, so they add up to more than a latency. Printed: each group that the first engine takes longer for (with
--all every group), its type and kernel in both, then what is in no group (moves, pooling, generated code), and sums.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pybench.kernels.engine_layers import Layer, read_layers


@dataclass
class Side:
    """One engine's part of a group: its time in ms, and what multiplies there."""

    time_ms: float = 0.0
    kernels: list[str] = field(default_factory=list)


@dataclass
class Group:
    """Nodes that some layer of either engine holds together."""

    nodes: frozenset[str]
    sides: tuple[Side, Side]

    @property
    def excess_ms(self) -> float:
        """How much longer the first engine takes."""
        return self.sides[0].time_ms - self.sides[1].time_ms


def paired(
    layers: tuple[Sequence[Layer], Sequence[Layer]], times_ms: tuple[Mapping[str, float], Mapping[str, float]]
) -> tuple[list[Group], tuple[dict[str, float], dict[str, float]]]:
    """Groups in the order of the first engine, and of each engine the time of layers that multiply nothing, by kind."""
    joined = _joined([layer.nodes for side in layers for layer in side if layer.multiplies])
    groups = {nodes: Group(nodes, (Side(), Side())) for nodes in joined}
    rest: tuple[dict[str, float], dict[str, float]] = ({}, {})
    for index in (0, 1):
        for layer in layers[index]:
            time_ms = times_ms[index].get(layer.name, 0.0)
            if not layer.multiplies:
                rest[index][layer.kind] = rest[index].get(layer.kind, 0.0) + time_ms
                continue
            side = groups[next(nodes for nodes in joined if nodes.issuperset(layer.nodes))].sides[index]
            side.time_ms += time_ms
            side.kernels.append(f"{layer.multiplies} {layer.tactic[:60]}")
    return list(groups.values()), rest


def _joined(collections: Sequence[Collection[str]]) -> list[frozenset[str]]:
    """The finest sets that no given collection is split by, in the order of their first appearance."""
    found: list[frozenset[str]] = []
    for nodes in collections:
        touching = [each for each in found if each & frozenset(nodes)]
        union = frozenset(nodes).union(*touching)
        if touching:
            found[found.index(touching[0])] = union
            found = [each for each in found if each is union or each not in touching[1:]]
        else:
            found.append(union)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("slow", type=Path)
    parser.add_argument("fast", type=Path)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args(arguments)
    from pybench.runtimes.tensorrt.session import open_session

    layers, times = [], []
    for path in (options.slow, options.fast):
        session = open_session(path, launch="enqueue", device="auto")
        layers.append(read_layers(session.layer_information()))
        times.append(session.layer_times_ms())
    groups, rest = paired((layers[0], layers[1]), (times[0], times[1]))
    for group in groups:
        if options.all or group.excess_ms > 0:
            print(f"{group.excess_ms:+.4f} ms  {', '.join(sorted(group.nodes))[:90]}")
            for path, side in zip((options.slow, options.fast), group.sides, strict=True):
                print(f"    {side.time_ms:.4f}  {path.stem}: {'; '.join(side.kernels)}")
    for kind in sorted({*rest[0], *rest[1]}):
        print(f"{kind:12} {rest[0].get(kind, 0.0):.4f} ms against {rest[1].get(kind, 0.0):.4f}")
    print(f"{'together':12} {sum(times[0].values()):.4f} ms against {sum(times[1].values()):.4f}")


if __name__ == "__main__":
    main()
