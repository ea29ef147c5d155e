# SPDX-License-Identifier: Apache-2.0
"""What quantising is worth: engines of one model that differ in their precision alone, timed side by side.

    python3 -P -m bench.tensorrt.quantised OUT [--model resnet50] [--batch 32] [--only NAME ...] [--rounds 5]

Every one is built (timing cache in OUT), captured and timed in alternating rounds. Printed: median latency, its ratio
to FP16, layers of the engine by kind, and the layers that only move or reformat. OUT gets the inspector's JSON of each.
Weights are random, and ranges constant, apart from the variant with distinct ranges. TensorRT can leave out work
between pairs of equal scales, and calibration gives each pair its own. Needs a GPU, TensorRT, torch and onnx.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np

from pybench.catalogue.models import MODELS
from pybench.kernels.engine_layers import read_layers
from pybench.measure import Replayer, summarise_latency
from pybench.measurement.inputs import random_arrays
from pybench.models.building import build
from pybench.models.export import export_onnx
from pybench.precision.conversion import convert
from pybench.precision.network import Network, open_network
from pybench.precision.placement import Quantisation, calibrated_tensors
from pybench.precision.pooling import is_sliceable
from pybench.precision.qdq import quantise
from pybench.runtimes.tensorrt.building import BuildOptions, build_engine
from pybench.runtimes.tensorrt.session import TensorRtSession, open_session

RANGE = 4.0  # of every activation
RANGE_STEP = 0.01  # 1: by how much the next one is larger, where ranges are distinct
ROUND_S, WARMUP_S = 0.3, 0.1


@dataclass(frozen=True)
class Variant:
    """`floating`: the type around; `quantisation`, None: not quantised; `pools`: MaxPool stays what it is; `distinct`:
    no two activations have the same range."""

    floating: str
    quantisation: Quantisation | None = None
    pools: bool = False
    distinct: bool = False


def variants() -> dict[str, Variant]:
    """FP16 and what is compared with it."""
    quantised = {
        f"{kind}{'' if floating == 'fp32' else f'+{floating}'}": Variant(floating, Quantisation(kind, floating))
        for kind in ("int8", "fp8")
        for floating in ("fp16", "fp32")
    }
    pooled = Variant("fp16", Quantisation("fp8", "fp16"), pools=True)
    distinct = Variant("fp16", Quantisation("int8", "fp16"), distinct=True)
    return {
        "fp16": Variant("fp16"),
        **quantised,
        "fp8+fp16 with MaxPool": pooled,
        "int8+fp16 with distinct ranges": distinct,
    }


def write(source: Path, variant: Variant, path: Path) -> None:
    network: Network = open_network(source)
    if variant.quantisation is not None:
        step = RANGE_STEP if variant.distinct else 0.0
        ranges = {name: RANGE * (1 + step) ** index for index, name in enumerate(calibrated_tensors(network))}
        with patch.object(Quantisation, "slices_pool", lambda *_: False) if variant.pools else nullcontext():
            quantise(network, ranges, variant.quantisation)
    elif variant.floating != "fp32":
        convert(network, variant.floating)
    network.save(path, {})


def built(name: str, variant: Variant, source: Path, options: argparse.Namespace) -> TensorRtSession:
    stem = name.replace(" ", "-")
    graph, engine = source.with_name(f"{stem}.onnx"), source.with_name(f"{stem}.engine")
    write(source, variant, graph)
    cache = source.with_name("timing.cache")
    begin = time.monotonic()
    build_engine(
        graph, engine, BuildOptions(tf32=False, batch=options.batch, tokens=options.tokens, timing_cache=cache)
    )
    session = open_session(engine, launch="graph", device="auto")
    (options.out / f"{stem}.json").write_text(session.layer_information())
    print(f"built {name} in {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    return session


def timed(replayers: dict[str, Replayer], rounds: int) -> dict[str, float]:
    """Median over rounds of the median latency, ms."""
    found: dict[str, list[float]] = {name: [] for name in replayers}
    for _ in range(rounds):
        for name, replayer in replayers.items():
            replayer.replay(1, WARMUP_S)
            found[name].append(summarise_latency(replayer.replay(10, ROUND_S).latency_ns).p50_s * 1e3)
    return {name: float(np.median(values)) for name, values in found.items()}


def describe(path: Path) -> str:
    layers = read_layers(path.read_text())
    kinds = Counter(layer.multiplies or layer.kind for layer in layers)
    return ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--model", default="resnet50", choices=list(MODELS))
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=128, help="of a sequence, where the model takes ids")
    parser.add_argument("--only", nargs="*", choices=list(variants()), help="these precisions, in place of all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=600.0, help="build nothing more after so many")
    options = parser.parse_args(arguments)
    begin = time.monotonic()
    (options.out / "work").mkdir(parents=True, exist_ok=True)
    source = options.out / "work" / f"{options.model}.onnx"
    export_onnx(build(options.model), MODELS[options.model], source, {})  # batch norms leave a bias in convolutions
    network = open_network(source)
    has_pools = any(is_sliceable(network, node) for node in network.nodes)
    chosen = {
        name: each
        for name, each in variants().items()
        if (not options.only or name in options.only) and (has_pools or not each.pools)
    }
    sessions: dict[str, TensorRtSession] = {}
    for name, variant in chosen.items():
        if time.monotonic() - begin > options.seconds:
            print(f"out of time before {name}", file=sys.stderr)
            break
        attempt(lambda name=name, variant=variant: sessions.update(  # type: ignore[misc]
            {name: built(name, variant, source, options)}), name)  # fmt: skip
    report(sessions, options)


def attempt(work: Callable[[], None], name: str) -> None:
    """One variant that TensorRT refuses must not cost the others."""
    try:
        work()
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)


def report(sessions: dict[str, TensorRtSession], options: argparse.Namespace) -> None:
    replayers = {}
    for name, session in sessions.items():
        inputs = random_arrays(session.inputs, options.model, options.batch, options.tokens, 0)
        replayers[name] = session.bind_replay(inputs, transfers=False)
    latencies = timed(replayers, options.rounds)
    reference = latencies.get("fp16", float("nan"))
    print(f"\n{'variant':28} {'ms':>8} {'of fp16':>8}  layers")
    for name, latency_ms in latencies.items():
        layers = describe(options.out / f"{name.replace(' ', '-')}.json")
        print(f"{name:28} {latency_ms:8.4f} {latency_ms / reference:8.3f}  {layers}")
    (options.out / "latencies.json").write_text(json.dumps(latencies, indent=1))


if __name__ == "__main__":
    main()
