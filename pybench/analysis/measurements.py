# SPDX-License-Identifier: Apache-2.0
"""Which numbers of which runs count: validity applied to the tidy frame, with everything left out counted by reason.

A value counts when its run is `ok` and the validity that its metric rests on is not false. Nor may the run's precision
be false: a number of another precision than the case names is no number of that case. Null validity ("not asked") keeps
the value. A metric that needs every run has none where one of them ended before its target. A case has no time where
half of its runs were too fast for the clock. What does not count stays in `MetricValues.excluded` and
`MetricValues.missing`, each with its reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import polars as pl

from pybench.case import catalogue_of
from pybench.catalogue.causes import Cause
from pybench.catalogue.metrics import METRICS, Metric
from pybench.catalogue.reasons import Reason, ReasonCode, read_reason, reason_from_text
from pybench.catalogue.validities import VALIDITIES
from pybench.dataset import Dataset

UNSTATED = read_reason("unstated")  # of a false validity or a missing value whose run gives no reason


@dataclass(frozen=True, slots=True)
class Invalidity:
    """Which validity of a run is false, so that a value does not count, and why."""

    validity: str
    reasons: tuple[Reason, ...]

    def __str__(self) -> str:
        return f"{self.validity}: {', '.join(reason.stored_code for reason in self.reasons)}"


@dataclass(slots=True)
class MetricValues:
    """One metric of one case.

    values: block -> value that counts
    excluded: block -> why its value is invalid
    missing: block -> reason why there is none, further ones in its detail
    bounds: block -> (lower, upper) of an estimate without a value
    u_absolute: block -> absolute standard uncertainty of a value that counts, where it has one
    """

    values: dict[int, float] = field(default_factory=dict)
    u_absolute: dict[int, float] = field(default_factory=dict)
    excluded: dict[int, Invalidity] = field(default_factory=dict)
    missing: dict[int, Reason] = field(default_factory=dict)
    bounds: dict[int, tuple[float, float]] = field(default_factory=dict)
    windows: set[str] = field(default_factory=set)
    methods: set[str] = field(default_factory=set)

    def why_empty(self) -> str:
        """The commonest reason for having no value, or the empty text when no run of the case is `ok` or has the
        metric."""
        reasons = Counter(map(str, [*self.excluded.values(), *self.missing.values()]))
        return reasons.most_common(1)[0][0] if reasons else ""


NO_SUCH_NUMBER = "its runs have no such number"


@dataclass(frozen=True, slots=True)
class Measurements:
    """Every cell of a campaign.

    cells: (case id, metric) -> its values
    failures: case id -> its commonest `outcome: reason` besides `ok`
    unknown: metric that the catalogue has no row of -> how many values of it are stored
    metrics: rows by name, in the order of tables
    ran: ids of the cases that have a value of any metric
    tests: how many share the level of each interval over blocks: the looks, where they tell when to stop
    """

    cells: Mapping[tuple[str, str], MetricValues]
    failures: Mapping[str, str]
    unknown: Mapping[str, int]
    metrics: Mapping[str, Metric] = field(default_factory=lambda: METRICS)
    tests: int = 1
    ran: frozenset[str] = frozenset()

    def of_case(self, case_id: str) -> dict[str, MetricValues]:
        return {name: self.cells[case_id, name] for name in self.metrics if (case_id, name) in self.cells}

    def cell(self, case_id: str, metric: str) -> MetricValues:
        """An empty cell where no run of the case has the metric."""
        return self.cells.get((case_id, metric), MetricValues())

    def of_metrics(self, names: Set[str]) -> Measurements:
        """Those of some metrics alone, for another process."""
        return replace(self, cells={key: cell for key, cell in self.cells.items() if key[1] in names})

    def why_empty(self, case_id: str, metric: str) -> str:
        """What stands where the number would: why no run of the case has a value that counts."""
        unmeasured = NO_SUCH_NUMBER if case_id in self.ran else "not measured"
        return self.cell(case_id, metric).why_empty() or self.failures.get(case_id, unmeasured)


def collect(dataset: Dataset, questions: int = 1) -> Measurements:
    """One pass over the cells. A metric without a row is counted and left in the frame: nothing is known of it.
    `questions`: how many are asked at each look, if their intervals have to hold together."""
    invalid = _invalidities(dataset)
    rows = dataset.metric_rows("case_id", "block", "outcome").lazy()
    stored = rows.filter(pl.col("outcome") == "ok", pl.col("metric").is_not_null())
    columns = stored.group_by("case_id", "metric", maintain_order=True).agg(*_StoredValues.columns()).collect()
    cells: dict[tuple[str, str], MetricValues] = {}
    unknown: Counter[str] = Counter()
    for case_id, name, *values in columns.iter_rows():
        found = _StoredValues._make(values)
        metric = dataset.cases[case_id].catalogue.metrics.get(name)
        if metric is None:
            unknown[name] += len(found.block)
            continue
        doubted: dict[int, Invalidity] = {}
        for kind in (*metric.validities, "precision"):
            doubted |= invalid.get((case_id, kind), {})
        cell = cells[case_id, name] = _cell(found, doubted)
        if metric.needs_every_run:
            withhold(cell)
        _leave_out_survivors(cell)
    rule = dataset.plan.repetitions.rule
    tests = questions * (1 if rule is None else len(rule.looks))
    metrics, ran = catalogue_of(dataset.cases.values()).metrics, frozenset(case_id for case_id, _ in cells)
    return Measurements(cells, _failures(dataset), unknown, metrics, tests, ran)


class _StoredValues(NamedTuple):
    """One metric of the `ok` runs of one case, a column each; of windows and methods each one once."""

    block: list[int]
    value: list[float | None]
    u_absolute: list[float | None]
    lower: list[float | None]
    upper: list[float | None]
    reason: list[str | None]
    window: list[str]
    method: list[str]

    @classmethod
    def columns(cls) -> list[pl.Expr]:
        return [
            pl.col(name).drop_nulls().unique() if name in ("window", "method") else pl.col(name) for name in cls._fields
        ]


def _cell(stored: _StoredValues, invalid: Mapping[int, Invalidity]) -> MetricValues:
    """`invalid`: block -> why no value of it counts."""
    excluded = {block: invalid[block] for block in stored.block if block in invalid}
    told = zip(stored.block, stored.value, strict=True)
    values = {block: value for block, value in told if value is not None and block not in excluded}
    uncertain = zip(stored.block, stored.u_absolute, strict=True)
    cell = MetricValues(
        values=values,
        u_absolute={block: u for block, u in uncertain if u is not None and block in values},
        excluded=excluded,
        windows={window for window in stored.window if window},
        methods={method for method in stored.method if method},
    )
    if len(values) + len(excluded) == len(stored.block):
        return cell
    for block, low, high, reason in zip(stored.block, stored.lower, stored.upper, stored.reason, strict=True):
        if block in values or block in excluded:
            continue
        if low is not None and high is not None:
            cell.bounds[block] = (low, high)
        else:
            cell.missing[block] = reason_from_text(reason) if reason else UNSTATED
    return cell


def withhold(cell: MetricValues) -> None:
    """Leaves no value where a run ended before it had one: its value is larger, so the others have too small a mean."""
    early = [block for block, reason in cell.missing.items() if reason.code is ReasonCode.NOT_REACHED]
    if early:
        said = f"{len(early)} of {len(cell.values) + len(cell.missing)} runs did not reach the target"
        cell.missing |= dict.fromkeys([*cell.values, *early], Reason(ReasonCode.NOT_REACHED, said))
        cell.values.clear()
        cell.u_absolute.clear()


def _leave_out_survivors(cell: MetricValues) -> None:
    """Leaves no value where at least half of the runs were too fast for the clock: the others were the slow ones."""
    too_fast = [
        found
        for found in cell.excluded.values()
        if any(reason.code is Cause.BELOW_CLOCK_RESOLUTION for reason in found.reasons)
    ]
    if cell.values and len(too_fast) >= len(cell.values):
        cell.excluded |= dict.fromkeys(cell.values, too_fast[0])
        cell.values.clear()
        cell.u_absolute.clear()


def _failures(dataset: Dataset) -> dict[str, str]:
    """A case with no complete run at all is not here."""
    reasons: dict[str, Counter[str]] = {}
    for case_id, outcome, reason in dataset.runs.select("case_id", "outcome", "reason").iter_rows():
        if outcome != "ok":
            reasons.setdefault(case_id, Counter())[f"{outcome}: {reason}" if reason else outcome] += 1
    return {case_id: counts.most_common(1)[0][0] for case_id, counts in reasons.items()}


def _invalidities(dataset: Dataset) -> dict[tuple[str, str], dict[int, Invalidity]]:
    """(case id, validity) -> block -> why, for every validity that is false."""
    found: dict[tuple[str, str], dict[int, Invalidity]] = {}
    for name in VALIDITIES:
        invalid = dataset.runs.filter(~dataset.runs[f"valid_{name}"]).select("case_id", "block", f"reasons_{name}")
        for case_id, block, stored in invalid.iter_rows():
            reasons = tuple(map(read_reason, stored or ())) or (UNSTATED,)
            found.setdefault((case_id, name), {})[block] = Invalidity(name, reasons)
    return found
