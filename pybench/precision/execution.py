# SPDX-License-Identifier: Apache-2.0
"""ONNX graphs run for their numbers, on onnxruntime's CPU provider, and the numbers compared: no times, no devices.

FP16 and BF16 are emulated (`emulation`), FP8 runs with every graph pass off (a pass puts FP8 through operators that
have no such kernel). What cannot be run is null with a reason, not 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as errors

from pybench.catalogue.precisions import floating_type, quantised_type
from pybench.errors import InputError, UnsupportedError, in_short
from pybench.precision.emulation import emulate
from pybench.precision.network import open_network

Feed = Mapping[str, npt.NDArray[Any]]
Values = npt.NDArray[Any]

_REFUSALS = (
    errors.Fail,
    errors.InvalidArgument,
    errors.InvalidGraph,
    errors.InvalidProtobuf,
    errors.NotImplemented,
    errors.RuntimeException,
)
_FATAL = 4  # of onnxruntime's severities: errors are raised, not logged as well
_FIXED_SHAPES = "export the model without what selects outputs, such as NonMaxSuppression"


@dataclass(frozen=True, slots=True)
class Agreement:
    """Outputs of a graph against those of its FP32 origin on the same samples.

    Outputs with NaN or +inf among them have no class, and agree with nothing.

    cosine: of all outputs as one vector, -1 to 1; None with a `reason` where it is no finite number
    relative_error: norm of the difference over the norm of the origin's outputs, 1; None as `cosine`
    top1_agreement_ratio: share of samples with the same class; of positions, where each has its own classes
    varied_ratio: what the inputs change in the origin's outputs, over the norm of these outputs, 1. It is the norm of
        their distance from their mean over samples. None for one sample, or where it is no finite number
    signal_error: norm of the difference over what the inputs change, 1; None as `varied_ratio`, or where that is 0
    origin_classes: how many classes the origin gives its samples; None for one sample, or outputs that tell no classes
    samples: how many were compared
    non_finite_outputs: how many numbers of the derived graph's outputs are NaN or infinite
    reason: why `cosine` and `relative_error` are None
    """

    cosine: float | None
    relative_error: float | None
    top1_agreement_ratio: float
    varied_ratio: float | None
    signal_error: float | None
    origin_classes: int | None
    samples: int
    non_finite_outputs: int = 0
    reason: str | None = None


class ExecutedModel:
    """An opened graph."""

    def __init__(self, session: onnxruntime.InferenceSession) -> None:
        self._session = session

    def run(self, feed: Feed) -> list[Values]:
        """Every output, in the graph's order. Raises InputError when the graph does not run on these inputs."""
        try:
            outputs: list[Values] = self._session.run(None, dict(feed))
        except _REFUSALS as error:
            raise InputError(f"the graph does not run on its samples ({in_short(error)})") from error
        return outputs

    def place(self, output: str) -> int:
        """Of an output in what `run` returns. Raises InputError where the graph has none of that name."""
        names = [value.name for value in self._session.get_outputs()]
        if output not in names:
            raise InputError(f"the graph has no output {output}; it has {', '.join(names)}")
        return names.index(output)


