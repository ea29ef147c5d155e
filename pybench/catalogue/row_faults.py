# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a row of a package by itself: it names what pybench does not have, or leaves out what it needs.

That its properties have their types is `pybench.catalogue.stored`. Names that other packages may add are not judged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pybench.catalogue.catalogue import Row
from pybench.catalogue.data_sets import DATA_SETS
from pybench.catalogue.metrics import Metric
from pybench.catalogue.models import MODELS, Model
from pybench.catalogue.paths import PATHS
from pybench.catalogue.precisions import PRECISIONS
from pybench.catalogue.quantisers import QUANTISERS
from pybench.catalogue.runtimes import COMPILE_MODES, RUNTIME_FACTORS, Runtime
from pybench.catalogue.workloads import Workload

MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
SHAPING_FACTORS = tuple(dict.fromkeys(name for model in MODELS.values() for name in model.shaped_by))


@dataclass(frozen=True, slots=True)
class RowFault:
    """One fault. `what` follows `adds the runtime NAME, `; `hint`: what to do."""

    what: str
    hint: str


def fault_of(row: Row) -> RowFault | None:
    """The first fault of a row; None: it has none."""
    return next(_FAULTS[type(row)](row), None)


def _of_metric(row: Metric) -> Iterator[RowFault]:
    if row.bound_ms is not None:
        yield RowFault("which has a `bound_ms`", "set `is_per_bound` instead: bounds are those of `slo_ms` in a plan")
    if row.is_per_bound and row.unit != "1" and row.share_of is None:
        what = "a rate at bounds of latency that no rate is named for"
        yield RowFault(what, "name the metric of the whole rate as its `share_of`")


def _of_model(row: Model) -> Iterator[RowFault]:
    for name in ("trained_on", "judged_on"):
        yield from _unknown(name, (getattr(row, name),), DATA_SETS, "data set")
    yield from _unknown("shaped_by", row.shaped_by, SHAPING_FACTORS, "factor of models")


def _of_runtime(row: Runtime) -> Iterator[RowFault]:
    yield from _needs(row.needs)
    of_backends = [name for each in row.backends for name in (*each.precisions, *each.generates_in)]
    for name, precisions in (("precisions", row.precisions), ("trains", row.trains), ("backends", of_backends)):
        yield from _unknown(name, precisions, PRECISIONS, "precision")
    if sum(map(bool, (row.precisions, row.backends, row.computes_in))) != 1:
        what = "which does not say in one way what it infers in"
        yield RowFault(what, "set one of `precisions`, `backends` and `computes_in`")
    for name in ("factors", "build_factors"):
        yield from _unknown(name, getattr(row, name), RUNTIME_FACTORS, "factor of runtimes")
    for name in ("modes", "graph_modes"):
        yield from _unknown(name, getattr(row, name), COMPILE_MODES, "value of `compile_mode`")
    yield from _unknown("quantiser", (row.quantiser,), QUANTISERS, "quantiser")
    yield from _unknown("own_path", (row.own_path,), PATHS, "path")


def _of_workload(row: Workload) -> Iterator[RowFault]:
    yield from _needs(row.needs)


def _needs(needs: Iterable[str]) -> Iterator[RowFault]:
    """What a row needs is a package that Python can import."""
    for need in needs:
        if not MODULE.fullmatch(need):
            yield RowFault(f"whose `needs` has no name of a package: {need!r}", "name it as Python imports it")


def _unknown(name: str, named: Iterable[str | None], known: Iterable[str], kind: str) -> Iterator[RowFault]:
    """A fault for each value of a property that is not known. `kind`: what it should be one of, in words."""
    for value in named:
        if value is not None and value not in known:
            yield RowFault(f"whose `{name}` names no {kind} of pybench: {value}", f"name one of {', '.join(known)}")


_FAULTS: Mapping[type[Row], Callable[[Any], Iterator[RowFault]]] = {
    Metric: _of_metric,
    Model: _of_model,
    Runtime: _of_runtime,
    Workload: _of_workload,
}
