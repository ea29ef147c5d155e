# SPDX-License-Identifier: Apache-2.0
"""Making of an engine: TensorRT builds it on the GPU it is for, and the time and energy of that are measured.

Two files are next to the engine. `layers.json` contains what the inspector says of it. `graph.json` contains what a run
requires to audit the engine: FLOPs by node, nodes that stay in higher precision, and the graph's own notes. It also
says whether the engine computes what the graph says (`engine_outputs`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pybench import measure
from pybench.artefacts.engine_outputs import judge_outputs
from pybench.artefacts.request import MakeRequest
from pybench.catalogue.causes import Cause
from pybench.catalogue.precisions import allows_tf32
from pybench.errors import InputError, UnsupportedError
from pybench.kernels.engine import LAYERS_FILE
from pybench.kernels.executed import QDQ
from pybench.measure.quantity import Quantity
from pybench.measurement.audits import GRAPH_FILE, with_outputs
from pybench.measurement.result import Result, Validity
from pybench.onnx_file.facts import not_counted
from pybench.onnx_file.graph import read_model
from pybench.precision.audit import audit_onnx
from pybench.precision.engine_audit import audit_engine
from pybench.precision.flops import count_flops
from pybench.precision.notes import read_notes
from pybench.runtimes import cuda
from pybench.runtimes.tensorrt.building import BuildOptions, BuiltEngine, build_engine, timing_cache_file
from pybench.runtimes.tensorrt.session import TensorRtSession

BUILD = "build"  # the window


def make(request: MakeRequest, path: Path) -> Result:
    parameters, source = request.parameters, request.needed("onnx", "model")
    index, device = device_for(parameters["platform"])
    cuda.Context(index)  # TensorRT builds for the GPU whose context is current
    cache = timing_cache_file(parameters["platform"], parameters["build"])
    options = BuildOptions(
        tf32=allows_tf32(parameters["precision"]),
        batch=parameters["batch"],
        tokens=parameters["seq_len"] or 0,
        workspace_bytes=parameters["workspace_bytes"],
        optimisation_level=parameters["optimisation_level"],
        aux_streams=parameters["aux_streams"],
        timing_cache=cache,
    )
    sensor = request.sensors.get(device["uuid"], measure.ASSUMED)
    with measure.MeasuringSession(device["uuid"], profile=sensor) as session, session.window(BUILD) as window:
        built = build_engine(source, path, options)
        window.iterations = 1
    result = _described(built, device, cache)
    result.metrics |= session.energy(BUILD)
    engine, precision = TensorRtSession(path, "enqueue", index), parameters["precision"]
    graph = _graph_facts(source, options, precision)
    graph["outputs"] = judge_outputs(
        lambda inputs: dict(zip(engine.output_names, engine.run(inputs), strict=True)),
        request,
        source,
        options.batch,
        options.tokens,
    )
    (path.parent / GRAPH_FILE).write_text(json.dumps(graph, indent=1))
    _inspect(engine, path, graph, precision, result)
    return result


def device_for(platform: str) -> tuple[int, dict[str, Any]]:
    """Number and facts of the first GPU of the kind that the engine is for.

    Raises UnsupportedError if there is none: TensorRT must not be touched then.
    """
    for index, device in enumerate(cuda.devices()):
        if platform.endswith(f" on {device['name']}"):
            return index, device
    raise UnsupportedError(
        f"there is no GPU here for {platform}", code=Cause.NO_GPU, hint="build where the runs will be"
    )


def _described(built: BuiltEngine, device: dict[str, Any], cache: Path) -> Result:
    result = Result(
        labels={
            "device": device["uuid"],
            "timing_cache": cache.name,
            "timing_cache_sha256": built.cache_sha256,
            "input_shapes": {name: list(shape) for name, shape in built.shapes.items()},
            "start_s": built.start_s,
            "parse_s": built.parse_s,
            "warnings": list(built.warnings),
        }
    )
    warmth = "empty" if built.cache_sha256 is None else "warm"
    result.metrics["build_s"] = Quantity(value=built.seconds, window=BUILD, method=f"{warmth} timing cache")
    return result


def _graph_facts(source: Path, options: BuildOptions, precision: str) -> dict[str, Any]:
    """What the audit of an engine has to know of its graph.

    `node_flops` None: TensorRT took a graph whose shapes ONNX cannot infer; the audit then goes by layers alone.
    `not_counted`: what else multiplies, and is not in them.
    `kept`: what the file declares; where it declares nothing (another quantiser's, a user's own), what its graph leaves
    unquantised: the engine is judged by the graph that it was given.
    """
    notes = read_notes(source)
    left = audit_onnx(source, precision).facts.get("left_undeclared", ())
    flops: dict[str, int] | None
    try:
        flops = count_flops(source, options.batch, options.tokens)
    except InputError:
        flops = None
    kept = notes.kept | dict.fromkeys(left, "undeclared")
    model = read_model(source)
    qdq = sum(node.op in QDQ for node in model.graph.nodes)
    counts = {"node_flops": flops, "not_counted": not_counted(model)}
    return {**counts, "kept": kept, "metadata": notes.metadata, "qdq_nodes": qdq}


def _inspect(session: TensorRtSession, path: Path, graph: dict[str, Any], precision: str, result: Result) -> None:
    """Audits by the inspector alone: times of layers are taken in the runs."""
    layers = session.layer_information()
    (path.parent / LAYERS_FILE).write_text(layers)
    found = with_outputs(
        audit_engine(
            layers, precision, node_flops=graph["node_flops"], keep=graph["kept"], tf32=allows_tf32(precision)
        ),
        graph["outputs"],
    )
    result.labels |= {"precision_realised": found.realised, "precision_facts": found.facts}
    result.labels |= {name: session.labels[name] for name in ("runtime_version", "aux_streams", "scratch_bytes")}
    result.valid["precision"] = Validity(found.valid, found.reasons)
