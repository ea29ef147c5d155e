# SPDX-License-Identifier: Apache-2.0
"""What cases need, made by recipe: a trained checkpoint, an ONNX file, an int8 ONNX file. Equal recipes, equal files.

The result says what was made: how good the trained weights are, how the int8 outputs agree with FP32's. The int8 file
itself carries how it was calibrated, so that every run of it can doubt it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pybench.cautions import Caution
from pybench.errors import UnsupportedError
from pybench.models.catalogue import BUILT_IN
from pybench.precision.audit import audit_onnx
from pybench.workloads.calibration import CalibrationSamples
from pybench.workloads.doubts import CALIBRATION_KEY, calibration_cautions, images_identity
from pybench.workloads.result import Measured, Result, Verdict

COMPARED_SAMPLES = 32  # on which int8 outputs are compared with FP32's


def make(recipe: Mapping[str, Any], inputs: Mapping[str, Path], files: Mapping[str, Path], folder: Path) -> Result:
    """Writes `folder / recipe["file"]`. See `pybench.workloads.make`."""
    parameters, path = recipe["parameters"], folder / recipe["file"]
    if recipe["kind"] == "checkpoint":
        result = _train(parameters, path)
    elif recipe["kind"] == "onnx":
        result = _export(parameters, inputs, files, path)
    elif recipe["kind"] == "onnx-int8":
        result = _quantise(parameters, inputs, files, path)
    else:
        raise UnsupportedError(f"no artefact of the kind {recipe['kind']}", code="no_such_artefact")
    result.labels |= {"device": "cpu", "kind": recipe["kind"]}
    result.metrics["model_bytes"] = Measured(value=float(path.stat().st_size), method="size of the file")
    return result


def _train(parameters: Mapping[str, Any], path: Path) -> Result:
    import torch

    from pybench.models.building import build
    from pybench.models.images import read_digits
    from pybench.models.training import train_digits

    torch.set_num_threads(1)  # the order of sums must not depend on the machine's number of CPUs
    model = train_digits(build(parameters["model"], seed=parameters["seed"]), read_digits("train"), parameters["seed"])
    judges = read_digits("validation")
    with torch.inference_mode():
        hits = model(torch.from_numpy(judges.load_all())).argmax(1).numpy() == judges.labels
    torch.save(model.state_dict(), path)
    result = Result(labels={"trained_on": f"{parameters['trained_on']}, the images that do not judge"})
    result.metrics["top1_percent"] = Measured(
        value=100 * float(hits.mean()), samples=len(hits), method="FP32, held-out images"
    )
    return result


def _export(parameters: Mapping[str, Any], inputs: Mapping[str, Path], files: Mapping[str, Path], path: Path) -> Result:
    from pybench.models.building import build
    from pybench.models.export import OPSET, export_onnx

    checkpoint = inputs.get("checkpoint") or files.get("checkpoint")
    model = build(parameters["model"], seed=parameters["seed"], checkpoint=checkpoint)
    weights = "checkpoint" if checkpoint is not None else f"random, seed {parameters['seed']}"
    export_onnx(model, BUILT_IN[parameters["model"]], path, {"pybench.weights": weights})
    found = audit_onnx(path, "fp32")
    result = Result(labels={"weights": weights, "opset": OPSET, "precision_realised": found.realised})
    result.valid["precision"] = Verdict(found.valid, found.reasons)
    return result


def _quantise(
    parameters: Mapping[str, Any], inputs: Mapping[str, Path], files: Mapping[str, Path], path: Path
) -> Result:
    from pybench.runtimes import onnxruntime

    source = inputs.get("onnx") or files["model"]
    if audit_onnx(source, "fp32").facts["quantize_linear_nodes"]:
        return _keep_quantised(source, path)
    from pybench.precision import int8

    reference = onnxruntime.open_session(source, precision="fp32", threads=1, device="cpu")
    samples = CalibrationSamples(reference.inputs, parameters, files)
    calibration = {
        "method": parameters["calibration"],
        "samples": samples.total,
        "source": samples.source,
        "identity": images_identity(parameters["images"], parameters["images_sha256"]),
        "held_out": samples.held_out,
    }
    metadata = {CALIBRATION_KEY: json.dumps(calibration, sort_keys=True)}
    int8.quantise(source, path, parameters["calibration"], samples, metadata)
    quantised = onnxruntime.open_session(path, precision="int8", threads=1, device="cpu")
    result = Result(labels={"calibration": calibration})
    compared = range(min(len(samples), -(-COMPARED_SAMPLES // samples.batch)))
    before = np.concatenate([_rows(reference.run(samples[i])) for i in compared])
    after = np.concatenate([_rows(quantised.run(samples[i])) for i in compared])
    result.labels |= {f"against_fp32_{name}": value for name, value in asdict(int8.compare(before, after)).items()}
    return _audited(result, path, calibration_cautions(metadata))


def _keep_quantised(source: Path, path: Path) -> Result:
    """A user's file that is quantised already is taken as it is."""
    shutil.copyfile(source, path)
    return _audited(Result(labels={"calibration": "in the file"}), path, [])


def _audited(result: Result, path: Path, cautions: Sequence[Caution]) -> Result:
    found = audit_onnx(path, "int8")
    result.labels |= {"precision_realised": found.realised, "precision_facts": found.facts}
    result.valid["precision"] = Verdict(found.valid, found.reasons)
    result.cautions += cautions
    return result


def _rows(outputs: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    return outputs[0].reshape(len(outputs[0]), -1)
