# SPDX-License-Identifier: Apache-2.0
"""Making of an ONNX file in FP32: a built-in model, or one of a library, exported."""

from __future__ import annotations

from pathlib import Path

from pybench.artefacts.program import WEIGHTS, built_by_library
from pybench.artefacts.request import MakeRequest
from pybench.catalogue.zoo import library_of
from pybench.measurement.result import Result, Validity
from pybench.precision.audit import audit_onnx


def make(request: MakeRequest, path: Path) -> Result:
    from pybench.models.export import OPSET

    of_library = library_of(request.parameters["model"]) is not None
    weights = _export_of_library(request, path) if of_library else _export(request, path)
    found = audit_onnx(path, "fp32")
    result = Result(labels={"weights": weights, "opset": OPSET, "precision_realised": found.realised})
    result.valid["precision"] = Validity(found.valid, found.reasons)
    return result


def _export(request: MakeRequest, path: Path) -> str:
    """Writes a built-in model; returns where its weights come from."""
    from pybench.models.building import build
    from pybench.models.export import export_decoder, export_onnx, export_part

    parameters, checkpoint = request.parameters, request.source("checkpoint")
    model = build(request.model, seed=parameters["seed"], checkpoint=checkpoint)
    weights = "checkpoint" if checkpoint is not None else f"random, seed {parameters['seed']}"
    part, facts = parameters.get("part"), {WEIGHTS: weights}
    row = request.model
    if part is not None:
        export_part(model, part, path, facts)
    elif parameters.get("cached"):
        export_decoder(model, row.input, row.longest_sequence, path, facts)
    else:
        export_onnx(model, row, path, facts)
    return weights


def _export_of_library(request: MakeRequest, path: Path) -> str:
    """Writes a library's model, with attention as the products that a quantiser sees."""
    from pybench.models.export import OUTPUT_NAME, Example, export_decoder, export_module
    from pybench.models.zoo.program import example, free_sizes, refused_export

    built, facts = built_by_library(request, fused=False)
    names = tuple(feed.name for feed in built.feeds.inputs)
    with refused_export(request.parameters["model"]):
        if request.parameters.get("cached"):
            export_decoder(built.module, names[0], built.feeds.longest, path, facts)
        else:
            given = Example(example(built.feeds), free_sizes(built.feeds), names, (OUTPUT_NAME,))
            export_module(built.module, given, path, facts)
    return facts[WEIGHTS]
