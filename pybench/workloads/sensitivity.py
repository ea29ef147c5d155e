# SPDX-License-Identifier: Apache-2.0
"""Where the error of a quantised model comes from: each node alone, all nodes but one, and each pair of Q/DQ.

Computes the numbers of the graph on onnxruntime's CPU provider, every pair as it stands: what kernels in integers make
of them on one CPU is left out. Samples are the data that judges, where the case has some, else seeded random inputs;
neither chose the ranges. They are held in memory, and `image_limit` bounds them. Times nothing, and no run differs from
another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto

from pybench.case.data import content_of, data_of, data_set_of
from pybench.catalogue.reasons import Reason, ReasonCode
from pybench.catalogue.tasks import CLASSIFICATION
from pybench.errors import InputError
from pybench.measure.quantity import Quantity
from pybench.measurement.doubts import CALIBRATION_KEY, allowed_threads, calibration_cautions, images_identity
from pybench.measurement.inputs import Arrays, fed_ranges, random_arrays
from pybench.measurement.model import OpenedModel, conclude, open_model
from pybench.measurement.result import Result, RunRequest, Validity
from pybench.measurement.supply import judging_samples
from pybench.precision import execution
from pybench.precision.execution import Agreement
from pybench.precision.network import Network, open_network
from pybench.precision.sensitivity import OTHERS, QuantisedGraph, QuantisedUnit, TensorError

RANDOM_SAMPLES = 32  # where there are no images
FIRST_SEED = 1_000_000  # of random samples: those that choose ranges are numbered from 0

Labels = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RatedSamples:
    """Samples that units are rated with.

    feeds: inputs, each one batch; the last may be filled up
    total: how many samples count
    labels: int64 [total]; None: there are none
    source: where they come from, for people
    """

    feeds: list[Arrays]
    total: int
    labels: Labels | None
    source: str


@dataclass(frozen=True, slots=True)
class Loss:
    """What a variant's outputs have in common with those in FP32. `top1_percent`: None without labels."""

    agreement: Agreement
    top1_percent: float | None


def run(request: RunRequest) -> Result:
    case = request.case
    opened = open_model(request, deterministic=True)
    network = open_network(request.artefacts["model"])
    graph = QuantisedGraph(network)
    _require_told(graph, opened, case.keep_fp32)
    _require_one_output(network, opened)
    samples = _samples(request, opened)
    rating = _Rating(graph, samples, allowed_threads(case))
    units = graph.units
    alone = [rating.loss([unit]) for unit in units]
    without = [rating.loss([other for other in units if other != unit]) for unit in units]
    result = Result(labels={"samples": samples.source, "sensitivity": rating.labels(rating.loss(units))})
    result.tables["sensitivity"] = _node_columns(units, alone, without)
    result.tables["tensor_errors"] = _tensor_columns(graph.tensor_errors(samples.feeds))
    result.metrics["worst_node_error_ratio"] = worst_of(units, alone)
    result.valid = {"timing": Validity(None), "energy": Validity(None), "accuracy": Validity(None)}
    identity = images_identity(data_of(case), content_of(case))
    result.cautions = calibration_cautions(opened.metadata, case.calibration_images, judged_on=identity)
    return conclude(result, opened, case)


class _Rating:
    """Runs variants of a graph on samples, and compares them with the one in FP32."""

    def __init__(self, graph: QuantisedGraph, samples: RatedSamples, threads: int) -> None:
        self._graph, self._samples, self._threads = graph, samples, threads
        self._reference = self._outputs(graph.variant(()))

    def loss(self, units: Sequence[QuantisedUnit]) -> Loss:
        outputs = self._outputs(self._graph.variant(units))
        return Loss(execution.compare(self._reference, outputs), self._top1_percent(outputs))

    def labels(self, whole: Loss) -> dict[str, Any]:
        """What every node is to be compared with."""
        return {
            "samples": self._samples.total,
            "relative_error": whole.agreement.relative_error,
            "top1_agreement_ratio": whole.agreement.top1_agreement_ratio,
            "top1_percent": whole.top1_percent,
            "fp32_top1_percent": self._top1_percent(self._reference),
        }

    def _outputs(self, network: Network) -> npt.NDArray[Any]:
        model = execution.open_model(network.model.SerializeToString(), pairs_apart=True, threads=self._threads)
        outputs = [model.run(feed)[0] for feed in self._samples.feeds]
        batch = len(next(iter(self._samples.feeds[0].values())))
        if any(np.ndim(output) == 0 or len(output) != batch for output in outputs):
            raise InputError(
                f"the output has the shape {list(np.shape(outputs[0]))}, and a batch has {batch} samples",
                hint="export the model with the batch as the first dimension of its output",
            )
        return np.concatenate(outputs)[: self._samples.total]

    def _top1_percent(self, outputs: npt.NDArray[Any]) -> float | None:
        labels = self._samples.labels
        if labels is None or outputs.ndim != 2:
            return None
        return 100 * float((np.argsort(-outputs, axis=1, kind="stable")[:, 0] == labels).mean())


