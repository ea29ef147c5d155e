# SPDX-License-Identifier: Apache-2.0
"""When a factor changes nothing about a case because of what else is in the case, and why.

Each rule is a part of the factors that it is about (`pybench.case.factors`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pybench.case.data import trained_here
from pybench.catalogue.paths import PATHS
from pybench.catalogue.precisions import floating_type, quantised_type
from pybench.catalogue.quantisers import QUANTISERS
from pybench.catalogue.runtimes import replaying, takers_of

if TYPE_CHECKING:
    from pybench.case.case import Case


@dataclass(frozen=True, slots=True)
class Idle:
    """`when`: whether the factor changes nothing about a case; `because`: why, in words for plans' authors."""

    when: Callable[[Case], bool]
    because: str


def outside_its_runtimes(name: str) -> Idle:
    """Of a factor that only some runtimes have, or some backends of a runtime."""

    def is_taken(case: Case) -> bool:
        row = case.runtime_row
        return row is not None and name in row.factors_of(case.provider, may_use_gpu=case.device != "cpu")

    return Idle(lambda case: not is_taken(case), f"it is a factor of {', '.join(takers_of(name))}")


def outside_its_models(name: str) -> Idle:
    """Of a factor that shapes the layers of some models."""
    return Idle(lambda case: name not in case.shaping(), "it shapes the layers of other models")


def outside_its_rows(name: str, owners: Sequence[str]) -> Idle:
    """Of an option that only some rows have. `owners`: their names."""
    return Idle(lambda case: name not in case.own_factors(), f"it is an option of {', '.join(owners)}")


def _has_no_model(case: Case) -> bool:
    return case.workload_row.model == "optional" and case.model is None


def _has_no_weights(case: Case) -> bool:
    """Whether there are neither weights nor a choice of types."""
    row = case.runtime_row
    return _has_no_model(case) or (row is not None and row.computes_in is not None)


def _is_not_quantised(case: Case) -> bool:
    return quantised_type(case.precision) is None or _has_no_weights(case)


def _is_not_calibrated(case: Case) -> bool:
    """Whether no ranges are chosen from samples: training finds them on what it trains on, each run on its input, and
    weights have theirs."""
    return _is_not_quantised(case) or (case.quantiser is not None and not QUANTISERS[case.quantiser].is_calibrated)


def _judges_no_images(case: Case) -> bool:
    """Whether images are what ranges are found on, and no more."""
    return case.workload_row.uses("images") and not case.workload_row.judges_images


def _loads_images(case: Case) -> bool:
    """Whether images are what the model is trained on."""
    return case.workload_row.uses("loading") and case.workers is not None


def _has_no_images(case: Case) -> bool:
    """Whether images are used for nothing."""
    uses = not _judges_no_images(case) or _loads_images(case) or not _is_not_calibrated(case) or _takes_data(case)
    return not uses


def _has_no_samples(case: Case) -> bool:
    """Whether labelled arrays are used for nothing."""
    is_judged = case.workload_row.by_task or not case.workload_row.uses("labelled")
    return not (is_judged or _takes_data(case)) and _is_not_calibrated(case)


def is_fed(case: Case) -> bool:
    """Whether an iteration also fetches its batch."""
    return PATHS[case.path].reads_text or case.fed or case.workers is not None


def is_replayed(case: Case) -> bool:
    """Whether iterations are a captured graph, which is replayed from C++ and nothing else."""
    row, runtime = case.workload_row, case.runtime_row
    graphs = runtime is not None and (runtime.graph == "always" or (runtime.graph, case.launch) == ("asked", "graph"))
    return row.replays and graphs and not is_fed(case) and not case.transfers and case.parts is None


def _has_no_board(case: Case) -> bool:
    names_none = case.workload_row.names_board and case.device in ("auto", "cuda")
    return case.device == "cpu" or names_none or _has_no_model(case)


def _reads_no_text(case: Case) -> bool:
    return not PATHS[case.path].reads_text and not _takes_data(case)


def _takes_data(case: Case) -> bool:
    """Whether the model is fed with the case's images or text instead of random numbers."""
    return case.workload_row.uses("inputs") and case.inputs == "data" and not _is_fed_by_path(case)


def _is_fed_by_path(case: Case) -> bool:
    """Whether batches of ids reach the model by the way of a path, in each iteration."""
    row = case.model_row
    takes_batches = row is not None and row.takes_text and case.workload_row.uses("inputs")
    return bool(takes_batches and (PATHS[case.path].reads_text or case.fed))


