# SPDX-License-Identifier: Apache-2.0
"""What an engine computes, against what its graph says: the inspector proves the types, this the numbers.

The first output of the graph is compared with the engine's of the same name, because builders put outputs in orders of
their own. The same inputs go through the engine, through its ONNX file on a CPU, rounded as its types say, and through
the FP32 graph that the file was made of. The inputs are images, where the model has some, else seeded random ones, as
in a calibration.

An engine may differ from its file by what the file differs from FP32, give or take what another order of sums does. An
engine that differs more computes something else, whatever its kernels are called. The exception is an engine that is no
further from FP32 than the file may be: its kernels round less than the file says. A DistilBERT in INT8 was 0.040 from
its file and 0.024 from FP32, where the file is 0.029 from FP32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pybench.artefacts.request import MakeRequest
from pybench.artefacts.samples import CalibrationSamples
from pybench.catalogue.precisions import floating_type, quantised_type
from pybench.errors import InputError, UnsupportedError
from pybench.measurement.inputs import Arrays, fed_ranges, random_arrays
from pybench.onnx_file.graph import read_graph
from pybench.onnx_file.inputs import fixed_batch
from pybench.precision.execution import compare, outputs_of

SAMPLES = 8  # different ones; an engine of a larger batch is given them over and over
SEED = 1
# Beyond the file's own relative error: TensorRT adds in another order, and TF32 is no type of the file. Measured for a
# ResNet-50 on an H200: 3e-7 (FP32), 1e-3 (FP16), 3e-3 (BF16), 0.016 (INT8, whose file is 0.17 from FP32).
ALLOWED_MORE = 1e-2

Run = Callable[[Arrays], Mapping[str, npt.NDArray[Any]]]  # input -> array, to output -> array


def judge_outputs(run: Run, request: MakeRequest, graph: Path, batch: int, tokens: int) -> dict[str, Any]:
    """`agree` (None, with a `reason`, where the graph cannot be run on a CPU), and the errors that say why.

    `run`: the engine; `request`: of its making; `graph`: the file that it was built of.
    """
    precision = request.parameters["precision"]
    # An engine in FP32 or TF32 is built of the FP32 graph itself, so there is no other file to compare with.
    is_origin = floating_type(precision) == "fp32" and quantised_type(precision) is None
    origin = graph if is_origin else request.source("origin", "model") or graph
    try:
        name = read_graph(graph).outputs[0].name
        feed, source = _feed(request, origin, batch, tokens)
        reference, _ = outputs_of(origin, "fp32", [feed], output=name)
        expected, method = outputs_of(graph, precision, [feed], output=name)
    except (InputError, UnsupportedError) as error:  # such as operators that only TensorRT has (plug-ins)
        return {"agree": None, "reason": error.message}
    samples = len(next(iter(feed.values())))
    rows = np.arange(batch) % samples
    engine = run({given: array[rows] for given, array in feed.items()})[name][:samples]
    return _judged(reference, expected, engine) | {"method": method, "samples": samples, "inputs": source}


def _feed(request: MakeRequest, origin: Path, batch: int, tokens: int) -> tuple[Arrays, str]:
    """Inputs of a few samples, or of the whole batch where the file has it fixed; and where they come from."""
    from pybench.runtimes import onnxruntime

    parameters = request.parameters
    session = onnxruntime.open_session(origin, precision="fp32", threads=1, device="cpu")
    specs = session.inputs
    is_free = all(spec.shape and spec.shape[0] is None for spec in specs)
    samples = min(batch, SAMPLES) if is_free else batch
    wanted = {**parameters, "calibration_images": samples}
    fixed = fixed_batch(read_graph(origin).fed)
    images = CalibrationSamples(specs, fixed, wanted, request.files, request.models, session.metadata)
    if images.source != "random":
        return images[0], images.source
    ranges = fed_ranges(request.files, session.metadata)
    return random_arrays(specs, parameters["model"], samples, tokens, SEED, request.models, ranges), images.source


def _judged(reference: npt.NDArray[Any], expected: npt.NDArray[Any], engine: npt.NDArray[Any]) -> dict[str, Any]:
    of_graph, of_engine = compare(reference, expected), compare(reference, engine)
    apart = compare(expected, engine).relative_error
    found: dict[str, Any] = {
        "graph_against_fp32_relative_error": of_graph.relative_error,
        "engine_against_graph_relative_error": apart,
        **{f"engine_against_fp32_{name}": value for name, value in asdict(of_engine).items() if name != "samples"},
    }
    if of_graph.relative_error is None:
        return found | {"agree": None, "reason": of_graph.reason}
    allowed = of_graph.relative_error + ALLOWED_MORE
    agree = any(error is not None and error <= allowed for error in (apart, of_engine.relative_error))
    return found | {"agree": agree, "reason": None, "allowed_relative_error": allowed}
