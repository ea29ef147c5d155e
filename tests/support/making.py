# SPDX-License-Identifier: Apache-2.0
"""What tests of workloads need: artefacts made once a test session by the real recipes, requests, small ONNX files."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from pybench import artefacts, workloads
from pybench.campaign.recipe import in_making_order, recipes_of
from pybench.case import Case
from pybench.measurement.result import Result, RunRequest


@cache
def store() -> Path:
    """A folder for artefacts that lives as long as this process."""
    folder = Path(tempfile.mkdtemp(prefix="pybench-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def artefacts_of(case: Case, files: Mapping[str, Path] | None = None) -> dict[str, Path]:
    """Role -> file of what the case needs, made where it is missing."""
    recipes = recipes_of(case, _platform() if case.runtime == "tensorrt" else None)
    for recipe in in_making_order(recipes):
        folder = store() / recipe.digest
        if not (folder / recipe.file).exists():
            folder.mkdir(exist_ok=True)
            needs = {role: store() / needed.digest / needed.file for role, needed in recipe.needs}
            artefacts.make(recipe.as_json(), needs, files or {}, folder)
    return {role: store() / recipe.digest / recipe.file for role, recipe in recipes.items()}


@cache
def _platform() -> str:
    """What engines of this machine are bound to."""
    from pybench.runtimes import cuda
    from pybench.runtimes.tensorrt import library

    return f"TensorRT {library.installed()['version']} on {cuda.devices()[0]['name']}"


def request_of(case: Case, files: Mapping[str, Path] | None = None, seed: int = 1) -> RunRequest:
    """A request of the first block, with its artefacts."""
    made = artefacts_of(case, files)
    return RunRequest(case=case, block=0, attempt=1, seed=seed, artefacts=made, files=files or {})


def run(case: Case, files: Mapping[str, Path] | None = None, seed: int = 1) -> Result:
    """What the worker does with a case; what it changes of the environment is undone."""
    with patch.dict(os.environ):
        return workloads.run(request_of(case, files, seed))


def codes(result: Result) -> set[str]:
    """The codes of a result's cautions."""
    return {caution.code.code for caution in result.cautions}


def write_classifier(
    path: Path, *, batch: int | str = "batch", side: int = 8, channels: int = 1, classes: int = 3
) -> Path:
    """A small user's model: one matrix product; [batch, channels, side, side] -> [batch, classes]."""
    from onnx import TensorProto, checker, helper, numpy_helper, save

    weight = np.linspace(-1, 1, channels * side * side * classes, dtype=np.float32).reshape(-1, classes)
    graph = helper.make_graph(
        [
            helper.make_node("Flatten", ["pictures"], ["flat"], axis=1),
            helper.make_node("MatMul", ["flat", "weight"], ["scores"], name="product"),
        ],
        "classifier",
        [helper.make_tensor_value_info("pictures", TensorProto.FLOAT, [batch, channels, side, side])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [batch, classes])],
        [numpy_helper.from_array(weight, "weight")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    checker.check_model(model)
    save(model, path)
    return path


def write_images(root: Path, classes: Mapping[str, int], size: tuple[int, int] = (20, 16), mode: str = "RGB") -> Path:
    """A folder of class folders, `classes`: name -> number of images, each of one colour that differs."""
    from PIL import Image

    for label, (name, count) in enumerate(classes.items()):
        (root / name).mkdir(parents=True)
        for number in range(count):
            level = (37 * number + 90 * label) % 256
            colour: Any = level if mode == "L" else (level, 255 - level, (3 * level) % 256)
            Image.new(mode, size, colour).save(root / name / f"{number:02d}.png")
    return root
