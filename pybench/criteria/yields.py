# SPDX-License-Identifier: Apache-2.0
"""What a case can yield: names of metrics, on a machine that has every sensor."""

from __future__ import annotations

from pybench.case import Case
from pybench.catalogue.workloads import ABOVE_IDLE, ALONE, COMPILE, ENQUEUE

# What a runtime spends before a first iteration: TensorRT's is its engine's making, and eager torch has none.
_COMPILING = ("onnxruntime", "torch-compile", "torch-graph", "torch-tensorrt")


def metrics_of(case: Case) -> frozenset[str]:
    """Names of the metrics that a case can yield on a machine that has every sensor."""
    row, model = case.workload_row, case.model_row
    is_fed = case.path != "none" or case.fed
    graphs = case.runtime == "torch-graph" or (case.runtime == "tensorrt" and case.launch == "graph")
    is_replayed = row.replays and graphs and not is_fed and not case.transfers
    found = {
        *row.yields,
        *(row.yields_of_model if case.model is not None else ()),
        *(row.yields_of_ids if model is not None and model.takes_ids else ()),
        *(row.yields_fed if model is not None and model.takes_ids and is_fed else ()),
        *(COMPILE if row.opens and case.model is not None and case.runtime in _COMPILING else ()),
        *(ENQUEUE if is_replayed else ()),
        *(ALONE if is_replayed and case.arrivals == "closed" else ()),
    }
    return frozenset(found if case.idle_window_s > 0 else found.difference(ABOVE_IDLE))
