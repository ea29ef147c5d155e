# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from pybench.catalogue.criteria import CRITERIA, CriterionKind
from pybench.catalogue.metrics import METRICS
from pybench.catalogue.workloads import AGREEMENT


@pytest.mark.parametrize("criterion", CRITERIA.values(), ids=CRITERIA)
def test_a_criterion_judges_the_effect_that_its_metric_has(criterion: CriterionKind) -> None:
    """An effect is one number of a metric: a ratio or a difference. A criterion of the other kind would judge it as if
    it were its own."""
    assert criterion.kind in ("absolute", METRICS[criterion.metric].scale)


def test_every_metric_that_is_better_in_one_direction_can_be_bounded() -> None:
    better = {row.name for row in METRICS.values() if row.better != "none" and row.bound_ms is None}
    named_like_their_ratio = {"cpu_cores_ratio", "worst_node_error_ratio"}
    bounded = {criterion.metric for criterion in CRITERIA.values()}
    assert better - bounded - {row.name for row in METRICS.values() if row.is_interval} == named_like_their_ratio


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("build_s_ratio_max", "build_s"),
        ("gpu_tokens_per_s_per_w_ratio_min", "gpu_tokens_per_s_per_w"),
        ("head1_deadline_miss_delta_max", "head1_deadline_miss_ratio"),
    ],
)
def test_a_criterion_that_is_not_listed_follows_from_the_row(name: str, metric: str) -> None:
    assert CRITERIA[name].metric == metric


def test_what_fp32_does_not_have_is_bounded_by_itself() -> None:
    agreement = {each.metric: each.kind for each in CRITERIA.values() if each.metric in AGREEMENT}
    assert agreement == dict.fromkeys(AGREEMENT, "absolute")
