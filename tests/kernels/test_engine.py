# SPDX-License-Identifier: Apache-2.0
"""Profiles of engines that TensorRT 10.6 built on an H200 (tests/precision/data/README.md)."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from pybench.kernels.engine import UNTIMED, profile_of_engine
from pybench.kernels.engine_layers import read_layers
from pybench.kernels.profile import Profile

RECORDED = Path(__file__).parents[1] / "precision" / "data" / "inspector"


def recorded(name: str) -> str:
    return gzip.decompress((RECORDED / f"resnet50-b32-{name}.json.gz").read_bytes()).decode()


def profile(name: str, **given: Any) -> Profile:
    return profile_of_engine(recorded(name), **given)


@pytest.mark.parametrize(
    ("name", "running", "constants", "moving", "quantising"),
    [
        ("fp32", 104, 47, 48, 0),
        ("int8", 137, 47, 49, 17),
        ("int8+fp16-residual", 106, 47, 49, 2),
        ("bf16", 61, 0, 5, 0),
    ],
)
def test_what_kernels_of_an_engine_do(name: str, running: int, constants: int, moving: int, quantising: int) -> None:
    found = profile(name)
    works = [kernel.work for kernel in found.running]
    assert len(works) == running
    assert sum(kernel.of_constants for kernel in found.kernels) == constants
    assert (works.count("multiplying"), works.count("moving"), works.count("quantising")) == (54, moving, quantising)


def test_a_bias_that_the_inspector_does_not_list_is_read_by_the_layer_of_its_name() -> None:
    found = {kernel.name: kernel for kernel in profile("int8").kernels}
    move = next(kernel for kernel in found.values() if kernel.writes == ("layer1.0.conv1.m.bias",))
    assert move.of_constants
    readers = [kernel.name for kernel in found.values() if "layer1.0.conv1.m.bias" in kernel.reads]
    assert len(readers) == 1
    assert readers[0].startswith("layer1.0.conv1.m.weight + ")


def test_without_times_a_profile_says_so_and_with_them_it_says_how() -> None:
    bare = profile("fp32")
    assert (bare.has_times, bare.method, bare.iterations) == (False, UNTIMED, 0)
    times = {layer.name: 0.01 for layer in read_layers(recorded("fp32")) if layer.kind != "nothing"}
    timed = profile("fp32", times_ms=times, iterations=20)
    assert timed.total_ms == pytest.approx(0.01 * 104)
    assert "20 executions" in timed.method
    assert "after every window" in timed.method


def test_times_of_what_is_no_layer_are_kept_and_layers_of_one_name_count_once() -> None:
    layers = [{"Name": "twice", "LayerType": "kgen", "Inputs": [], "Outputs": []}] * 2
    found = profile_of_engine(json.dumps({"Layers": layers}), times_ms={"twice": 1.0, "other": 0.5}, iterations=20)
    assert [(kernel.name, kernel.time_ms) for kernel in found.kernels] == [
        ("twice", 1.0), ("twice #1", None), ("other", 0.5),
    ]  # fmt: skip
    assert found.total_ms == 1.5


def as_of_11(document: dict[str, Any]) -> dict[str, Any]:
    """The same engine in the form of TensorRT 11: type and format of a tensor in fields of their own."""
    for layer in document["Layers"]:
        for tensor in (*layer["Inputs"], *layer["Outputs"]):
            tensor["Datatype"] = tensor.pop("Format/Datatype")
            tensor["Format"] = "Row major linear format"
    document["I/O Tensors"] = [{"Name": name} for name in document.pop("Bindings")]
    return document


def test_the_form_of_tensorrt_11_gives_the_same_profile() -> None:
    assert profile_of_engine(json.dumps(as_of_11(json.loads(recorded("int8"))))) == profile("int8")


@pytest.mark.parametrize("text", ["{}", '{"Layers": ["only a name"]}', "not JSON"])
def test_text_without_layers_is_no_profile(text: str) -> None:
    with pytest.raises(ValueError, match=r"no layers|Expecting value"):
        profile_of_engine(text)
