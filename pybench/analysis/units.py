# SPDX-License-Identifier: Apache-2.0
"""Scores of units (images, windows of text, volumes, points) turned into accuracies and paired differences, by id.

Uses the scores of the first run of a case whose accuracy counts. When repetitions of a case score differently
(`varying`), the intervals over units miss that part of the variation, and the report says so. Units of one group (a
file of text) are alike: their intervals follow from the variance of whole groups
(`pybench.analysis.statistics.grouped`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from pybench.analysis.measurements import Measurements
from pybench.analysis.statistics.estimate import Estimate, Sample
from pybench.analysis.statistics.grouped import (
    Floats,
    design_effect,
    estimate_grouped_mean,
    grouped_pivot,
    p_of_no_grouped_mean,
)
from pybench.analysis.statistics.intervals import estimate_mean, spread_pivot
from pybench.analysis.statistics.paired import p_of_no_effect
from pybench.analysis.statistics.pivot import LimitTest
from pybench.analysis.statistics.proportions import (
    ScoreTest,
    UnitPairs,
    estimate_paired_difference,
    estimate_share,
    p_of_no_difference,
)
from pybench.case import Case
from pybench.case.data import data_set_of, task_of
from pybench.catalogue.metrics import Metric
from pybench.dataset import Dataset

PERCENT = 100.0
_IMAGE = "image"


@dataclass(frozen=True, slots=True)
class UnitEffect:
    """Candidate against baseline over the units that both scored: percentage points of hits, a difference of scores, or
    a ratio where scores are logarithms.

    pairs: of hits, how often each side was right; None for scores
    n: units that both sides have, with one truth
    groups: how many groups these are of; None: they are independent
    agreement: share of equal answers, in percent; None for scores
    test: of the estimate, or of its logarithm where it is a ratio; None: it has no interval, or no spread
    unmatched: units that only one side has; `relabelled`: units whose label differs between the sides (both are left
        out)
    """

    estimate: Estimate
    pairs: UnitPairs | None
    n: int
    groups: int | None
    p_value: float | None
    agreement: Estimate | None
    test: LimitTest | None
    unmatched: int
    relabelled: int

    @property
    def left_out(self) -> int:
        """Units that are not compared."""
        return self.unmatched + self.relabelled


@dataclass(frozen=True, slots=True)
class UnitScores:
    """`frames`: case id -> one row a unit: unit_id, group (null: independent), and the columns of its task. `varying`:
    cases whose repetitions score differently, with the number of distinct ones."""

    frames: Mapping[str, pl.DataFrame]
    varying: Mapping[str, int]
    _compared: dict[tuple[str, str, str], UnitEffect | None] = field(default_factory=dict, repr=False, compare=False)
    """(candidate, baseline, metric) -> effect: trade-offs look at the same pair once for each speed."""

    def share(self, case_id: str, metric: Metric) -> Estimate | None:
        """A case's metric with its interval over units, or None without scores of it."""
        frame, column = self.frames.get(case_id), metric.hit_column or metric.score_column
        if frame is None or column is None or column not in frame.columns or frame.height == 0:
            return None
        values, groups = _floats(frame[column]), _groups(frame)
        if metric.hit_column is not None:
            effect = 1.0 if groups is None else design_effect(values, groups)
            return estimate_share(int(values.sum()), frame.height, design_effect=effect).scaled(PERCENT)
        estimate = _mean(values, groups)
        estimate = estimate if metric.limits is None else estimate.within(*metric.limits)
        return estimate.exp() if metric.scale == "ratio" else estimate

    def in_groups(self, case_id: str) -> bool:
        """Whether a case has scores of units that are of groups."""
        return case_id in self.frames and _groups(self.frames[case_id]) is not None

    def compare(self, candidate: str, baseline: str, metric: Metric) -> UnitEffect | None:
        """The paired difference of a metric, or None when a side has no scores of it, or no unit in common."""
        column = metric.hit_column or metric.score_column
        frames = [self.frames.get(case_id) for case_id in (candidate, baseline)]
        if column is None or any(frame is None or column not in frame.columns for frame in frames):
            return None
        key = (candidate, baseline, metric.name)
        if key not in self._compared:
            self._compared[key] = self._compare(candidate, baseline, metric)
        return self._compared[key]

    def _compare(self, candidate: str, baseline: str, metric: Metric) -> UnitEffect | None:
        first, second = self.frames[candidate], self.frames[baseline]
        matched = first.join(second, on="unit_id", how="inner", suffix="_baseline", maintain_order="left")
        has_labels = "label" in first.columns and "label" in second.columns
        judged = matched.filter(pl.col("label") == pl.col("label_baseline")) if has_labels else matched
        if judged.height == 0:
            return None
        unmatched, relabelled = first.height + second.height - 2 * matched.height, matched.height - judged.height
        compare = _compare_scores if metric.hit_column is None else _compare_hits
        return compare(judged, metric, unmatched, relabelled)


