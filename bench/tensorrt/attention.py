# SPDX-License-Identifier: Apache-2.0
"""How far engines of quantised attention are from their files: one small transformer, its pairs placed in several ways.

    python3 -P -m bench.tensorrt.attention OUT [--layers 2] [--sharpness 3] [--batch 32] [--only NAME ...]

Random weights, with those of queries and keys multiplied by `--sharpness`, so that a token attends to few others as in
a trained network. Ranges are the largest magnitudes on four batches of random ids.
Printed are the relative errors of each file and engine, the median latency of its graph, and the kernels of attention.
onnxruntime computes FP32 and the files on the CPU. OUT gets the inspector's JSON of each engine. With `--files-only` no
engine is built, and no GPU is needed. Needs TensorRT, torch, onnx and onnxruntime.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from pybench.catalogue.models import MODELS
from pybench.errors import PybenchError
from pybench.kernels.engine_layers import read_layers
from pybench.measure import summarise_latency
from pybench.models.distilbert import DistilBert
from pybench.models.export import export_onnx
from pybench.precision.calibration import find_ranges
from pybench.precision.conversion import convert
from pybench.precision.execution import outputs_of
from pybench.precision.network import Network, open_network
from pybench.precision.placement import Quantisation
from pybench.precision.qdq import insert_qdq, quantise
from pybench.runtimes.tensorrt.building import BuildOptions, build_engine
from pybench.runtimes.tensorrt.session import open_session

IDS = 2000
Outputs = npt.NDArray[np.float64]
Write = Callable[[Network, dict[str, float]], object]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--sharpness", type=float, default=3.0)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--only", nargs="*", help="these variants, in place of all")
    parser.add_argument("--files-only", action="store_true", help="build no engine")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    source = options.out / "fp32.onnx"
    export_onnx(sharp_model(options.layers, options.sharpness), MODELS["distilbert"], source, {})
    random = np.random.default_rng(5)
    shape = (options.batch, options.tokens)
    feeds = [{"ids": random.integers(0, IDS, shape)} for _ in range(5)]
    network = open_network(source)
    chosen = variants(network)
    unknown = set(options.only or ()) - set(chosen)
    if unknown:
        parser.error(f"no variant {sorted(unknown)[0]!r}; there are: {'; '.join(chosen)}")
    ranges = find_ranges(network, feeds[:4], "minmax").amax
    reference = computed(source, "fp32", feeds[4])
    print(f"{'variant':40} {'file-fp32':>10} {'engine-file':>12} {'engine-fp32':>12} {'ms':>8}  attention")
    for name, write in chosen.items():
        if options.only and name not in options.only:
            continue
        try:
            report(name, write, source, ranges, feeds[4], reference, options)
        except (PybenchError, RuntimeError) as error:
            print(f"{name:40} {type(error).__name__}: {str(error)[:200]}", flush=True)


def sharp_model(layers: int, sharpness: float) -> DistilBert:
    """In evaluation mode, on the CPU."""
    torch.manual_seed(5)
    model = DistilBert(classes=10, vocabulary=IDS, layers=layers)
    with torch.no_grad():
        for layer in model.distilbert.transformer.layer:
            layer.attention.q_lin.weight *= sharpness
            layer.attention.k_lin.weight *= sharpness
    return model.eval()


def variants(network: Network) -> dict[str, Write]:
    """Name, which begins with the precision -> what rewrites the FP32 network, given its ranges."""
    softmax = [node for node in network.nodes if node.op_type == "Softmax"]
    probabilities = [node.output[0] for node in softmax]
    second = [network.consumers(tensor)[0].name for tensor in probabilities]
    first = [scores(network, node.input[0]) for node in softmax]

    def quantised(floating: str, kept: Sequence[str] = (), **ranges: float) -> Write:
        expression = "|".join(map(re.escape, kept)) or None

        def write(target: Network, found: dict[str, float]) -> None:
            quantise(target, found | ranges, Quantisation("int8", floating, keep_fp32=expression))

        return write

    def in_fp32(names: Sequence[str]) -> Write:
        def write(target: Network, found: dict[str, float]) -> None:
            placement = insert_qdq(target, found, Quantisation("int8", "fp16"))
            convert(target, "fp16", None, placement.in_fp32 | dict.fromkeys(names, "trial"))

        return write

    return {
        "fp16": lambda target, found: convert(target, "fp16"),
        "int8+fp16": quantised("fp16"),
        "int8+fp16, probabilities to 1": quantised("fp16", **dict.fromkeys(probabilities, 1.0)),
        "int8+fp16, probabilities to 127/128": quantised("fp16", **dict.fromkeys(probabilities, 127 / 128)),
        "int8+fp16, softmax in fp32": in_fp32([node.name for node in softmax]),
        "int8+fp16, second product in fp16": quantised("fp16", second),
        "int8+fp16, first product in fp16": quantised("fp16", first),
        "int8+fp16, both products in fp16": quantised("fp16", [*first, *second]),
        "int8": quantised("fp32"),
        "int8, probabilities to 1": quantised("fp32", **dict.fromkeys(probabilities, 1.0)),
        "int8, both products in fp32": quantised("fp32", [*first, *second]),
    }


def scores(network: Network, tensor: str) -> str:
    """The product whose scaled output a softmax reads."""
    node = network.producer(tensor)
    while node is not None and node.op_type != "MatMul":
        node = network.producer(node.input[0])
    if node is None:
        raise ValueError(f"no product in front of {tensor}")
    return node.name


def computed(path: Path, precision: str, feed: Mapping[str, Any]) -> Outputs:
    return outputs_of(path, precision, [dict(feed)])[0].astype(np.float64)


def error(found: Outputs, reference: Outputs) -> float:
    return float(np.linalg.norm(found - reference) / np.linalg.norm(reference))


def report(
    name: str, write: Write, source: Path, ranges: dict[str, float], feed: Mapping[str, Any], reference: Outputs,
    options: argparse.Namespace,
) -> None:  # fmt: skip
    path = options.out / f"{re.sub('[^a-z0-9]+', '-', name)}.onnx"
    network = open_network(source)
    write(network, dict(ranges))
    network.save(path, {})
    of_file = computed(path, name.split(",")[0], feed)
    line = f"{name:40} {error(of_file, reference):10.5f}"
    if options.files_only:
        print(line, flush=True)
        return
    engine = path.with_suffix(".engine")
    begin = time.monotonic()
    cache = options.out / "timing.cache"
    build_engine(path, engine, BuildOptions(tf32=False, batch=options.batch, tokens=options.tokens, timing_cache=cache))
    print(f"built {name} in {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    session = open_session(engine, launch="graph", device="auto")
    of_engine = session.run(dict(feed))[0].astype(np.float64)
    information = session.layer_information()
    path.with_suffix(".json").write_text(information)
    layers = read_layers(information)
    attention = sorted({layer.tactic for layer in layers if "mha" in layer.tactic})
    replayer = session.bind_replay(dict(feed), transfers=False)
    replayer.replay(1, 0.1)
    latency_ms = summarise_latency(replayer.replay(10, 0.3).latency_ns).p50_s * 1e3
    errors = f"{error(of_engine, of_file):12.5f} {error(of_engine, reference):12.5f}"
    print(f"{line} {errors} {latency_ms:8.4f}  {', '.join(attention) or f'{len(layers)} layers'}", flush=True)


if __name__ == "__main__":
    main()
