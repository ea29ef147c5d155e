# SPDX-License-Identifier: Apache-2.0
"""Making of a calibration: ranges of a graph's activations on declared samples, as JSON. INT8 and FP8 share it."""

from __future__ import annotations

import json
from pathlib import Path

from pybench.artefacts.request import MakeRequest
from pybench.artefacts.samples import CalibrationSamples
from pybench.catalogue.quantisers import USUAL
from pybench.measurement.result import Result
from pybench.precision.audit import audit_onnx, require_fp32

SCHEMA_VERSION = 1


def make(request: MakeRequest, path: Path) -> Result:
    """Writes {schema_version, rule, calibration, amax}; a file that is quantised already has no ranges to find."""
    from pybench.precision.calibration import find_ranges
    from pybench.precision.network import open_network

    parameters, source = request.parameters, request.needed("onnx", "model")
    if audit_onnx(source, "fp32").facts["quantize_linear_nodes"]:
        _write(path, {"calibration": None, "amax": {}})
        return Result(labels={"calibration": "in the file"})
    require_fp32(source)
    samples = CalibrationSamples.of_file(source, request, parameters)
    ranges = find_ranges(open_network(source), samples, parameters["calibration"])
    calibration = samples.record(ranges.method, ranges.sha256)
    _write(path, {"rule": USUAL.calibrations[ranges.method], "calibration": calibration, "amax": ranges.amax})
    return Result(
        labels={"calibration": calibration, "rule": USUAL.calibrations[ranges.method], "tensors": len(ranges.amax)}
    )


def _write(path: Path, content: dict[str, object]) -> None:
    path.write_text(json.dumps({"schema_version": SCHEMA_VERSION, **content}, indent=1))
