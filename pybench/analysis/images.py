# SPDX-License-Identifier: Apache-2.0
"""Predictions turned into accuracies and paired accuracy differences, by image id.

Uses the predictions of the first run of a case whose accuracy counts. When repetitions of a case predict differently
(`varying`), the intervals over images miss that part of the variation, and the report says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from pybench.analysis.estimate import Estimate
from pybench.analysis.measurements import Measurements
from pybench.analysis.proportions import ImagePairs, estimate_paired_difference, estimate_share, p_of_no_difference
from pybench.catalogue.metrics import Metric
from pybench.dataset import Dataset

PERCENT = 100.0


@dataclass(frozen=True, slots=True)
class ImageEffect:
    """Candidate minus baseline in percentage points, over `pairs.n` images that both judged. `unmatched`: images that
    only one side has; `relabelled`: images whose label differs between the sides (both are left out)."""

    estimate: Estimate
    pairs: ImagePairs
    p_value: float
    agreement: Estimate
    unmatched: int
    relabelled: int


@dataclass(frozen=True, slots=True)
class ImagePredictions:
    """`frames`: case id -> one row an image (image_id, label, top1, top1_hit, top5_hit). `varying`: cases whose
    repetitions predict differently, with the number of distinct predictions."""

    frames: Mapping[str, pl.DataFrame]
    varying: Mapping[str, int]
    _compared: dict[tuple[str, str, str], ImageEffect | None] = field(default_factory=dict, repr=False, compare=False)
    """(candidate, baseline, column) -> effect: trade-offs look at the same pair once for each speed."""

    def share(self, case_id: str, metric: Metric) -> Estimate | None:
        """Accuracy in percent with its interval over images, or None without predictions."""
        frame = self.frames.get(case_id)
        if frame is None or metric.hit_column is None or frame.height == 0:
            return None
        return estimate_share(int(frame[metric.hit_column].sum()), frame.height).scaled(PERCENT)

    def compare(self, candidate: str, baseline: str, metric: Metric) -> ImageEffect | None:
        """The paired difference of an accuracy, or None when a side has no predictions or no image in common."""
        hit = metric.hit_column
        if hit is None or candidate not in self.frames or baseline not in self.frames:
            return None
        key = (candidate, baseline, hit)
        if key not in self._compared:
            self._compared[key] = self._compare(candidate, baseline, hit)
        return self._compared[key]

    def _compare(self, candidate: str, baseline: str, hit: str) -> ImageEffect | None:
        first, second = self.frames[candidate], self.frames[baseline]
        matched = first.join(second, on="unit_id", how="inner", suffix="_baseline", maintain_order="left")
        judged = matched.filter(pl.col("label") == pl.col("label_baseline"))
        if judged.height == 0:
            return None
        pairs = _count(judged[hit], judged[f"{hit}_baseline"])
        return ImageEffect(
            estimate=estimate_paired_difference(pairs).scaled(PERCENT),
            pairs=pairs,
            p_value=p_of_no_difference(pairs),
            agreement=estimate_share(int((judged["top1"] == judged["top1_baseline"]).sum()), judged.height).scaled(
                PERCENT
            ),
            unmatched=first.height + second.height - 2 * matched.height,
            relabelled=matched.height - judged.height,
        )


def collect_images(dataset: Dataset, measurements: Measurements) -> ImagePredictions:
    """Predictions of every case that has an accuracy which counts."""
    frames = {}
    varying = {}
    for case_id, versions in dataset.prediction_runs.items():
        counting = measurements.cell(case_id, "top1_percent").values.keys()
        counted = {min(blocks): blocks for blocks in versions.values() if counting & set(blocks)}
        if not counted:
            continue
        stored = min(counted)
        rows = dataset.predictions.filter(pl.col("case_id") == case_id, pl.col("block") == stored)
        frames[case_id] = rows.select(
            "unit_id", "label", "top1", (pl.col("top1") == pl.col("label")).alias("top1_hit"), "top5_hit"
        )
        if len(counted) > 1:
            varying[case_id] = len(counted)
    return ImagePredictions(frames, varying)


def _count(candidate: pl.Series, baseline: pl.Series) -> ImagePairs:
    both = int((candidate & baseline).sum())
    only_candidate, only_baseline = int((candidate & ~baseline).sum()), int((~candidate & baseline).sum())
    return ImagePairs(both, only_candidate, only_baseline, candidate.len() - both - only_candidate - only_baseline)
