# SPDX-License-Identifier: Apache-2.0
"""What each path costs by the size of the model, in campaigns whose truth is known; and the figure that shows it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from pybench.analysis import Analysis, analyse
from pybench.case import Case
from pybench.dataset import load
from pybench.report import write_report
from tests.support.campaigns import CampaignBuilder

MODELS = {"tinylm-small": 80e6, "tinylm-large": 236e6}  # bytes
# What each path leaves of the throughput without preprocessing, by model.
TRUE_SHARE = {
    "python": {"tinylm-small": 0.2, "tinylm-large": 0.6},
    "rust": {"tinylm-small": 0.9, "tinylm-large": 1.0},
    "go_rust": {"tinylm-small": 1.0, "tinylm-large": 1.0},
}
AGAINST_NONE = {"baseline": {"path": "none"}, "accept": {"tokens_per_s_ratio_min": 0.99}}


def cases(workloads: tuple[str, ...] = ("infer",)) -> list[Case]:
    return [
        Case(
            workload=workload, model=model, runtime="torch", path=path, batch=8,
            fed=workload == "infer" and path == "none", corpus_limit_bytes=None if path == "none" else 1000,
        )
        for workload in workloads for model in MODELS for path in ("none", *TRUE_SHARE)
    ]  # fmt: skip


def build(
    folder: Path,
    *,
    share: Mapping[str, Mapping[str, float]] = TRUE_SHARE,
    repetitions: int = 8,
    workloads: tuple[str, ...] = ("infer",),
    declared: object = AGAINST_NONE,
) -> Path:
    """A campaign with 0.1 % noise between runs and 5 % drift common to a block."""
    builder = CampaignBuilder(folder, cases(workloads), repetitions=repetitions, declared=declared)
    rng = np.random.default_rng(5)
    for block in range(1, repetitions + 1):
        drift = float(np.exp(rng.normal(0, 0.05)))
        for case in builder.cases:
            left = 1.0 if case.path == "none" else share[case.path][str(case.model)]
            rate = 1e6 * left * drift * float(np.exp(rng.normal(0, 0.001)))
            builder.run(case, block, {"throughput_tokens_per_s": rate, "model_bytes": MODELS[str(case.model)]})
    return builder.path


def analysed(folder: Path, **options: object) -> Analysis:
    return analyse(load(build(folder, **options)))  # type: ignore[arg-type]


def test_each_path_has_its_share_at_each_size_with_an_interval_that_holds_the_truth(tmp_path: Path) -> None:
    costs = {cost.path: cost for cost in analysed(tmp_path / "c").path_costs}
    assert set(costs) == set(TRUE_SHARE)
    for path, cost in costs.items():
        assert [size.model for size in cost.sizes] == ["tinylm-small", "tinylm-large"]
        assert [size.model_bytes for size in cost.sizes] == [80e6, 236e6]
        for size in cost.sizes:
            assert size.relative.lower is not None
            assert size.relative.upper is not None
            truth = TRUE_SHARE[path][size.model]
            assert size.relative.lower - 0.001 <= truth <= size.relative.upper + 0.001
            assert size.relative.value == pytest.approx(truth, rel=0.003)


def test_a_path_is_free_from_the_smallest_size_from_which_on_it_is(tmp_path: Path) -> None:
    free = {cost.path: cost.free_from for cost in analysed(tmp_path / "c").path_costs}
    assert free["python"] is None
    assert free["rust"] is not None
    assert free["rust"].model == "tinylm-large"
    assert free["go_rust"] is not None
    assert free["go_rust"].model == "tinylm-small"


def test_a_path_that_costs_again_at_a_larger_size_is_free_from_none(tmp_path: Path) -> None:
    share = {**TRUE_SHARE, "rust": {"tinylm-small": 1.0, "tinylm-large": 0.9}}
    free = {cost.path: cost.free_from for cost in analysed(tmp_path / "c", share=share).path_costs}
    assert free["rust"] is None


def test_one_repetition_has_no_interval_and_calls_nothing_free(tmp_path: Path) -> None:
    costs = analysed(tmp_path / "c", repetitions=1).path_costs
    assert len(costs) == 3
    assert all(cost.free_from is None for cost in costs)


def test_workloads_are_told_apart_and_without_the_contrast_nothing_is_said(tmp_path: Path) -> None:
    both = analysed(tmp_path / "both", workloads=("infer", "train")).path_costs
    assert {(cost.setting.workload, cost.path) for cost in both} == {
        (workload, path) for workload in ("infer", "train") for path in TRUE_SHARE
    }
    assert analysed(tmp_path / "other", declared={"baseline": {"path": "rust"}}).path_costs == ()
    assert analysed(tmp_path / "none", declared=None).path_costs == ()


def test_the_report_begins_with_the_figure_and_its_caption_answers(tmp_path: Path) -> None:
    page = write_report(load(build(tmp_path / "c", workloads=("infer", "train"))))
    text = page.read_text("utf-8")
    assert (page.parent / "figures" / "paths.svg").stat().st_size > 1000
    assert text.index('id="figure-paths"') < text.index('id="figure-forest-1"')
    assert "rust is free from tinylm-large on; go_rust is free from tinylm-small on; python reaches 0.6" in text
    assert text.count("python reaches") == 2  # in each of the two panels


def test_a_campaign_without_such_a_contrast_has_no_such_figure(tmp_path: Path) -> None:
    page = write_report(load(build(tmp_path / "c", declared={"baseline": {"path": "rust"}})))
    assert not (page.parent / "figures" / "paths.svg").exists()
