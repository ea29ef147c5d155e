# SPDX-License-Identifier: Apache-2.0
"""Factors that change nothing about a case because of another factor's value."""

from __future__ import annotations

from pybench.case import Case
from pybench.case.factors import BOARD_SETTINGS, QUANTISING_FACTORS
from pybench.catalogue.precisions import floating_type, quantised_type
from pybench.catalogue.quantisers import QUANTISERS
from pybench.catalogue.runtimes import RUNTIME_FACTORS


def idle_factors(case: Case) -> frozenset[str]:
    """Factors that change nothing about a case because of another factor's value. A plan resets them to their default.

    A calibration without int8 or fp8 or where training finds the ranges, what TensorRT builds without TensorRT, a
    corpus with synthetic ids, a precision without a model, a board's settings without a board. Where no
    images are judged, they are only what ranges are found on.
    """
    row = case.workload_row
    calibrates_only = row.uses("images") and row.judges is None  # images are what ranges are found on, and no more
    idle: set[str] = set()
    if quantised_type(case.precision) is None:
        idle.update(QUANTISING_FACTORS)
        if calibrates_only:
            idle.add("images")
        if floating_type(case.precision) == "fp32":
            idle.add("keep_fp32")
    elif case.quantiser is not None and QUANTISERS[case.quantiser].trains:
        idle.update(("calibration", "calibration_images"))  # training finds its ranges, on what it trains on
        if calibrates_only:
            idle.add("images")
    idle.update(_idle_in_runtime(case))
    if calibrates_only:
        idle.add("image_limit")
    if row.model == "optional" and case.model is None:
        idle.update(("runtime", "precision", "checkpoint", *BOARD_SETTINGS))
    if case.device == "cpu" or (row.names_board and case.device in ("auto", "cuda")):
        idle.update(BOARD_SETTINGS)
    if case.arrivals == "closed":
        idle.add("arrival_rate_per_s")
    if case.path == "none":
        idle.update(("corpus", "corpus_limit_bytes", "corpus_field"))
        if not row.draws_ids:
            idle.add("tokenizer")
    if case.path != "none" or case.model_row is None or not case.model_row.takes_text:
        idle.add("fed")
    return frozenset(idle)


def _idle_in_runtime(case: Case) -> set[str]:
    """Factors of other runtimes than the case's, or of other providers of it."""
    row = case.runtime_row
    taken = () if row is None else row.factors_of(case.provider, may_use_gpu=case.device != "cpu")
    return set(RUNTIME_FACTORS) - set(taken)
