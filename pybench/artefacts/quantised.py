# SPDX-License-Identifier: Apache-2.0
"""Making of a quantised ONNX file by one of the quantisers, and what its outputs have in common with FP32's.

`pybench` works from ranges that were found before. `onnxruntime` and `modelopt` find theirs by themselves, on the same
samples. `qat` finds them while it trains the model on, and `weight-only` needs none. The file itself carries how it was
calibrated, so that every run of it can doubt it.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybench.artefacts.agreement import judge_agreement
from pybench.artefacts.request import MakeRequest
from pybench.artefacts.samples import COMPARED_SAMPLES, CalibrationSamples
from pybench.catalogue.causes import Cause
from pybench.catalogue.cautions import Caution
from pybench.catalogue.code import named_code
from pybench.catalogue.precisions import floating_type, quantised_type
from pybench.catalogue.quantisers import QUANTISERS, Quantiser, quantisers_to
from pybench.errors import UnsupportedError
from pybench.measure.quantity import Quantity
from pybench.measurement.doubts import CALIBRATION_KEY, calibration_cautions
from pybench.measurement.result import Result, Validity
from pybench.onnx_file.graph import read_graph
from pybench.onnx_file.node_names import KEEP_LIST
from pybench.onnx_file.products import DEQUANTISE, QUANTISE
from pybench.precision.audit import audit_onnx, require_fp32
from pybench.precision.notes import KEPT_KEY

if TYPE_CHECKING:
    from pybench.precision.modelopt import Search

FOUND_RANGES = "ranges"  # the role of a file in which a quantiser leaves what it found, and finds it the next time
_CHOSEN = ("scheme", "range", "granularity", "block_size", "placement")


def make(request: MakeRequest, path: Path) -> Result:
    """Writes the quantised file."""
    parameters, source = request.parameters, request.needed("onnx", "model")
    precision, quantiser = parameters["precision"], QUANTISERS[parameters["quantiser"]]
    given = audit_onnx(source, "fp32").facts
    if given["quantize_linear_nodes"] or given.get("stored_weights"):
        return _keep_quantised(source, path, precision)
    require_fp32(source)
    samples = CalibrationSamples.of_file(source, request, {"calibration_images": COMPARED_SAMPLES, **parameters})
    _refuse(quantiser, str(quantised_type(precision)), parameters.get("calibration"))
    calibration, labels = named_code(quantiser.make)(request, source, path, samples)
    made = {
        "quantiser": quantiser.name,
        **{name: parameters[name] for name in _CHOSEN if name in parameters},
    }
    labels = {"calibration": calibration, **made, **labels}
    result = Result(labels=labels)
    judge_agreement(result, source, path, precision, samples)
    doubts = calibration_cautions({CALIBRATION_KEY: json.dumps(calibration)}, parameters.get("calibration_images"))
    return _audited(result, path, precision, doubts)


def _refuse(quantiser: Quantiser, kind: str, calibration: str | None) -> None:
    """Raises UnsupportedError for a type or calibration that a quantiser does not have; a plan refuses most of them."""
    if kind not in quantiser.types:
        raise UnsupportedError(
            f"the quantiser {quantiser.name} does not round to {kind}: {quantiser.why_not}",
            code=Cause.NO_QUANTISER,
            hint=f"use quantiser: {' or '.join(quantisers_to(kind))}",
        )
    if calibration not in quantiser.calibrations and quantiser.is_calibrated:
        raise UnsupportedError(
            f"the quantiser {quantiser.name} does not support calibration by {calibration}",
            code=Cause.NO_CALIBRATION,
            hint=f"use calibration: {' or '.join(quantiser.calibrations)}",
        )


def by_pybench(
    request: MakeRequest, source: Path, path: Path, samples: CalibrationSamples
) -> tuple[dict[str, Any], dict[str, Any]]:
    from pybench.precision.network import open_network
    from pybench.precision.placement import Quantisation
    from pybench.precision.qdq import quantise

    parameters = request.parameters
    stored = json.loads(request.needed("calibration").read_text())
    kind, floating = quantised_type(parameters["precision"]), floating_type(parameters["precision"])
    network = open_network(source)
    quantisation = Quantisation(
        str(kind),
        floating,
        kept_expression(request),
        has_full_range=parameters.get("range") == "full",
        scales_weights_whole=parameters.get("granularity") == "tensor",
        is_naive=parameters.get("placement") == "naive",
    )
    placement, kept = quantise(network, stored["amax"], quantisation)
    network.save(path, _metadata(stored["calibration"], kept))
    return stored["calibration"], {"kept": kept, "activations_quantised": len(placement.readers)}


def by_onnxruntime(
    request: MakeRequest, source: Path, path: Path, samples: CalibrationSamples
) -> tuple[dict[str, Any], dict[str, Any]]:
    from pybench.precision import int8
    from pybench.precision.conversion import convert, matching_nodes
    from pybench.precision.network import open_network

    parameters = request.parameters
    floating = floating_type(parameters["precision"])
    expression = kept_expression(request)
    excluded = matching_nodes(open_network(source), expression) if expression else set()
    calibration = samples.record(parameters["calibration"], samples.sha256)
    method, scheme = parameters["calibration"], parameters["scheme"]
    by_channel = parameters.get("granularity") != "tensor"
    kept = int8.quantise(
        source,
        path,
        method,
        samples,
        _metadata(calibration),
        scheme=scheme,
        by_channel=by_channel,
        pairs_weights=parameters.get("weights") == "paired",
        excluded=excluded,
        ranges=request.inputs.get(FOUND_RANGES),
    )
    if floating != "fp32":
        network = open_network(path)
        named = [name for name, reason in kept.items() if reason == KEEP_LIST]
        convert(network, floating, "|".join(map(re.escape, named)) or None)
        network.save(path, {})
    return calibration, {"kept": kept}


def kept_expression(request: MakeRequest) -> str | None:
    """Which nodes stay in FP32: those that the plan names, and those that a search found."""
    found = request.inputs.get("kept")
    if found is None:
        expression: str | None = request.parameters["keep_fp32"]
        return expression
    return "|".join(map(re.escape, json.loads(found.read_text())["kept"])) or None


def at_run(request: MakeRequest, source: Path, path: Path, samples: CalibrationSamples) -> tuple[None, dict[str, Any]]:
    from pybench.precision import int8
    from pybench.precision.conversion import matching_nodes
    from pybench.precision.network import open_network

    parameters = request.parameters
    excluded = matching_nodes(open_network(source), parameters["keep_fp32"]) if parameters["keep_fp32"] else set()
    by_channel = parameters.get("granularity") != "tensor"
    kept = int8.quantise_at_run(source, path, by_channel=by_channel, excluded=excluded)
    stamp = {KEPT_KEY: json.dumps(kept, sort_keys=True)}
    int8.stamp(path, stamp)
    return None, {"kept": kept}


def of_weights(
    request: MakeRequest, source: Path, path: Path, samples: CalibrationSamples
) -> tuple[None, dict[str, Any]]:
    from pybench.precision import int8, weight_only
    from pybench.precision.conversion import matching_nodes
    from pybench.precision.network import open_network

    parameters = request.parameters
    excluded = matching_nodes(open_network(source), parameters["keep_fp32"]) if parameters["keep_fp32"] else set()
    size = parameters["block_size"]
    kind = str(quantised_type(parameters["precision"]))
    kept = weight_only.store_weights(
        source, path, kind, block_size=size, scheme=parameters["scheme"], excluded=excluded
    )
    int8.stamp(path, {KEPT_KEY: json.dumps(kept, sort_keys=True)})
    return None, {"kept": kept, "accuracy_level": weight_only.ACCURACY_LEVEL}


def by_modelopt(
    request: MakeRequest, source: Path, path: Path, samples: CalibrationSamples
) -> tuple[dict[str, Any], dict[str, Any]]:
    from pybench.precision import modelopt

    parameters = request.parameters
    calibration = samples.record(parameters["calibration"], samples.sha256)
    mode = QUANTISERS[parameters["quantiser"]].search
    search = None if mode is None else _search(request, source, samples, mode)
    done = modelopt.quantise(
        source, path, parameters["precision"], parameters["calibration"], samples, parameters["keep_fp32"], search
    )
    from pybench.precision.int8 import stamp

    stamp(path, _metadata(calibration))
    return calibration, done


def _search(request: MakeRequest, source: Path, samples: CalibrationSamples, mode: str) -> Search:
    """What a search by measuring needs of this machine. Raises UnsupportedError where there is no such GPU."""
    from pybench.artefacts.engine import device_for
    from pybench.precision.modelopt import Search
    from pybench.runtimes.session import resolved
    from pybench.runtimes.tensorrt import library

    parameters = request.parameters
    _, device = device_for(parameters["platform"])
    shapes = resolved(samples.specs, parameters["batch"], parameters["seq_len"] or 0, str(source))
    tensorrt = Path(library.load().__file__).parents[1]
    return Search(mode, tensorrt, parameters["platform"], device["uuid"], shapes)


def by_training(
    request: MakeRequest, source: Path, path: Path, samples: CalibrationSamples
) -> tuple[dict[str, Any], dict[str, Any]]:
    from pybench.artefacts.rounding import train_with_rounding
    from pybench.precision.conversion import convert
    from pybench.precision.network import open_network

    floating = floating_type(request.parameters["precision"])
    calibration = train_with_rounding(request, path)
    network = open_network(path)
    if floating != "fp32":
        convert(network, floating, None)
    network.save(path, _metadata(calibration, {}))
    return calibration, {}


def _metadata(calibration: dict[str, Any], kept: dict[str, str] | None = None) -> dict[str, str]:
    """What the file says of itself. `kept`: None where the quantiser decides by rules of its own."""
    metadata = {CALIBRATION_KEY: json.dumps(calibration, sort_keys=True)}
    return metadata if kept is None else metadata | {KEPT_KEY: json.dumps(kept, sort_keys=True)}


def _keep_quantised(source: Path, path: Path, precision: str) -> Result:
    """A user's file that is quantised already is taken as it is."""
    shutil.copyfile(source, path)
    return _audited(Result(labels={"calibration": "in the file"}), path, precision, [])


def _audited(result: Result, path: Path, precision: str, cautions: Sequence[Caution]) -> Result:
    found = audit_onnx(path, precision)
    result.metrics["qdq_nodes_count"] = Quantity(value=float(_pair_nodes(path)), method="counted in the ONNX file")
    result.labels |= {"precision_realised": found.realised, "precision_facts": found.facts}
    result.valid["precision"] = Validity(found.valid, found.reasons)
    result.cautions += cautions
    return result


def _pair_nodes(path: Path) -> int:
    """Nodes that quantise or dequantise."""
    return sum(node.op in (QUANTISE, DEQUANTISE) for node in read_graph(path).nodes)
