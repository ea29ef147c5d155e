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

__all__ = ["AT", "GPU", "METRICS", "TOTALS", "Amount", "Metric"]

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
