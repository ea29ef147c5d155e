# SPDX-License-Identifier: Apache-2.0
"""Making of an ONNX file in FP16 or BF16, and what its outputs have in common with FP32's."""

from __future__ import annotations

import json
from pathlib import Path

from pybench.artefacts.agreement import judge_agreement
from pybench.artefacts.request import MakeRequest
from pybench.artefacts.samples import COMPARED_SAMPLES, CalibrationSamples
from pybench.catalogue.precisions import floating_type
from pybench.measurement.result import Result, Validity
from pybench.precision.audit import audit_onnx, require_fp32
from pybench.precision.notes import KEPT_KEY


def make(request: MakeRequest, path: Path) -> Result:
    from pybench.precision.conversion import convert
    from pybench.precision.network import open_network

    parameters, source = request.parameters, request.needed("onnx", "model")
    precision = parameters["precision"]
    require_fp32(source, beside=precision)  # what is in the type already stays as it is
    network = open_network(source)
    done = convert(network, floating_type(precision), parameters["keep_fp32"])
    network.save(path, {KEPT_KEY: json.dumps(done.kept, sort_keys=True)})
    found = audit_onnx(path, precision)
    samples = CalibrationSamples.of_file(source, request, {**parameters, "calibration_images": COMPARED_SAMPLES})
    labels = {
        "opset": network.opset,
        "kept": done.kept,
        "constants_clipped": done.clipped,
        "constants_vanished": done.vanished,
        "compared_on": samples.source,
        "precision_realised": found.realised,
        "precision_facts": found.facts,
    }
    result = Result(labels=labels)
    judge_agreement(result, source, path, precision, samples)
    result.valid["precision"] = Validity(found.valid, found.reasons)
    return result
