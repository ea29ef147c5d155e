# SPDX-License-Identifier: Apache-2.0
"""The rows that a case is read with: pybench's own, and those that a campaign has stored of what others add.

A case carries its catalogue, so two campaigns with different rows of one name can be read at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pybench.catalogue.metrics import AT, METRICS, Metric
from pybench.catalogue.models import MODELS, Model
from pybench.catalogue.rows import Rows
from pybench.catalogue.runtimes import RUNTIMES, Runtime
from pybench.catalogue.workloads import WORKLOADS, Workload

Row = Workload | Runtime | Model | Metric


def kind_of(row: Row) -> str:
    """What a row is one of, in words: `workload`."""
    return type(row).__name__.lower()


@dataclass(frozen=True, slots=True, eq=False)
class Catalogue:
    """Name -> row of each kind that a package outside pybench can add to."""

    workloads: Rows[Workload]
    runtimes: Rows[Runtime]
    models: Rows[Model]
    metrics: Rows[Metric]

    def with_rows(self, rows: Iterable[Row]) -> Catalogue:
        """This catalogue with further rows. A row takes the place of one of its kind and name, so that a campaign is
        read with what it was measured with."""
        added = tuple(rows)
        if not added:
            return self
        return Catalogue(
            _with(self.workloads, [row for row in added if isinstance(row, Workload)]),
            _with(self.runtimes, [row for row in added if isinstance(row, Runtime)]),
            _with(self.models, [row for row in added if isinstance(row, Model)]),
            _with(self.metrics, [row for row in added if isinstance(row, Metric)]),
        )

    def added(self) -> tuple[Row, ...]:
        """The rows that are not pybench's own."""
        if self is BUILT_IN:
            return ()
        pairs = zip(self._tables(), BUILT_IN._tables(), strict=True)
        return tuple(row for rows, own in pairs for name, row in rows.items() if own.get(name) != row)

    def models_of(self, workload: Workload) -> tuple[str, ...]:
        """Names of the models that a workload takes."""
        return tuple(name for name, model in self.models.items() if workload.accepts(model))

    def judge_of(self, workload: Workload) -> Workload | None:
        """The workload that judges the outputs of this one; None: there is none."""
        return next((other for other in self.workloads.values() if other.judges == workload.name), None)

    def metric(self, name: str) -> Metric:
        """The row of a metric, or that of a metric at a bound: `slo_attainment_ratio@50ms`.

        Raises UnknownNameError for another name.
        """
        base, _, bound = name.partition(AT)
        if name in self.metrics or not bound or base not in self.metrics:
            return self.metrics[name]
        return self.metrics[base].at_bound(float(bound.removesuffix("ms")))

    def _tables(self) -> tuple[Rows[Any], ...]:
        return self.workloads, self.runtimes, self.models, self.metrics

    def __reduce__(self) -> str | tuple[Any, ...]:
        """pybench's own rows are named, not copied, where a case is copied or pickled."""
        if self is BUILT_IN:
            return "BUILT_IN"
        return Catalogue, self._tables()


def _with(known: Rows[Any], added: list[Any]) -> Rows[Any]:
    return Rows(known.kind, (known | {row.name: row for row in added}).values()) if added else known


BUILT_IN = Catalogue(WORKLOADS, RUNTIMES, MODELS, METRICS)
