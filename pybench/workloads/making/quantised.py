# SPDX-License-Identifier: Apache-2.0
"""Making of a quantised ONNX file, and what its outputs have in common with FP32's.

The file itself carries how it was calibrated, so that every run of it can doubt it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pybench.cautions import Caution
from pybench.errors import UnsupportedError
from pybench.precision.audit import audit_onnx
from pybench.workloads.doubts import CALIBRATION_KEY, calibration_cautions, images_identity
from pybench.workloads.making.order import Order
from pybench.workloads.making.samples import CalibrationSamples
from pybench.workloads.result import Result, Verdict

COMPARED_SAMPLES = 32  # on which int8 outputs are compared with FP32's


def make(order: Order, path: Path) -> Result:
    """Writes the quantised file. Only onnxruntime's quantiser and int8 in FP32 are known here."""
    from pybench.runtimes import onnxruntime

    parameters, source = order.parameters, order.needed("onnx", "model")
    if parameters["quantiser"] != "onnxruntime" or parameters["precision"] != "int8":
        raise UnsupportedError(f"{parameters['quantiser']} makes no {parameters['precision']}", code="no_quantiser")
    if audit_onnx(source, "fp32").facts["quantize_linear_nodes"]:
        return _keep_quantised(source, path)
    from pybench.precision import int8

    reference = onnxruntime.open_session(source, precision="fp32", threads=1, device="cpu")
    samples = CalibrationSamples(reference.inputs, parameters, order.files)
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
