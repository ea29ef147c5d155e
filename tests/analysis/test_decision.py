# SPDX-License-Identifier: Apache-2.0
"""Whether blocks decide what a plan asks, on campaigns of known truth; and how often a wrong word is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pybench.analysis import analyse, declared
from pybench.analysis.decision import Decision, decide
from pybench.analysis.statistics.sequential import confidence_among
from pybench.campaign.resolved_plan import store_stop
from pybench.case import Case
from pybench.case.repetitions import Stop, StoppingRule
from pybench.dataset import load
from pybench.dataset.coverage import measure
from pybench.measure.quantity import Quantity
from tests.support.campaigns import CampaignBuilder

FP32 = Case(workload="infer", model="digits-cnn", runtime="onnxruntime")
INT8, FP16 = FP32.with_factors(precision="int8"), FP32.with_factors(precision="fp16")
BOUND: dict[str, Any] = {"baseline": {"precision": "fp32"}, "accept": {"speedup_min": 1.2}}
NO_BOUND = {"baseline": {"precision": "fp32"}}


def campaign(
    folder: Path, ratios: dict[Case, float], blocks: int, declared: Any = BOUND, at_most: int = 20, spread: float = 0.01
) -> CampaignBuilder:
    """FP32 takes 10 ms, and the others `ratios` of that, with noise of the block and of the run."""
    builder = CampaignBuilder(folder, [FP32, *ratios], declared=declared, rule=StoppingRule(at_most))
    rng = np.random.default_rng(3)
    for block in range(1, blocks + 1):
        shared = rng.normal(0, 0.1)
        for case in (FP32, *ratios):
            ms = 10 * ratios.get(case, 1.0) * float(np.exp(shared + rng.normal(0, spread)))
            builder.run(case, block, {"latency_mean_ms": ms})
    return builder


def look(builder: CampaignBuilder, blocks: int) -> Decision:
    dataset = load(builder.path, stop=Stop(blocks, "blocks"))
    return decide(dataset, declared(dataset))


def test_a_bound_is_decided_once_the_whole_interval_is_on_one_side(tmp_path: Path) -> None:
    fast = look(campaign(tmp_path / "fast", {INT8: 0.5}, 3), 3)
    assert (fast.decided, fast.open, fast.is_decided) == (1, 0, True)
    slow = look(campaign(tmp_path / "slow", {INT8: 2.0}, 3), 3)
    assert slow.is_decided  # a bound that is broken is decided, too
    near = look(campaign(tmp_path / "near", {INT8: 1 / 1.2}, 8), 8)
    assert (near.open, near.is_decided, near.text) == (1, False, "0 of 1 question decided")


def test_without_a_bound_a_change_decides_and_so_does_none_that_matters(tmp_path: Path) -> None:
    changed = campaign(tmp_path / "changed", {INT8: 0.8}, 5, NO_BOUND)
    assert look(changed, 5).is_decided
    alike = campaign(tmp_path / "alike", {INT8: 1.001}, 20, NO_BOUND, spread=0.02)
    assert [look(alike, blocks).is_decided for blocks in (3, 20)] == [False, True]


def test_every_question_has_to_be_decided(tmp_path: Path) -> None:
    both = campaign(tmp_path / "c", {INT8: 0.5, FP16: 1 / 1.2}, 5)
    found = look(both, 5)
    assert (found.decided, found.open, found.is_decided) == (1, 1, False)


def test_more_questions_ask_for_more_evidence(tmp_path: Path) -> None:
    """The very same blocks decide one question, and none of four."""
    batches = [INT8.with_factors(batch=batch) for batch in (2, 3, 4)]
    bases = [FP32.with_factors(batch=batch) for batch in (2, 3, 4)]
    one = campaign(tmp_path / "one", {INT8: 0.6}, 3)
    many = CampaignBuilder(tmp_path / "many", [FP32, INT8, *bases, *batches], declared=BOUND, rule=StoppingRule(20))
    for case in (FP32, INT8):
        for block in (1, 2, 3):
            stored = one.campaign.attempt(case.id, block, 1).read_summary()["metrics"]["latency_mean_ms"]["value"]
            for batch in (1, 2, 3, 4):
                many.run(case.with_factors(batch=batch), block, {"latency_mean_ms": stored})
    assert look(one, 3).is_decided
    assert look(many, 3) == Decision(0, 4, 0)


def test_a_question_without_a_number_does_not_keep_a_campaign_going(tmp_path: Path) -> None:
    builder = CampaignBuilder(tmp_path / "c", [FP32, INT8, FP16], declared=BOUND, rule=StoppingRule(20))
    for block in range(1, 4):
        builder.run(FP32, block, {"latency_mean_ms": 10 + block / 100})
        builder.run(INT8, block, {"latency_mean_ms": 4 + block / 90})
        builder.run(FP16, block, outcome="unsupported", reason="no_gpu")
    found = look(builder, 3)
    assert (found, found.text) == (Decision(1, 0, 1), "1 of 1 question decided, 1 not waited for")


def test_where_nothing_has_a_number_nothing_is_decided(tmp_path: Path) -> None:
    builder = CampaignBuilder(tmp_path / "c", [FP32, INT8], declared=BOUND, rule=StoppingRule(20))
    for block in range(1, 4):
        for case in (FP32, INT8):
            builder.run(case, block, outcome="unsupported", reason="no_gpu")
    assert look(builder, 3) == Decision(0, 0, 1)
    assert not look(builder, 3).is_decided


def test_a_stopped_campaign_is_complete_and_its_intervals_allow_for_all_looks(tmp_path: Path) -> None:
    builder = campaign(tmp_path / "c", {INT8: 0.5}, 5)
    assert not measure(load(builder.path)).is_full
    store_stop(builder.campaign, Stop(3, "decided"))
    dataset = load(builder.path)
    coverage, found = measure(dataset), analyse(dataset)
    assert (coverage.planned, coverage.covered, coverage.is_full, coverage.beyond) == (6, 6, True, 4)
    effect = found.contrasts[0].pairs[0].effects["latency_mean_ms"].effect
    assert effect is not None
    looks = len(StoppingRule(20).looks)
    assert effect.estimate.n == 3
    mean = found.cases[0].metrics["latency_mean_ms"].estimate
    assert mean is not None
    assert {effect.estimate.confidence, mean.confidence} == {confidence_among(looks)}
    assert found.verdicts[0][0].verdict == "accepted"


def test_a_plan_without_a_rule_takes_no_stop(tmp_path: Path) -> None:
    builder = CampaignBuilder(tmp_path / "c", [FP32], repetitions=2)
    store_stop(builder.campaign, Stop(1, "decided"))
    assert load(builder.path).plan.blocks == 2


def test_an_absolute_interval_contains_that_of_the_repetitions_however_often_one_looks(tmp_path: Path) -> None:
    spreads = []
    halves = []
    for name, rule in (("rule", StoppingRule(20)), ("number", None)):
        builder = CampaignBuilder(tmp_path / name, [FP32], repetitions=3, declared=[], rule=rule)
        for block, energy_j in ((1, 1.0), (2, 1.1), (3, 1.2)):
            quantity = Quantity(value=energy_j, u_standard=0.01, u_absolute=0.01)
            builder.run(FP32, block, {"latency_mean_ms": 1.0, "gpu_energy_per_sample_j": quantity})
        dataset = load(builder.path, stop=None if rule is None else Stop(3, "blocks"))
        (case,) = analyse(dataset).cases
        found = case.metrics["gpu_energy_per_sample_j"]
        assert found.estimate is not None
        assert found.estimate.upper is not None
        halves.append(found.estimate.upper - found.estimate.value)
        spreads.append(found.absolute_95 or 0.0)
    assert spreads[0] > halves[0] > spreads[1] > halves[1]
