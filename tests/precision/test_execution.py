# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from pybench.precision.conversion import convert
from pybench.precision.execution import compare, compare_files
from pybench.precision.network import as_network
from tests.precision import graphs


def test_an_overflow_in_fp16_is_counted_and_not_averaged(tmp_path: Path) -> None:
    """Scores of 100000 fit into FP32 alone; the second sample is small enough for both."""
    weight = np.array([[1000, 10], [1000, 20]], np.float32)
    made = graphs.model(
        [helper.make_node("MatMul", ["x", "w"], ["y"], "product")], {"x": ["n", 2]}, {"y": ["n", 2]}, {"w": weight}
    )
    network = as_network(made)
    convert(network, "fp16")
    network.save(tmp_path / "fp16.onnx", {})
    feed = {"x": np.array([[50, 50], [0.5, 0.5]], np.float32)}
    labels = compare_files(graphs.saved(made, tmp_path / "fp32.onnx"), tmp_path / "fp16.onnx", "fp16", [feed])
    assert labels["against_fp32_cosine"] is None
    assert labels["against_fp32_relative_error"] is None
    assert labels["against_fp32_non_finite_outputs"] == 1
    assert labels["against_fp32_reason"] == "1 of 4 outputs of the derived graph are NaN or infinite"
    assert labels["against_fp32_top1_agreement_ratio"] == 0.5
    json.dumps(labels, allow_nan=False)


@pytest.mark.parametrize(
    ("reference", "varied", "classes"),
    [
        ([[3.0, 4.0]], None, None),  # one sample
        ([[3.0, 4.0], [3.0, 4.0]], 0.0, 1),
        ([[1.0, 0.0], [0.0, 1.0]], 2**-0.5, 2),
        ([[100.0], [101.0]], 0.5 / np.hypot(100, 101) * 2**0.5, None),  # a number, and no class
        ([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]], 0.0, 2),  # positions differ, samples do not
        ([[np.nan, 0.0], [0.0, 1.0]], None, 2),
    ],
)
def test_what_the_inputs_change_is_the_distance_from_the_mean_over_samples(
    reference: list[Any], varied: float | None, classes: int | None
) -> None:
    found = compare(np.array(reference), np.array(reference) + 1)
    assert found.varied_ratio == (None if varied is None else pytest.approx(varied))
    assert found.origin_classes == classes
    assert (found.signal_error is None) == (not varied)


@pytest.mark.parametrize(
    ("reference", "derived", "reason"),
    [
        ([[1.0, 2.0]], [[np.nan, 2.0]], "1 of 2 outputs of the derived graph"),
        ([[np.inf, 2.0]], [[np.inf, 2.0]], "1 of 2 outputs of the FP32 graph"),
        ([[0.0, 0.0]], [[1.0, 2.0]], "are 0"),
    ],
)
def test_what_cannot_be_compared_is_null_with_a_reason(
    reference: list[list[float]], derived: list[list[float]], reason: str
) -> None:
    found = compare(np.array(reference), np.array(derived))
    assert (found.cosine, found.relative_error) == (None, None)
    assert found.reason is not None
    assert reason in found.reason
    assert found.top1_agreement_ratio == 0


def test_outputs_whose_number_depends_on_their_values_are_not_compared(tmp_path: Path) -> None:
    paths = [positive_numbers(tmp_path / f"{scale}.onnx", scale) for scale in (1.0, -0.5)]
    feed = graphs.images((8, 3, 4, 4))
    labels = compare_files(*paths, "fp32", [feed])
    assert labels["against_fp32_relative_error"] is None
    assert re.match(r"the first output has the shape \[68\], and in FP32 \[258\]", labels["against_fp32_reason"])


def test_outputs_whose_width_depends_on_the_input_are_not_compared(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("NonZero", ["x"], ["places"]),
        helper.make_node("Cast", ["places"], ["y"], to=TensorProto.FLOAT),
    ]
    path = graphs.saved(graphs.model(nodes, {"x": ["n", 4]}, {"y": [2, "k"]}, {}), tmp_path / "places.onnx")
    feeds = [{"x": np.array([row], np.float32)} for row in ([1, 1, 0, 0], [1, 1, 1, 0])]
    labels = compare_files(path, path, "fp32", feeds)
    assert labels["against_fp32_relative_error"] is None
    assert labels["against_fp32_reason"] == "an output has another shape for each input, such as [2, 2], [2, 3]"


def positive_numbers(path: Path, scale: float) -> Path:
    """x -> those of x * scale + 0.5 that are positive: [k]."""
    nodes = [
        helper.make_node("Mul", ["x", "scale"], ["m"]),
        helper.make_node("Add", ["m", "half"], ["a"]),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("NonZero", ["r"], ["places"]),
        helper.make_node("Transpose", ["places"], ["where"], perm=[1, 0]),
        helper.make_node("GatherND", ["r", "where"], ["y"]),
    ]
    constants = {"scale": np.float32(scale), "half": np.float32(-0.5 if scale < 0 else 0.5)}
    made = graphs.model(nodes, {"x": ["n", 3, 4, 4]}, {"y": ["k"]}, {k: np.array(v) for k, v in constants.items()})
    return graphs.saved(made, path)
