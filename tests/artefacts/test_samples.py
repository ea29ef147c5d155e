# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from pybench.artefacts.request import MakeRequest
from pybench.artefacts.samples import CalibrationSamples
from tests.support.onnx_models import model

ROWS = 40


def test_ids_of_calibration_come_from_the_whole_table(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    content = model(
        [helper.make_node("Gather", ["table", "ids"], ["y"])],
        [("ids", TensorProto.INT64, ("batch", "tokens"))],
        [("y", TensorProto.FLOAT, ("batch", "tokens", 2))],
        {"table": np.zeros((ROWS, 2), np.float32)},
    )
    onnx.save(content, path)
    parameters = {"model": "model.onnx", "calibration_images": 32, "images": None}
    request = MakeRequest("onnx-quantised", parameters, {}, {"model": path})
    samples = CalibrationSamples.of_file(path, request, parameters)
    assert np.unique(np.concatenate([feed["ids"] for feed in samples])).tolist() == list(range(ROWS))
