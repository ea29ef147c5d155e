# SPDX-License-Identifier: Apache-2.0
"""Static INT8 by onnxruntime's quantiser: Q/DQ nodes put into an FP32 ONNX file, ranges from calibration samples.

Weights symmetric int8, one scale a channel; activations one scale a tensor, by one of two schemes. `asymmetric`: uint8
with a zero point, for onnxruntime's own CPU provider. `symmetric`: int8 with zero point 0, which TensorRT asks for;
onnxruntime's CPU provider then leaves 20 of ResNet-50's 54 multiplying operators in FP32 and keeps every ReLU (batch 4,
one core: 253 ms, against 85 ms with uint8 and 307 ms in FP32). Ranges by minimum and maximum, by entropy
(Kullback-Leibler) or by the 99.999th percentile. Does not choose samples or judge the result: the workload does.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx.checker import ValidationError
from onnx.shape_inference import InferenceError
from onnxruntime.capi import onnxruntime_pybind11_state as errors
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

from pybench.errors import InputError
from pybench.precision.execution import Feed

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


def quantise(
    source: Path,
    destination: Path,
    method: str,
    feeds: Sequence[Feed],
    metadata: Mapping[str, str],
    *,
    scheme: str = "asymmetric",
    excluded: Collection[str] = (),
) -> None:
    """Writes the quantised graph of `source`. `feeds`: inputs of the calibration runs, each one batch; `excluded`:
    names of nodes that are left alone.

    Raises InputError when onnxruntime cannot quantise the file.
    """
    symmetric = scheme == "symmetric"
    options = {"ActivationSymmetric": symmetric, "WeightSymmetric": True, "CalibStridedMinMax": 1}
    if symmetric:  # TensorRT folds the pairs around weights itself, and wants no integer biases
        options |= {"AddQDQPairToWeight": True, "QuantizeBias": False}
    level = logging.getLogger().level
    logging.getLogger().setLevel(logging.ERROR)  # the quantiser logs advice to the root logger
    try:
        with tempfile.TemporaryDirectory(dir=destination.parent, prefix=".int8-") as folder:
            prepared = Path(folder) / "prepared.onnx"
            quant_pre_process(source, prepared, skip_symbolic_shape=True)
            quantize_static(
                prepared, destination, _Feeds(feeds), quant_format=QuantFormat.QDQ, per_channel=True,
                activation_type=QuantType.QInt8 if symmetric else QuantType.QUInt8, weight_type=QuantType.QInt8,
                calibrate_method=METHODS[method], nodes_to_exclude=sorted(excluded),
                # Stride 1: a batch's activations are dropped before the next one runs.
                extra_options=options,
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
