# SPDX-License-Identifier: Apache-2.0
"""Every metric that a run can have: what it is, its unit, which direction is better, what it rests on.

The rows are in one module per subject. Their order, module after module, is that of tables and of the sections of
docs/metrics.md, which is made of them.
"""

from __future__ import annotations

from pybench.catalogue.metrics import (
    accuracy,
    cpu_energy,
    gpu_energy,
    heads,
    kernels,
    memory,
    system_energy,
    timing,
    training,
)
from pybench.catalogue.metrics.metric import AT, GPU, Amount, Metric
from pybench.catalogue.rows import Rows

__all__ = ["GPU", "METRICS", "PER_BOUND", "TOTALS", "Amount", "Metric", "metric_named"]

_ROWS: tuple[Metric, ...] = (
    *timing.ROWS,
    *heads.ROWS,
    *kernels.ROWS,
    *memory.ROWS,
    *gpu_energy.ROWS,
    *cpu_energy.ROWS,
    *system_energy.ROWS,
    *accuracy.ROWS,
    *training.ROWS,
)

METRICS = Rows("metric", _ROWS)
TOTALS = frozenset(metric.of for metric in _ROWS if metric.of is not None)
"""Metrics of a whole window, whose work differs from case to case: what they are divided by compares cases."""
PER_BOUND = tuple(metric for metric in _ROWS if metric.is_per_bound)


def metric_named(name: str) -> Metric:
    """One of pybench's own rows, or that of a bound. Raises UnknownNameError for another name."""
    base, _, bound = name.partition(AT)
    if not bound or base not in METRICS:
        return METRICS[name]
    return METRICS[base].at_bound(float(bound.removesuffix("ms")))
