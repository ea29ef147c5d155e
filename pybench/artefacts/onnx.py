# SPDX-License-Identifier: Apache-2.0
"""Making of an ONNX file in FP32: a built-in model, exported."""

from __future__ import annotations

from pathlib import Path

from pybench.artefacts.request import MakeRequest
from pybench.measurement.result import Result, Validity
from pybench.precision.audit import audit_onnx


def make(request: MakeRequest, path: Path) -> Result:
    from pybench.models.building import build
    from pybench.models.export import OPSET, export_decoder, export_onnx

    parameters, checkpoint = request.parameters, request.source("checkpoint")
    model = build(request.model, seed=parameters["seed"], checkpoint=checkpoint)
    weights = "checkpoint" if checkpoint is not None else f"random, seed {parameters['seed']}"
    export = export_decoder if parameters.get("cached") else export_onnx
    export(model, request.model, path, {"pybench.weights": weights})
    found = audit_onnx(path, "fp32")
    result = Result(labels={"weights": weights, "opset": OPSET, "precision_realised": found.realised})
    result.valid["precision"] = Validity(found.valid, found.reasons)
    return result