def _require_told(graph: QuantisedGraph, opened: OpenedModel, keep_fp32: str | None) -> None:
    """Raises InputError for a file without pairs, and for one of another program whose pairs may hide a Relu."""
    if not graph.units:
        hint = "keep fewer nodes in FP32 (`keep_fp32`)" if keep_fp32 else "name the model's file in FP32"
        raise InputError(f"{opened.name} has no pair of Q/DQ", hint=hint)
    if graph.has_zero_points and CALIBRATION_KEY not in opened.metadata:
        raise InputError(
            f"{opened.name} has ranges with zero points, which may stand for activation functions, too",
            hint="name the model's file in FP32, which pybench quantises",
        )


def _require_one_output(network: Network, opened: OpenedModel) -> None:
    """Raises InputError unless there is one output to compare, in floating point."""
    types = [output.type.tensor_type.elem_type for output in network.graph.output]
    if len(types) != 1 or types[0] not in (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16):
        raise InputError(
            f"{opened.name} has {len(types)} outputs, and sensitivity compares one, in floating point"
            if len(types) != 1
            else f"{opened.name} has an output of integers, and sensitivity compares floating point",
            hint="export the model with its logits as the only output",
        )


def _samples(request: RunRequest, opened: OpenedModel) -> RatedSamples:
    case = request.case
    if data_of(case) is None:
        return _random_samples(request, opened)
    judging = judging_samples(request, opened).limited(case.image_limit)
    spec, row = opened.session.inputs[0], data_set_of(case)
    batches = judging.batches(case.batch, allowed_threads(case))
    feeds: list[Arrays] = [{spec.name: inputs.astype(spec.dtype)} for _, inputs in batches]
    labels = judging.all_truth() if row is None or row.task == CLASSIFICATION.name else None
    return RatedSamples(feeds, len(judging), labels, str(data_of(case)))


def _random_samples(request: RunRequest, opened: OpenedModel) -> RatedSamples:
    case = request.case
    total = case.image_limit or RANDOM_SAMPLES
    ranges, models = fed_ranges(request.files, opened.metadata), case.catalogue.models
    feeds = [
        random_arrays(opened.session.inputs, opened.name, case.batch, case.seq_len, FIRST_SEED + number, models, ranges)
        for number in range(-(-total // case.batch))
    ]
    return RatedSamples(feeds, total, None, "seeded random")


def worst_of(units: Sequence[QuantisedUnit], alone: Sequence[Loss]) -> Quantity:
    """Of the nodes alone; what else reads pairs is no node that a plan could keep in FP32."""
    agreements = {unit.name: loss.agreement for unit, loss in zip(units, alone, strict=True) if unit.name != OTHERS}
    errors: dict[str, float] = {}
    for name, agreement in agreements.items():
        if agreement.relative_error is None:
            return Quantity(reasons=(Reason(ReasonCode.NOT_FINITE, f"only {name} quantised: {agreement.reason}"),))
        errors[name] = agreement.relative_error
    if not errors:
        return Quantity(reasons=(Reason(ReasonCode.NOT_FINITE, "no node that multiplies is quantised"),))
    worst = max(errors, key=lambda name: errors[name])
    return Quantity(value=errors[worst], method=f"only {worst} quantised, against FP32")


def _node_columns(
    units: Sequence[QuantisedUnit], alone: Sequence[Loss], without: Sequence[Loss]
) -> dict[str, npt.NDArray[Any]]:
    columns: dict[str, npt.NDArray[Any]] = {
        "node": np.array([unit.name for unit in units]),
        "operator": np.array([unit.operator for unit in units]),
    }
    for kind, losses in (("only", alone), ("all_but", without)):
        columns[f"{kind}_relative_error"] = _floats([loss.agreement.relative_error for loss in losses])
        columns[f"{kind}_top1_agreement_ratio"] = _floats([loss.agreement.top1_agreement_ratio for loss in losses])
        columns[f"{kind}_top1_percent"] = _floats([loss.top1_percent for loss in losses])
    return columns


def _tensor_columns(errors: Sequence[TensorError]) -> dict[str, npt.NDArray[Any]]:
    return {
        "tensor": np.array([error.tensor for error in errors]),
        "is_weight": np.array([error.is_weight for error in errors]),
        "scales": np.array([error.scales for error in errors]),
        "rms": _floats([error.rms for error in errors]),
        "rounding_ratio": _floats([error.rounding_ratio for error in errors]),
        "clipping_ratio": _floats([error.clipping_ratio for error in errors]),
        "clipped_ratio": _floats([error.clipped_ratio for error in errors]),
    }


def _floats(values: Sequence[float | None]) -> npt.NDArray[np.float64]:
    """NaN stands for what is missing."""
    return np.array([np.nan if value is None else value for value in values], np.float64)
