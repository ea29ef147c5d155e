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
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from pybench.cautions import Caution
from pybench.errors import InputError, UnsupportedError
from pybench.models.catalogue import BUILT_IN
from pybench.models.images import Images, has_splits, open_images
from pybench.precision.audit import audit_onnx
from pybench.recipe import is_built_in
from pybench.runtimes.session import TensorSpec
from pybench.workloads.doubts import CALIBRATION_KEY, calibration_cautions, images_identity
from pybench.workloads.result import Measured, Result, Verdict

# Samples a calibration run, where the file leaves the batch free: bounds the memory of its activations.
CALIBRATION_BATCH = 10
CALIBRATION_TOKENS = 64  # of a language model's sequences
COMPARED_SAMPLES = 32  # on which int8 outputs are compared with FP32's

Arrays = dict[str, npt.NDArray[Any]]


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


class CalibrationSamples(Sequence[Arrays]):
    """The inputs of the calibration runs, read when asked for. `source`: where they come from (`random`: the model
    has no data); `held_out`: whether none of them judges accuracy; `total`: samples in all; `batch`: of one run."""

    def __init__(self, specs: tuple[TensorSpec, ...], parameters: Mapping[str, Any], files: Mapping[str, Path]) -> None:
        self._specs = specs
        wanted: int = parameters["calibration_images"]
        fixed = specs[0].shape[0] if specs[0].shape else None
        self.batch = fixed or min(CALIBRATION_BATCH, wanted)
        self._images = _calibration_images(specs, parameters, files)
        self.source, self.held_out = "random", True
        if self._images is not None:
            built_in = is_built_in("images", parameters["images"])
            self.source = parameters["images"] if built_in else files["images"].name
            self.held_out = built_in or has_splits(files["images"])
            wanted = len(self._images)
        self._runs = wanted // self.batch
        if self._runs == 0:
            raise InputError(
                f"{wanted} calibration images do not fill one batch of {self.batch}, which the model has fixed",
                hint="raise calibration_images",
            )
        self.total = self._runs * self.batch

    def __len__(self) -> int:
        return self._runs

    @overload
    def __getitem__(self, index: int) -> Arrays: ...
    @overload
    def __getitem__(self, index: slice) -> list[Arrays]: ...
    def __getitem__(self, index: int | slice) -> Arrays | list[Arrays]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not 0 <= index < self._runs:
            raise IndexError(index)
        if self._images is None:
            return self._random(index)
        first = index * self.batch
        pixels = np.stack([self._images.read(i) for i in range(first, first + self.batch)])
        return {self._specs[0].name: pixels.astype(self._specs[0].dtype)}

    def _random(self, index: int) -> Arrays:
        generator = np.random.default_rng(index)
        arrays: Arrays = {}
        for spec in self._specs:
            shape = spec.resolved(
                self.batch, spec.shape[1] or CALIBRATION_TOKENS if len(spec.shape) == 2 else 0, spec.name
            )
            floats = spec.dtype.kind == "f"
            values = (
                generator.standard_normal(shape)
                if floats
                else generator.integers(0, 2 if len(self._specs) > 1 else 1000, shape)
            )
            arrays[spec.name] = values.astype(spec.dtype)
        return arrays


def _calibration_images(
    specs: tuple[TensorSpec, ...], parameters: Mapping[str, Any], files: Mapping[str, Path]
) -> Images | None:
    """Images of the training split, at most as many as asked for, evenly spaced; None when the model has no images."""
    name = parameters["images"]
    shape = specs[0].shape
    if name is None or len(specs) != 1 or len(shape) != 4 or None in shape[1:]:
        return None
    source = name if is_built_in("images", name) else files["images"]
    wanted = int(shape[1] or 0), int(shape[2] or 0), int(shape[3] or 0)
    return open_images(source, "train", wanted).limited(parameters["calibration_images"])
