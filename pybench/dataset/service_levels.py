# SPDX-License-Identifier: Apache-2.0
"""What a run says of the bounds that its plan asks about, evaluated from its iterations.csv.

Nothing of it is stored: a plan that asks about other bounds is answered by the same runs. An iteration keeps a bound
when its latency is at most the bound; latency is what `latency_mean_ms` of the same run is about.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pybench.campaign.directory import RunDirectory
from pybench.campaign.layout import ITERATIONS
from pybench.case import Case
from pybench.case.service_levels import rows_of
from pybench.catalogue.metrics import Metric
from pybench.catalogue.reasons import Reason, ReasonCode
from pybench.errors import CorruptError

_WAITING, _HOST, _GPU = "waiting_ns", "host_ns", "gpu_ns"


def evaluate(
    case: Case, directory: RunDirectory, metrics: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """The metrics of a case's bounds by their names, in the stored form. `metrics`: those that the run stored.

    Raises CorruptError for a file that cannot be read.
    """
    rows = rows_of(case)
    if not rows:
        return {}
    latency_ns, method = read_latencies(directory.file(ITERATIONS))
    return {row.name: _at_bound(row, latency_ns, metrics, method) for row in rows}


def read_latencies(file: Path) -> tuple[NDArray[np.int64], str]:
    """int64 [n] ns, the latency of each timed iteration in order, and what it is in words.

    From the arrival until the host saw the end, else the GPU's time, else the host's (`Times.latency_ns` of the
    measuring half).
    """
    try:
        table = pl.read_csv(file)
        _check_columns(table, file)
        parts = (_WAITING, _HOST) if _WAITING in table.columns else (_GPU,) if _GPU in table.columns else (_HOST,)
        latency_ns = np.sum([table[part].cast(pl.Int64).to_numpy() for part in parts], axis=0)
    except (OSError, UnicodeDecodeError, pl.exceptions.PolarsError) as error:
        what = str(error).partition("\n")[0]
        raise CorruptError(f"{file} cannot be read: {what}") from error
    if len(table) == 0:
        raise CorruptError(f"{file} has no iteration")
    return latency_ns, "response time" if _WAITING in table.columns else "latency of an iteration"


def _check_columns(table: pl.DataFrame, file: Path) -> None:
    if _HOST not in table.columns:
        is_older = "begin_ns" in table.columns
        older = ", and has begin_ns: an older pybench wrote it" if is_older else ""
        what = f"{file} cannot be read: it lacks {_HOST}{older}"
        raise CorruptError(what, hint="take `slo_ms` out of the plan, or run these cases again" if is_older else None)


def _at_bound(
    row: Metric, latency_ns: NDArray[np.int64], metrics: Mapping[str, Mapping[str, Any]], method: str
) -> dict[str, Any]:
    """One metric at one bound. The rate of what keeps the bound is its share of the rate of all."""
    bound_ns = round((row.bound_ms or 0.0) * 1e6)
    share = float(np.count_nonzero(latency_ns <= bound_ns)) / len(latency_ns)
    rate = 1.0 if row.share_of is None else metrics.get(row.share_of, {}).get("value")
    return {
        "value": None if rate is None else share * rate,
        "unit": row.unit,
        "window": "timing",
        "samples": len(latency_ns),
        "method": method,
        "reason": str(Reason(ReasonCode.NOTHING_COUNTED, f"the run has no {row.share_of}")) if rate is None else None,
    }
