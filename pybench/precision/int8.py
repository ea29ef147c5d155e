# SPDX-License-Identifier: Apache-2.0
"""Static INT8: Q/DQ nodes put into an FP32 ONNX file by onnxruntime, from ranges seen on calibration samples.

Weights symmetric int8, one scale a channel; activations uint8 with a zero point, one scale a tensor. Symmetric int8
activations, which TensorRT asks for, were rejected here: onnxruntime's CPU provider then leaves 20 of ResNet-50's 54
multiplying operators in FP32 and keeps every ReLU (batch 4, one core: 253 ms, against 85 ms with uint8 and 307 ms in
FP32). Ranges by minimum and maximum, by entropy (Kullback-Leibler) or by the 99.999th percentile. Does not choose
samples or judge the result: the workload does.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx.checker import ValidationError
from onnx.shape_inference import InferenceError
from onnxruntime.capi import onnxruntime_pybind11_state as errors
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

from pybench.errors import InputError

METHODS = {
    "minmax": CalibrationMethod.MinMax,
    "entropy": CalibrationMethod.Entropy,
    "percentile": CalibrationMethod.Percentile,
}

# What the quantiser and the runs that it makes raise for a file or an input that they cannot take.
_REFUSALS = (
    ValueError,
    RuntimeError,
    DecodeError,
    ValidationError,
    InferenceError,
    errors.Fail,
    errors.InvalidArgument,
    errors.InvalidGraph,
    errors.NotImplemented,
)

Feed = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Agreement:
    """INT8 outputs against FP32 outputs on the same samples, all from [n, classes].

    `cosine`: of all outputs as one vector; `relative_error`: norm of the difference over the norm;
    `top1_agreement_ratio`: share of samples with the same most probable class.
    """

    cosine: float
    relative_error: float
    top1_agreement_ratio: float
    samples: int


def quantise(source: Path, destination: Path, method: str, feeds: Sequence[Feed], metadata: Mapping[str, str]) -> None:
    """Writes the quantised graph of `source`. `feeds`: inputs of the calibration runs, each one batch.

    Raises InputError when onnxruntime cannot quantise the file.
    """
    level = logging.getLogger().level
    logging.getLogger().setLevel(logging.ERROR)  # the quantiser logs advice to the root logger
    try:
        with tempfile.TemporaryDirectory(dir=destination.parent, prefix=".int8-") as folder:
            prepared = Path(folder) / "prepared.onnx"
            quant_pre_process(source, prepared, skip_symbolic_shape=True)
            quantize_static(
                prepared, destination, _Feeds(feeds), quant_format=QuantFormat.QDQ, per_channel=True,
                activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8, calibrate_method=METHODS[method],
                # Stride 1: a batch's activations are dropped before the next one runs.
                extra_options={"ActivationSymmetric": False, "WeightSymmetric": True, "CalibStridedMinMax": 1},
            )  # fmt: skip
    except _REFUSALS as error:
        text = " ".join(str(error).split())[:200]
        raise InputError(
            f"{source} cannot be quantised to int8 ({text})", hint="simplify the model, or run it in fp32"
        ) from error
    finally:
        logging.getLogger().setLevel(level)
    stamp(destination, metadata)


def stamp(path: Path, metadata: Mapping[str, str]) -> None:
    """Stores short texts as properties of an ONNX file."""
    model = onnx.load(path)
    kept = {entry.key: entry.value for entry in model.metadata_props} | dict(metadata)
    model.ClearField("metadata_props")
    for key in sorted(kept):
        model.metadata_props.add(key=key, value=kept[key])
    onnx.save(model, path)


def compare(reference: npt.NDArray[Any], quantised: npt.NDArray[Any]) -> Agreement:
    """Outputs of the same samples from both graphs: float [n, classes]."""
    a, b = reference.astype(np.float64), quantised.astype(np.float64)
    norm = float(np.linalg.norm(a))
    product = norm * float(np.linalg.norm(b))
    return Agreement(
        cosine=float((a * b).sum()) / product if product else 0.0,
        relative_error=float(np.linalg.norm(a - b)) / norm if norm else float("inf"),
        top1_agreement_ratio=float((a.argmax(1) == b.argmax(1)).mean()),
        samples=len(a),
    )


class _Feeds(CalibrationDataReader):  # type: ignore[misc]
    """The samples as onnxruntime's quantiser reads them."""

    def __init__(self, feeds: Sequence[Feed]) -> None:
        self._feeds = feeds
        self._next, self._end = 0, len(feeds)

    def get_next(self) -> Feed | None:
        if self._next >= self._end:
            return None
        self._next += 1
        return self._feeds[self._next - 1]

    def set_range(self, start_index: int, end_index: int) -> None:
        self._next, self._end = start_index, end_index

    def __len__(self) -> int:
        return len(self._feeds)