def collect_units(dataset: Dataset, measurements: Measurements) -> UnitScores:
    """Scores of every case that has an accuracy which counts."""
    frames = {}
    varying = {}
    for case_id, versions in dataset.prediction_runs.items():
        counting = measurements.cell(case_id, _headline(dataset.cases[case_id])).values.keys()
        counted = {min(blocks): blocks for blocks in versions.values() if counting & set(blocks)}
        if not counted:
            continue
        stored = min(counted)
        rows = dataset.predictions.filter(pl.col("case_id") == case_id, pl.col("block") == stored)
        own = rows.drop("case_id", "block")
        own = own.select(name for name in own.columns if own[name].null_count() < own.height or name == "group")
        hits = [(pl.col("top1") == pl.col("label")).alias("top1_hit")] if "top1" in own.columns else []
        frames[case_id] = own.with_columns(hits)
        if len(counted) > 1:
            varying[case_id] = len(counted)
    return UnitScores(frames, varying)


def unit_of(case: Case) -> str:
    """What has one score in a case's data, in a word."""
    row = data_set_of(case)
    return _IMAGE if row is None else row.unit


def _headline(case: Case) -> str:
    """The metric whose validity decides whether scores count. A package's workload that stores predictions scores
    classes."""
    task = task_of(case)
    return "top1_percent" if task is None else task.headline


def _compare_hits(judged: pl.DataFrame, metric: Metric, unmatched: int, relabelled: int) -> UnitEffect:
    candidate, baseline = judged[str(metric.hit_column)], judged[f"{metric.hit_column}_baseline"]
    pairs, groups = _count(candidate, baseline), _groups(judged)
    same = judged["top1"] == judged["top1_baseline"]
    differences = _floats(candidate) - _floats(baseline)
    effect = 1.0 if groups is None else design_effect(differences, groups)
    alike = 1.0 if groups is None else design_effect(_floats(same), groups)
    return UnitEffect(
        estimate=estimate_paired_difference(pairs, design_effect=effect).scaled(PERCENT),
        pairs=pairs,
        n=judged.height,
        groups=None if groups is None else len(set(groups)),
        p_value=p_of_no_difference(pairs, design_effect=None if groups is None else effect),
        agreement=estimate_share(int(same.sum()), judged.height, design_effect=alike).scaled(PERCENT),
        test=ScoreTest(pairs, effect, PERCENT),
        unmatched=unmatched,
        relabelled=relabelled,
    )


def _compare_scores(judged: pl.DataFrame, metric: Metric, unmatched: int, relabelled: int) -> UnitEffect:
    groups = _groups(judged)
    differences = _floats(judged[str(metric.score_column)]) - _floats(judged[f"{metric.score_column}_baseline"])
    estimate = _mean(differences, groups)
    return UnitEffect(
        estimate=estimate.exp() if metric.scale == "ratio" else estimate,
        pairs=None,
        n=judged.height,
        groups=None if groups is None else len(set(groups)),
        p_value=p_of_no_effect(Sample(differences)) if groups is None else p_of_no_grouped_mean(differences, groups),
        agreement=None,
        test=spread_pivot(Sample(differences)) if groups is None else grouped_pivot(differences, groups),
        unmatched=unmatched,
        relabelled=relabelled,
    )


def _mean(values: Floats, groups: Sequence[str] | None) -> Estimate:
    return estimate_mean(Sample(values)) if groups is None else estimate_grouped_mean(values, groups)


def _groups(frame: pl.DataFrame) -> list[str] | None:
    """The group of each unit; None where units are independent."""
    return None if frame["group"].null_count() else frame["group"].to_list()


def _floats(column: pl.Series) -> Floats:
    return column.cast(pl.Float64).to_numpy().astype(np.float64)


def _count(candidate: pl.Series, baseline: pl.Series) -> UnitPairs:
    both = int((candidate & baseline).sum())
    only_candidate, only_baseline = int((candidate & ~baseline).sum()), int((~candidate & baseline).sum())
    return UnitPairs(both, only_candidate, only_baseline, candidate.len() - both - only_candidate - only_baseline)
