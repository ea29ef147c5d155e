# SPDX-License-Identifier: Apache-2.0
"""Whether the quantiser of a cell, named or taken by default, does what the cell asks, and for its workload."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pybench.case.quantising import default_quantiser
from pybench.catalogue.catalogue import Catalogue
from pybench.catalogue.data_sets import SYNTHETIC
from pybench.catalogue.precisions import PRECISIONS, quantised_type
from pybench.catalogue.quantisers import QUANTISERS, USUAL, Quantiser, quantisers_to
from pybench.catalogue.workloads import Workload
from pybench.plan.cells import Cell, Path, count_of, text_of, value_of
from pybench.plan.keeping import keep_problems
from pybench.plan.training import trainable_models
from pybench.plan.weights import weight_problems


@dataclass(frozen=True, slots=True)
class QuantisingProblem:
    """What is wrong with a cell, and where in the plan."""

    path: Path
    what: str
    hint: str


def quantiser_problems(settings: Cell, workload: Workload, catalogue: Catalogue) -> Iterator[QuantisingProblem]:
    """What the quantiser does not do of what is asked: calibration, scheme, type, kept nodes, search, training."""
    precision = str(value_of(settings, "precision"))
    claimed = quantised_type(precision)
    if not workload.uses("quantising") or claimed is None:
        return
    runtime = catalogue.runtimes.get(text_of(settings, "runtime") or "")
    default = default_quantiser(runtime, text_of(settings, "provider"))
    row = QUANTISERS[text_of(settings, "quantiser") or default]
    path = next(settings[name].path for name in ("quantiser", "calibration", "precision") if name in settings)
    yield from _unsupported_options(settings, path, row)
    alone = PRECISIONS[precision].weights_alone
    if claimed not in row.types and (alone or row.name != default):  # else the runtime does not execute it either
        why = f"in {claimed} only weights are stored" if alone else row.why_not
        what = f"the quantiser {row.name} does not round to {claimed}: {why}"
        yield QuantisingProblem(path, what, f"use quantiser {' or '.join(quantisers_to(claimed))}")
    for name, what, hint in keep_problems(row, claimed):
        if value_of(settings, name) is not None:
            yield QuantisingProblem(settings[name].path, what, hint)
    if row.search is not None:
        yield from _search_problems(settings, path, row, workload.runtime, catalogue)
    if row.trains:
        yield from _training_problems(settings, path, row, catalogue)
    if row.weights_alone:
        model = catalogue.models.get(text_of(settings, "model") or "")
        for name, what, hint in weight_problems(count_of(settings, "block_size"), precision, model):
            yield QuantisingProblem(path if name not in settings else settings[name].path, what, hint)


def pair_problems(settings: Cell, place: Path, workload: Workload) -> Iterator[QuantisingProblem]:
    """Whether a workload that takes pairs of Q/DQ apart gets a file that has some. `place`: of the cell's entry."""
    if not workload.parts_pairs:
        return
    precision, runtime = str(value_of(settings, "precision")), text_of(settings, "runtime") or workload.runtime
    if quantised_type(precision) is None:
        path = settings["precision"].path if "precision" in settings else place
        what = f"workload {workload.name} takes a quantised model apart, and {precision} quantises nothing"
        yield QuantisingProblem(path, what, "as in `precision: int8`")
    quantiser = text_of(settings, "quantiser")
    if quantiser is not None and not QUANTISERS[quantiser].writes_pairs:
        what = f"workload {workload.name} takes pairs of Q/DQ apart, and the quantiser {quantiser} writes none"
        yield QuantisingProblem(settings["quantiser"].path, what, f"use quantiser: {USUAL.name}")
    if runtime != workload.runtime:
        what = f"workload {workload.name} computes parts of an ONNX file in {workload.runtime}, not in {runtime}"
        yield QuantisingProblem(settings["runtime"].path, what, "leave `runtime` out")


def _unsupported_options(settings: Cell, path: Path, row: Quantiser) -> Iterator[QuantisingProblem]:
    """Calibrations and schemes that the quantiser does not have. `path`: where it is named, or what it follows from."""
    calibration = text_of(settings, "calibration")
    if calibration not in row.calibrations and row.is_calibrated:
        what = f"the quantiser {row.name} does not support calibration: {calibration}"
        hint = f"supported: {', '.join(row.calibrations)}; the quantiser {USUAL.name} supports all"
        yield QuantisingProblem(path, what, hint)
    for name in ("scheme", "range", "granularity", "placement"):
        value = value_of(settings, name)
        if value is not None and value not in row.offers(name):
            others = [each.name for each in QUANTISERS.values() if value in each.offers(name)]
            what = f"the quantiser {row.name} does not support {name}: {value}"
            yield QuantisingProblem(settings[name].path, what, f"use quantiser: {' or '.join(others)}")


def _search_problems(
    settings: Cell, path: Path, quantiser: Quantiser, usual: str | None, catalogue: Catalogue
) -> Iterator[QuantisingProblem]:
    """Whether a quantiser that measures engines is for a runtime that opens one. `usual`: the workload's."""
    runtime = text_of(settings, "runtime") or usual
    row = catalogue.runtimes.get(runtime or "")
    if row is None or row.opens != "engine":
        what = f"the quantiser {quantiser.name} measures engines of TensorRT, and runtime {runtime} opens none"
        yield QuantisingProblem(path, what, "use runtime: tensorrt, or quantiser: modelopt")


def _training_problems(
    settings: Cell, path: Path, quantiser: Quantiser, catalogue: Catalogue
) -> Iterator[QuantisingProblem]:
    """Whether a quantiser that trains has what it would train the model on."""
    model, checkpoint = text_of(settings, "model"), text_of(settings, "checkpoint")
    row = catalogue.models.get(model or "")
    has_data = checkpoint is None and row is not None and row.trained_on is not None
    if model is not None and checkpoint != SYNTHETIC and not has_data:
        models = trainable_models(SYNTHETIC, catalogue)
        hint = f"use `checkpoint: {SYNTHETIC}` with one of {models}, or export your own model from torch"
        what = f"the quantiser {quantiser.name} trains the weights, and there is no training data for {model}"
        yield QuantisingProblem(path, what, hint)
