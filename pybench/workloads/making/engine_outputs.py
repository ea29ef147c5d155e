# SPDX-License-Identifier: Apache-2.0
"""What an engine computes, against what its graph says: the inspector proves the types, this the numbers.

The same inputs (images, where the model has some, else seeded random ones, as in a calibration) go through the engine,
through its ONNX file on a CPU, rounded as its types say, and through the FP32 graph that the file was made of. An
engine may be as far from FP32 as its file is, give or take what another order of sums does; one that is much further
computes something else, whatever its kernels are called.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pybench.errors import InputError, UnsupportedError
from pybench.precision.execution import compare, outputs_of
from pybench.workloads.inputs import Arrays, random_arrays
from pybench.workloads.making.order import Order
from pybench.workloads.making.samples import CalibrationSamples

SAMPLES = 8  # different ones; an engine of a larger batch is given them over and over
SEED = 1
# The engine's distance from FP32 (relative error of all outputs together) may be three times its file's, and 1 % more:
# TensorRT adds in another order, and TF32 is no type of the file.
ALLOWED_RATIO, ALLOWED_MORE = 3.0, 1e-2

Run = Callable[[Arrays], list[npt.NDArray[Any]]]


def judge_outputs(run: Run, order: Order, graph: Path, batch: int, tokens: int) -> dict[str, Any]:
    """`agree` (None, with a `reason`, where the graph cannot be run on a CPU), and the errors that say why.

    `run`: the engine; `order`: of its making; `graph`: the file that it was built of.
    """
    from pybench.runtimes import onnxruntime

    parameters = order.parameters
    origin, precision = order.source("origin", "model") or graph, parameters["precision"]
    specs = onnxruntime.open_session(origin, precision="fp32", threads=1, device="cpu").inputs
    is_free = all(spec.shape and spec.shape[0] is None for spec in specs)
    samples = min(batch, SAMPLES) if is_free else batch
    images = CalibrationSamples(specs, {**parameters, "calibration_images": samples}, order.files)
    feed = images[0] if images.source != "random" else random_arrays(specs, parameters["model"], samples, tokens, SEED)
    rows = np.arange(batch) % samples
    engine = run({name: array[rows] if is_free else array for name, array in feed.items()})[0][:samples]
    try:
        reference, _ = outputs_of(origin, "fp32", [feed])
        expected, method = outputs_of(graph, precision, [feed])
    except (InputError, UnsupportedError) as error:
        return {"agree": None, "reason": error.message, "samples": samples, "inputs": images.source}
    return _judged(reference, expected, engine) | {"method": method, "samples": samples, "inputs": images.source}


def _judged(reference: npt.NDArray[Any], expected: npt.NDArray[Any], engine: npt.NDArray[Any]) -> dict[str, Any]:
    of_graph, of_engine = compare(reference, expected), compare(reference, engine)
    found: dict[str, Any] = {
        "graph_against_fp32_relative_error": of_graph.relative_error,
        "engine_against_graph_relative_error": compare(expected, engine).relative_error,
        **{f"engine_against_fp32_{name}": value for name, value in asdict(of_engine).items() if name != "samples"},
    }
    if of_graph.relative_error is None:
        return found | {"agree": None, "reason": of_graph.reason}
    allowed = ALLOWED_RATIO * of_graph.relative_error + ALLOWED_MORE
    agree = of_engine.relative_error is not None and of_engine.relative_error <= allowed
    return found | {"agree": agree, "reason": None, "allowed_relative_error": allowed}
