# SPDX-License-Identifier: Apache-2.0
"""The samples that int8 ranges are found on: data that trains, where a model has some, else seeded random inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np

from pybench.artefacts.request import MakeRequest
from pybench.catalogue.data_sets import DATA_SETS
from pybench.catalogue.models import Model
from pybench.catalogue.preprocessing import Preprocessing
from pybench.errors import InputError
from pybench.measurement.doubts import images_identity
from pybench.measurement.inputs import Arrays, fed_ranges, random_arrays
from pybench.measurement.labelled import open_labelled
from pybench.models.images import has_splits, open_images
from pybench.models.samples import Samples, open_samples
from pybench.onnx_file.graph import read_graph
from pybench.onnx_file.inputs import fixed_batch, fixed_seq_len
from pybench.runtimes.session import TensorSpec

# Samples a calibration run, where the file leaves the batch free: bounds the memory of its activations.
CALIBRATION_BATCH = 10
COMPARED_SAMPLES = 32  # on which outputs of a derived graph are compared with FP32's
CALIBRATION_TOKENS = 64  # of a language model's sequences
_PAST = "past_"  # begins the names of inputs for what a decoder has seen (`pybench.models.export`)


class CalibrationSamples(Sequence[Arrays]):
    """The inputs of the calibration runs, read when asked for.

    fixed: the one batch that the file takes, or None; its first output tells, which a session's inputs do not
    specs: of what is fed
    source: where they come from (`random`: the model has no data)
    held_out: whether none of them judges accuracy
    total: samples in all
    batch: samples of one run; the last run may have fewer, unless the model has its batch fixed
    """

    def __init__(
        self,
        specs: tuple[TensorSpec, ...],
        fixed: int | None,
        parameters: Mapping[str, Any],
        files: Mapping[str, Path],
        models: Mapping[str, Model],
        metadata: Mapping[str, str],
    ) -> None:
        self._past = tuple(spec for spec in specs if spec.name.startswith(_PAST))
        self.specs = specs = tuple(spec for spec in specs if spec not in self._past)
        named = "data" if parameters.get("data") is not None else "images"
        self._identity = images_identity(parameters[named], parameters.get(f"{named}_sha256"))
        self._model: str = parameters["model"]
        self._models = models
        self._ranges = fed_ranges(files, metadata)
        wanted: int = parameters["calibration_images"]
        self.batch = fixed or min(CALIBRATION_BATCH, wanted)
        self._data = _calibration_data(specs, parameters, files, models)
        self.source, self.held_out = "random", True
        if self._data is not None:
            built_in = parameters[named] in DATA_SETS
            self.source = parameters[named] if built_in else files[named].name
            is_parted = bool(self._data.inputs)  # a user's arrays are, when they are opened
            self.held_out = built_in or is_parted or has_splits(files[named])
            wanted = len(self._data)
        self.total = wanted - wanted % fixed if fixed else wanted
        if self.total == 0:
            raise InputError(
                f"{wanted} calibration images do not fill one batch of {self.batch}, which the model has fixed",
                hint="raise calibration_images",
            )

    @classmethod
    def of_file(cls, source: Path, request: MakeRequest, parameters: Mapping[str, Any]) -> CalibrationSamples:
        """The samples that an FP32 ONNX file's inputs ask for. `parameters`: of the request, completed."""
        from pybench.runtimes import onnxruntime

        session = onnxruntime.open_session(source, precision="fp32", threads=1, device="cpu")
        fixed = fixed_batch(read_graph(source).fed)
        return cls(session.inputs, fixed, parameters, request.files, request.models, session.metadata)

    def record(self, method: str, sha256: str) -> dict[str, Any]:
        """How ranges were found on these samples, as files and labels carry it. `sha256`: of the samples as fed."""
        return {
            "method": method,
            "samples": self.total,
            "source": self.source,
            "identity": self._identity,
            "held_out": self.held_out,
            "sha256": sha256,
        }

    @cached_property
    def sha256(self) -> str:
        """Of all samples as fed; they are read for it once."""
        from pybench.precision.calibration import digest

        return digest(self)

    def compared(self) -> list[Arrays]:
        """The first few, on which outputs are compared with FP32's."""
        return self[: -(-COMPARED_SAMPLES // self.batch)]

    def __len__(self) -> int:
        return (self.total + self.batch - 1) // self.batch

    @overload
    def __getitem__(self, index: int) -> Arrays: ...
    @overload
    def __getitem__(self, index: slice) -> list[Arrays]: ...
    def __getitem__(self, index: int | slice) -> Arrays | list[Arrays]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        first = index * self.batch
        last = min(first + self.batch, self.total)
        nothing = self._nothing_seen(last - first)
        if self._data is None:
            return self._random(index, last - first) | nothing
        inputs = self._data.fed(self.specs[0].name, np.arange(first, last))
        return {spec.name: inputs[spec.name].astype(spec.dtype) for spec in self.specs} | nothing

    def _random(self, index: int, batch: int) -> Arrays:
        sizes = [spec.shape[1] for spec in self.specs if len(spec.shape) == 2 and spec.dtype.kind != "i"]
        beside = next((size for size in sizes if size is not None), CALIBRATION_TOKENS)  # such as a mask in floats
        tokens = fixed_seq_len([spec.value for spec in self.specs]) or beside
        return random_arrays(self.specs, self._model, batch, tokens, index, self._models, self._ranges)

    def _nothing_seen(self, batch: int) -> Arrays:
        """Keys and values [N, heads, 0, width] of a decoder with a cache that reads a prompt."""
        shapes = {spec.name: (batch, spec.shape[1] or 0, 0, spec.shape[3] or 0) for spec in self._past}
        return {spec.name: np.zeros(shapes[spec.name], spec.dtype) for spec in self._past}


def _calibration_data(
    specs: tuple[TensorSpec, ...],
    parameters: Mapping[str, Any],
    files: Mapping[str, Path],
    models: Mapping[str, Model],
) -> Samples | None:
    """Samples of the training split, at most as many as asked for, evenly spaced; None when the model has no data."""
    if parameters.get("data") is not None:
        samples = open_labelled(files["data"], parameters["data_sha256"], "train", specs)
        return samples.limited(parameters["calibration_images"])
    name = parameters["images"]
    data_set, row = DATA_SETS.get(name or ""), models.get(parameters["model"])
    if data_set is not None and data_set.open is not None and row is not None:
        return open_samples(data_set.name, "train", row).limited(parameters["calibration_images"])
    shape = specs[0].shape
    if name is None or len(specs) != 1 or len(shape) != 4 or None in shape[1:]:
        return None
    source = files["images"] if data_set is None else name
    wanted = int(shape[1] or 0), int(shape[2] or 0), int(shape[3] or 0)
    images = open_images(source, "train", wanted, Preprocessing.of(parameters))
    return images.limited(parameters["calibration_images"]).as_samples()