def open_model(
    source: Path | bytes, *, passes: bool = True, pairs_apart: bool = False, threads: int = 0
) -> ExecutedModel:
    """Opens a file, or a model in memory. `passes`: whether the graph may be optimised; `pairs_apart`: Q and DQ are
    computed as they stand, and never fused to kernels in integers; `threads`: 0: as many as onnxruntime takes. Raises
    InputError."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _FATAL
    options.intra_op_num_threads = threads
    if pairs_apart:
        options.add_session_config_entry("session.disable_quant_qdq", "1")
    if not passes:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    except _REFUSALS as error:
        raise InputError(f"the graph cannot be run ({in_short(error)})") from error
    return ExecutedModel(session)


def outputs_of(
    path: Path, precision: str, feeds: Sequence[Feed], *, output: str | None = None, pairs_apart: bool = False
) -> tuple[Values, str]:
    """An output of a file in a precision, of all feeds, and in words how it was run. `output`: its name; None: the
    file's first. `pairs_apart`: as in `open_model`.

    Raises InputError and UnsupportedError for what cannot be run here.
    """
    floating, passes = floating_type(precision), quantised_type(precision) != "fp8"
    if floating == "fp32":
        model = open_model(path, passes=passes, pairs_apart=pairs_apart)
        method = "the file, on onnxruntime's CPU provider"
    else:
        emulated = emulate(open_network(path)).SerializeToString()
        model = open_model(emulated, passes=passes, pairs_apart=pairs_apart)
        method = f"an FP32 graph that rounds every tensor to {floating}, on onnxruntime's CPU provider"
    place = 0 if output is None else model.place(output)
    found = [np.atleast_1d(model.run(feed)[place]) for feed in feeds]
    if len({array.shape[1:] for array in found}) > 1:
        shapes = ", ".join(str(list(shape)) for shape in [*dict.fromkeys(array.shape for array in found)][:3])
        raise InputError(f"an output has another shape for each input, such as {shapes}", hint=_FIXED_SHAPES)
    return np.concatenate(found), method


def compare_files(origin: Path, derived: Path, precision: str, feeds: Sequence[Feed]) -> dict[str, Any]:
    """Labels `against_fp32_*` of a file derived from an FP32 one; null, with a reason, where it cannot run here."""
    try:
        reference, _ = outputs_of(origin, "fp32", feeds)
        outputs, method = outputs_of(derived, precision, feeds)
        found = compare(reference, outputs)
    except (InputError, UnsupportedError) as error:
        unknown = {f"against_fp32_{name}": None for name in (*Agreement.__slots__, "method")}
        return unknown | {"against_fp32_reason": error.message}
    return {f"against_fp32_{name}": value for name, value in asdict(found).items()} | {"against_fp32_method": method}


def compare(reference: Values, derived: Values) -> Agreement:
    """Outputs of the same samples from both graphs: [n, classes], [n, positions, classes] or [n, classes, ...]. Raises
    InputError where the shape depends on the values."""
    a, b = _by_class(reference), _by_class(derived)
    if a.shape != b.shape:
        raise InputError(
            f"the first output has the shape {list(derived.shape)}, and in FP32 {list(reference.shape)}",
            hint=_FIXED_SHAPES,
        )
    with np.errstate(invalid="ignore", over="ignore"):  # inf - inf: judged below
        norm, apart = float(np.linalg.norm(a)), float(np.linalg.norm(a - b))
        varied = _varied(reference)
        product = norm * float(np.linalg.norm(b))
        cosine = _finite(float((a * b).sum()), product)
        relative_error = _finite(apart, norm)
    classless = (np.isnan(b) | np.isposinf(b)).any(1)
    return Agreement(
        cosine=cosine,
        relative_error=relative_error,
        top1_agreement_ratio=float(((a.argmax(1) == b.argmax(1)) & ~classless).mean()),
        varied_ratio=_finite(varied, norm),
        signal_error=_finite(apart, varied),
        origin_classes=len(np.unique(a.argmax(1))) if len(reference) > 1 and a.shape[1] > 1 else None,
        samples=len(reference),
        non_finite_outputs=int((~np.isfinite(b)).sum()),
        reason=_reason(a, b) if cosine is None or relative_error is None else None,
    )


def _varied(outputs: Values) -> float:
    """Norm of the distance of the samples from their mean; NaN for one sample, of which nothing is known."""
    wide = outputs.astype(np.float64)
    return float(np.linalg.norm(wide - wide.mean(0))) if len(outputs) > 1 else math.nan


def _finite(numerator: float, denominator: float) -> float | None:
    """A quotient; None where it is no finite number."""
    quotient = numerator / denominator if denominator else math.nan
    return quotient if math.isfinite(quotient) and math.isfinite(denominator) else None


def _reason(reference: Values, derived: Values) -> str:
    for whose, outputs in (("the FP32 graph", reference), ("the derived graph", derived)):
        beyond = int((~np.isfinite(outputs)).sum())
        if beyond:
            return f"{beyond} of {outputs.size} outputs of {whose} are NaN or infinite"
    return "all outputs of one of the graphs are 0"


def _by_class(outputs: Values) -> npt.NDArray[np.float64]:
    """[rows, classes]: classes are the last axis of texts (three axes) and the second of images."""
    if outputs.ndim > 3:
        outputs = np.moveaxis(outputs, 1, -1)
    return outputs.reshape(-1, outputs.shape[-1] if outputs.ndim > 1 else 1).astype(np.float64)
