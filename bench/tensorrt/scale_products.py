# SPDX-License-Identifier: Apache-2.0
"""What an engine of INT8 with FP16 around does with the product of two scales: hypotheses computed, and the engine.

    python3 -P -m bench.tensorrt.scale_products OUT [--model vgg16] [--batch 8] [--engines]

Two files are made of one model with random weights: with scales as they follow from the ranges, and with weights'
scales raised (`pybench.precision.scales`). Printed are the distances of each file's outputs from the file's own (as an
engine is judged, each tensor rounded to FP16) and from FP32's. The gain is printed, too (1: as large as FP32's).
Both are printed for

- a kernel that rounds nothing between product and quantisation (`exact`),
- one that also computes the product of two scales in FP16, rounded to nearest or cut off, in matrix products alone or
  in convolutions, too,
- with `--engines` the engine that TensorRT builds.

The row that the engine agrees with is what it does. Needs torch and onnx; for the engines TensorRT and a GPU.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper

from pybench.catalogue.models import MODELS
from pybench.measurement.inputs import random_arrays
from pybench.models.building import build
from pybench.models.export import export_onnx
from pybench.precision import scales
from pybench.precision.calibration import Ranges, find_ranges
from pybench.precision.emulation import emulate
from pybench.precision.execution import Feed, Values, open_model, outputs_of
from pybench.precision.network import Network, open_network
from pybench.precision.placement import CONVOLUTIONS, PRODUCTS, Quantisation
from pybench.precision.qdq import quantise
from pybench.runtimes import onnxruntime

CALIBRATION_BATCHES, CALIBRATION_BATCH = 8, 4
JUDGES = 1  # seed of the inputs that an engine is judged on, as in its making
TOKENS = 128
PRECISION = "int8+fp16"

Reals = npt.NDArray[np.float64]
Rounding = Callable[[Reals], Reals]


def nearest(product: Reals) -> Reals:
    """The FP16 number next to each."""
    return product.astype(np.float16).astype(np.float64)


def cut_off(product: Reals) -> Reals:
    """The FP16 number at or below each; `product`: above 0."""
    found = product.astype(np.float16)
    below = np.nextafter(found, np.float16(0))
    return np.where(found.astype(np.float64) > product, below, found).astype(np.float64)


HYPOTHESES: dict[str, tuple[Rounding | None, frozenset[str]]] = {
    "exact": (None, frozenset()),
    "nearest in products": (nearest, PRODUCTS),
    "cut off in products": (cut_off, PRODUCTS),
    "cut off everywhere": (cut_off, PRODUCTS | CONVOLUTIONS),
}


def predicted(path: Path, hypothesis: str, feed: Feed) -> Values:
    """Outputs of a file under a hypothesis: a weight is decoded with the scale that makes the product come out so."""
    rounding, operators = HYPOTHESES[hypothesis]
    network = open_network(path)
    model = emulate(network, rounding=False)
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    for decoder, activation in _weights(network, operators) if rounding is not None else ():
        scale = numpy_helper.to_array(constants[decoder.input[1]])
        other = numpy_helper.to_array(constants[activation.input[1]]).astype(np.float64)
        changed = (rounding(other * scale) / other).astype(np.float32) if rounding is not None else scale
        name = f"{decoder.name}_as_computed"
        model.graph.initializer.append(numpy_helper.from_array(changed, name))
        next(node for node in model.graph.node if node.name == decoder.name).input[1] = name
    return open_model(model.SerializeToString(), passes=False).run(feed)[0]


def _weights(network: Network, operators: frozenset[str]) -> Iterator[tuple[onnx.NodeProto, onnx.NodeProto]]:
    """DequantizeLinear of a product's constant factor, and that of its other one."""
    for node in network.nodes:
        if node.op_type not in operators:
            continue
        first, second = (network.producer(name) for name in node.input[:2])
        if first is None or second is None or {first.op_type, second.op_type} != {"DequantizeLinear"}:
            continue
        encoder = network.producer(second.input[0])
        if encoder is not None and network.is_constant(encoder.input[0]):
            yield second, first


def write(source: Path, ranges: Ranges, path: Path, *, raised: bool) -> None:
    furthest = scales.FURTHEST_RAISED["int8"] if raised else 1.0
    network = open_network(source)
    with patch.dict(scales.FURTHEST_RAISED, {"int8": furthest}):
        quantise(network, ranges.amax, Quantisation("int8", "fp16"))
    network.save(path, {})


def engine_outputs(graph: Path, feed: Feed, batch: int) -> Values:
    from pybench.runtimes.tensorrt.building import BuildOptions, build_engine
    from pybench.runtimes.tensorrt.session import open_session

    path = graph.with_suffix(".engine")
    options = BuildOptions(tf32=False, batch=batch, tokens=TOKENS, timing_cache=graph.parent / "timing.cache")
    build_engine(graph, path, options)
    outputs: Values = open_session(path, launch="enqueue", device="auto").run(feed)[0]
    return outputs


def row(name: str, outputs: Values, file: Values, reference: Values) -> str:
    a, b, c = (each.astype(np.float64).ravel() for each in (outputs, file, reference))
    to_file, to_fp32 = (float(np.linalg.norm(a - other) / np.linalg.norm(other)) for other in (b, c))
    return f"{name:22} {to_file:9.4f} {to_fp32:9.4f} {float(a @ c / (c @ c)):9.4f}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--model", default="vgg16", choices=list(MODELS))
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--engines", action="store_true", help="build both, too: needs TensorRT and a GPU")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    source = options.out / f"{options.model}.onnx"
    export_onnx(build(options.model), MODELS[options.model], source, {})
    specs = onnxruntime.open_session(source, precision="fp32", threads=1, device="cpu").inputs

    def inputs(batch: int, seed: int) -> Feed:
        return random_arrays(specs, options.model, batch, TOKENS, seed)

    samples = [inputs(CALIBRATION_BATCH, 100 + number) for number in range(CALIBRATION_BATCHES)]
    ranges, feed = find_ranges(open_network(source), samples, "minmax"), inputs(options.batch, JUDGES)
    reference, _ = outputs_of(source, "fp32", [feed])
    for raised in (False, True):
        path = options.out / f"{options.model}-{'raised' if raised else 'plain'}.onnx"
        write(source, ranges, path, raised=raised)
        file, _ = outputs_of(path, PRECISION, [feed])
        title = "weights' scales raised" if raised else "scales of the ranges"
        print(f"\n{title:22} {'to file':>9} {'to FP32':>9} {'gain':>9}")
        print(row("the file", file, file, reference))
        for hypothesis in HYPOTHESES:
            print(row(hypothesis, predicted(path, hypothesis, feed), file, reference), flush=True)
        if options.engines:
            print(row("the engine", engine_outputs(path, feed, options.batch), file, reference), flush=True)


if __name__ == "__main__":
    main()
