# SPDX-License-Identifier: Apache-2.0
"""What cases need, made by recipe, a module for each kind of artefact. Equal recipes, equal files (engines excepted).

    result = artefacts.make(recipe, inputs, files, folder)                # writes the recipe's file

    request         what a maker is given
    checkpoint      trains
    onnx            exports
    program         a library's model as a torch program
    batched         a user's file with a free batch
    shaped          a user's file with its free dimensions fixed
    converted       writes FP16 or BF16
    samples         what ranges are found on
    calibration     finds ranges
    kept            searches the nodes that stay in FP32
    stored_trials   what a search has tried, for the next process
    quantised       puts Q/DQ into a graph
    rounding        trains a model on with INT8 rounding
    engine          builds with TensorRT
    agreement       outputs against those of FP32
    engine_outputs  outputs of an engine against what its graph says

The result says what was made: how good the trained weights are, how outputs agree with those of FP32.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pybench.artefacts.request import MakeRequest
from pybench.catalogue.causes import Cause
from pybench.catalogue.kinds import KINDS
from pybench.catalogue.models import MODELS, Model
from pybench.errors import UnsupportedError
from pybench.measure import SensorProfile
from pybench.measure.quantity import Quantity
from pybench.measurement.result import Result
from pybench.onnx_file.facts import stored_bytes
from pybench.runtimes.memory import memory_errors


def make(
    recipe: Mapping[str, Any],
    inputs: Mapping[str, Path],
    files: Mapping[str, Path],
    folder: Path,
    models: Mapping[str, Model] = MODELS,
    sensors: Mapping[str, SensorProfile] | None = None,
    unfinished: Path | None = None,
) -> Result:
    """Makes one artefact: writes `folder / recipe["file"]`. Imports only what its kind needs.

    `recipe`: the stored form of `campaign.recipe.Recipe`; `inputs`: role -> file of the artefact that it builds on;
    `files`: factor -> the user's file; `models`: the rows that the recipe's model may be one of; `sensors`:
    what is known of the GPUs' power sensors, by UUID. `unfinished`: as in `MakeRequest`. Raises UnsupportedError,
    InputError or DeviceMemoryError where those are the answer.
    """
    kind, path = recipe["kind"], folder / recipe["file"]
    if kind not in KINDS:
        raise UnsupportedError(f"no artefact of the kind {kind}", code=Cause.NO_SUCH_ARTEFACT)
    with memory_errors():
        maker = importlib.import_module(KINDS[kind].module)
        request = MakeRequest(kind, recipe["parameters"], inputs, files, models, sensors or {}, unfinished)
        result: Result = maker.make(request, path)
    result.labels = {"device": "cpu", **result.labels, "kind": kind}
    size = stored_bytes(path) if path.suffix == ".onnx" else path.stat().st_size
    result.metrics["model_bytes"] = Quantity(value=float(size), method="size of the file")
    return result
