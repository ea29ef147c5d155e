# SPDX-License-Identifier: Apache-2.0
"""What a case can yield: names of metrics, on a machine that has every sensor."""

from __future__ import annotations

from pybench.case import Case
from pybench.case.data import task_of
from pybench.case.factors.running import COLD
from pybench.case.idle import is_fed, is_replayed
from pybench.case.service_levels import GROUP, rows_of
from pybench.catalogue.heads import head_metrics
from pybench.catalogue.precisions import PRECISIONS
from pybench.catalogue.workloads import ABOVE_IDLE, ALONE, COMPILE, CORE, ENQUEUE, KERNELS, OF_SLOW

TOKENS_OF = {"runtime": "torch", "precision": "fp32"}  # what tokens are compared with


def is_profiled(case: Case) -> bool:
    """Whether a run of the case ends with a profile of its kernels: its runtime can tell them, and time counts."""
    row, runtime = case.workload_row, case.runtime_row
    can_tell = runtime is not None and runtime.profile is not None
    return can_tell and row.opens and row.timed and not row.generates and case.model is not None


def is_compared(case: Case) -> bool:
    """Whether a run ends with a comparison of its tokens with those of the same module in FP32: drawn ones say nothing
    of a precision."""
    runtime = case.runtime_row
    return case.workload_row.generates and case.temperature == 0 and runtime is not None and runtime.opens == "module"


def is_required(validity: str, case: Case) -> bool:
    """Whether a validity that a plan requires has a meaning for a case: accuracy is asked of accuracy runs only."""
    if validity == "accuracy":
        return case.workload_row.judges is not None
    if validity == "precision":
        return case.model is not None
    return case.workload_row.timed


def metrics_of(case: Case) -> frozenset[str]:
    """Names of the metrics that a case can yield on a machine that has every sensor."""
    row, model, task = case.workload_row, case.model_row, task_of(case)
    is_loaded = case.workers is not None
    runtime = case.runtime_row
    is_opened = row.opens or (row.trains and runtime is not None and bool(runtime.trains))
    compiles = runtime is not None and runtime.compile_is is not None
    found = {
        *row.yields,
        *(() if task is None else task.yields),
        *(row.yields_of_model if case.model is not None else ()),
        *(row.yields_of_ids if model is not None and model.takes_ids else ()),
        *(row.yields_fed if model is not None and (model.takes_ids or is_loaded) and is_fed(case) else ()),
        *set(row.yields_of_heads).intersection(_of_heads(case)),
        *(COMPILE if is_opened and case.model is not None and compiles else ()),
        *(row.yields_compared if is_compared(case) else ()),
        *(KERNELS if is_profiled(case) else ()),
        *(row.yields_lowered if _is_lowered(case) else ()),
        *(row.yields_scaled if is_scaled(case) else ()),
        *(ENQUEUE if is_replayed(case) else ()),
        *(ALONE if is_replayed(case) and case.arrivals == "closed" else ()),
    }
    if row.uses(GROUP):
        found |= {level.name for level in rows_of(case) if level.share_of is None or level.share_of in found}
    if case.idle_window_s == 0:
        found -= set(ABOVE_IDLE)
    if not _is_called(case):
        found -= set(CORE)
    if case.cache == COLD:
        found -= set(OF_SLOW)
    return frozenset(found)


def _is_called(case: Case) -> bool:
    """Whether Python calls each iteration, rather than that a graph is replayed or another process runs them."""
    runtime = case.runtime_row
    return not is_replayed(case) and (runtime is None or runtime.own_path is None)


def is_scaled(case: Case) -> bool:
    """Whether a loss is scaled in training: FP16 alone has too few exponents for gradients."""
    contract = PRECISIONS[case.precision]
    return contract.autocast and contract.floating == "fp16"


def _of_heads(case: Case) -> tuple[str, ...]:
    return head_metrics(case.heads, case.head_rates_hz is not None) if "heads" in case.shaping() else ()


def _is_lowered(case: Case) -> bool:
    """Whether the case opens a file that is made of one in FP32."""
    opens = None if case.runtime_row is None else case.runtime_row.opens
    row = PRECISIONS[case.precision]
    is_lowered = (row.quantised is not None or row.floating != "fp32") and not row.autocast
    return opens in ("onnx", "engine") and is_lowered and case.model is not None
