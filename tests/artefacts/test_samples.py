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


def samples_of(path: Path, wanted: int) -> CalibrationSamples:
    parameters = {"model": "model.onnx", "calibration_images": wanted, "images": None}
    return CalibrationSamples.of_file(path, MakeRequest("onnx-quantised", parameters, {}, {"model": path}), parameters)


def test_ids_of_calibration_come_from_the_whole_table(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    content = model(
        [helper.make_node("Gather", ["table", "ids"], ["y"])],
        [("ids", TensorProto.INT64, ("batch", "tokens"))],
        [("y", TensorProto.FLOAT, ("batch", "tokens", 2))],
        {"table": np.zeros((ROWS, 2), np.float32)},
    )
    onnx.save(content, path)
    samples = samples_of(path, 32)
    assert np.unique(np.concatenate([feed["ids"] for feed in samples])).tolist() == list(range(ROWS))


def test_samples_are_counted_by_the_batch_of_the_file_not_of_its_first_input(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    inputs = [("timestep", TensorProto.FLOAT, (1,)), ("sample", TensorProto.FLOAT, (2, 3))]
    node = helper.make_node("Mul", ["sample", "timestep"], ["y"])
    onnx.save(model([node], inputs, [("y", TensorProto.FLOAT, (2, 3))]), path)
    samples = samples_of(path, 9)
    assert (samples.batch, samples.total, len(samples)) == (2, 8, 4)
    assert {name: array.shape for name, array in samples[0].items()} == {"timestep": (1,), "sample": (2, 3)}


def test_where_leading_sizes_differ_the_first_output_tells_the_batch(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    nodes = [
        helper.make_node("ReduceMean", ["boxes"], ["middle"], axes=[0], keepdims=1),
        helper.make_node("Add", ["x", "middle"], ["y"]),
    ]
    inputs = [("x", TensorProto.FLOAT, (8, 3)), ("boxes", TensorProto.FLOAT, (4, 3))]
    onnx.save(model(nodes, inputs, [("y", TensorProto.FLOAT, (8, 3))], opset=17), path)
    samples = samples_of(path, 20)
    assert (samples.batch, samples.total, len(samples)) == (8, 16, 2)
    assert {name: array.shape for name, array in samples[1].items()} == {"x": (8, 3), "boxes": (4, 3)}