NOT_EXECUTED = Idle(_has_no_model, "without a model nothing is executed")
NOT_COMPUTED = Idle(
    _has_no_weights, "a solver has no weights and computes in float64, and without a model nothing is computed"
)
NOT_THREADED = Idle(
    lambda case: case.runtime_row is not None and case.runtime_row.opens == "equations", "a solver runs on one thread"
)
BATCH_AS_IT_IS = Idle(lambda case: case.fixed_batch in (None, case.batch), "the file takes the batch as it is")
NOT_QUANTISED = Idle(_is_not_quantised, "only int8, int4 and fp8 are quantised")
NOT_INT8 = Idle(lambda case: quantised_type(case.precision) != "int8", "only int8 has integer codes")
NOT_CALIBRATED = Idle(
    _is_not_calibrated,
    "only int8, int4 and fp8 are quantised; qat finds its ranges while it trains, dynamic in each run, and weight-only "
    "has none",
)
NOT_PLACED = Idle(
    lambda case: (
        _is_not_quantised(case) or (case.quantiser is not None and not QUANTISERS[case.quantiser].places_pairs)
    ),
    "qat rounds in front of products alone, and dynamic and weight-only write no pairs",
)
NOT_STORED = Idle(
    lambda case: _is_not_quantised(case) or case.quantiser is None or not QUANTISERS[case.quantiser].weights_alone,
    "only the quantiser weight-only has blocks",
)
ALL_FP32 = Idle(
    lambda case: _is_not_quantised(case) and (floating_type(case.precision) == "fp32" or _has_no_weights(case)),
    "the precision is FP32 everywhere",
)
NO_IMAGES = Idle(
    _has_no_images,
    "in infer, images are used only for `inputs: data`, and to find the ranges of int8 and fp8; in train, only with "
    "`workers`",
)
NOT_PREPROCESSED = Idle(
    lambda case: _has_no_images(case) or not case.names_file("images"),
    "only pictures of a folder that `images` names are cropped, resized and normalised",
)
NO_LABELLED = Idle(
    _has_no_samples, "in infer, samples are used only for `inputs: data`, and to find the ranges of int8 and fp8"
)
NOT_LABELLED = Idle(lambda case: case.data is None, "it is about labelled arrays, which `data` names")
NOT_JUDGED = Idle(
    _judges_no_images, "infer and train measure no accuracy; calibration_images limits the images for calibration"
)
NO_ARRIVALS = Idle(
    lambda case: case.arrivals == "closed",
    "in a closed loop nothing arrives: the next iteration starts when there is room for it",
)
NO_REPLAYS = Idle(
    lambda case: not is_replayed(case) or case.arrivals != "closed",
    f"only {' and '.join(replaying())} replay a graph, and only in a closed loop without copies, text and `parts`",
)
NO_TOKENS = Idle(
    lambda case: case.model_row is not None and not case.model_row.takes_ids,
    "it sets the second dimension of token ids, and no input of the model has one to set",
)
NO_HEADS = Idle(lambda case: "heads" not in case.shaping(), "only models with heads have rates of them")
SYNTHETIC_IDS = Idle(_reads_no_text, "path none uses synthetic ids")
NOT_TOKENIZED = Idle(
    lambda case: _reads_no_text(case) and not case.workload_row.draws_ids, "path none uses synthetic ids"
)
FED_BY_PATH = Idle(_is_fed_by_path, "`path` and `fed` hand their own ids to the model in each iteration")
FED_ANYHOW = Idle(
    lambda case: PATHS[case.path].reads_text or case.model_row is None or not case.model_row.takes_text,
    "a path that reads text always feeds the model batch by batch",
)
NOT_AT_ONCE = Idle(
    lambda case: not (case.pinned and case.non_blocking),
    "only copies with `pinned: true` and `non_blocking: true` run at once",
)
NOT_TRAINED = Idle(
    lambda case: trained_here(case) is None, "no weights are trained beforehand: they are random, or those of a file"
)
NOT_ITERATED = Idle(lambda case: case.workload_row.fits, "fit trains once, and all of that is its window")
NO_BOARD = Idle(_has_no_board, "it sets the board of a GPU, and this runs on none (noop does where device is a UUID)")
