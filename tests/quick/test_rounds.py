# SPDX-License-Identifier: Apache-2.0
"""Blocks with runs that fail: one accident does not condemn a case, in the same call or in the next one."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pybench import runner
from pybench.campaign import layout
from pybench.campaign.directory import CampaignDirectory, RunDirectory
from pybench.campaign.recipe import in_making_order
from pybench.campaign.resolved_plan import ResolvedPlan, read_resolved_plan
from pybench.case import Case
from pybench.machine import Machine
from pybench.quick.rounds import MOST_BLOCKS, Rounds, RoundsSetup, is_repeated, run_rounds
from pybench.runner.outcome import Outcome, run_record
from tests.runner.listening import Quiet
from tests.runner.machines import WillingMachine
from tests.support.campaigns import CampaignBuilder

SLOW = Case(workload="infer", model="mlp", runtime="onnxruntime", provider="cpu")
FAST = Case(workload="infer", model="mlp", runtime="onnxruntime", provider="cpu", precision="int8")
CRASHED = "crashed: No module named 'pybench.catalogue.stored'"

Ends = Callable[[Case, int], str]  # outcome of a run
Quick = Callable[[Ends], tuple[Rounds, list[tuple[str, int]]]]


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Quick:
    """One call of `quick` in a campaign that stays; returns the runs that it did, too."""
    builder = CampaignBuilder(tmp_path / "quick-mlp", [SLOW, FAST], repetitions=MOST_BLOCKS)
    plan = read_resolved_plan(builder.campaign)

    def call(ends: Ends) -> tuple[Rounds, list[tuple[str, int]]]:
        done: list[tuple[str, int]] = []

        def run_campaign(
            campaign: CampaignDirectory, plan: ResolvedPlan, options: runner.Options, machine: Machine, listener: Quiet
        ) -> runner.Tally:
            for planned in runner.pending_runs(campaign, plan, options):
                case, block, outcome = planned.case, planned.block, ends(planned.case, planned.block)
                attempt = 1 + len(campaign.attempts(case.id, block))
                wave = 1 + 0.002 * ((block * 7 + 3 * (case == SLOW)) % 5)
                metrics = {"latency_mean_ms": wave * (2.0 if case == SLOW else 1.0)} if outcome == "ok" else {}
                detail = None if outcome == "ok" else CRASHED.partition(": ")[2]
                builder.run(case, block, metrics, outcome=outcome, detail=detail, attempt=attempt)
                done.append((case.precision, block))
            return runner.Tally()

        monkeypatch.setattr(runner, "run_campaign", run_campaign)
        setup = RoundsSetup(builder.campaign, plan, WillingMachine(), Quiet(), time.monotonic() + 60)
        return run_rounds(setup), done

    return call


def test_runs_that_crashed_in_an_earlier_call_are_repeated_and_decide(quick: Quick) -> None:
    broken, _ = quick(lambda case, block: "crashed")
    assert broken.stopped_by == "failed"
    assert broken.failed == {SLOW.id: CRASHED, FAST.id: CRASHED}
    found, done = quick(lambda case, block: "ok")
    assert set(done) >= {("fp32", 1), ("int8", 1)}
    assert (found.failed, found.failures, found.stopped_by) == ({}, {}, "decided")


def test_one_crash_takes_one_run_and_not_the_case(quick: Quick) -> None:
    found, done = quick(lambda case, block: "crashed" if (case, block) == (FAST, 2) else "ok")
    assert found.stopped_by == "decided"
    assert found.rankings[1].leader == FAST.id
    assert sorted(found.groups[1][FAST.id]) == [block for block in range(1, found.blocks + 1) if block != 2]
    assert found.failures == {FAST.id: [CRASHED]}
    assert found.failed == {}
    _, again = quick(lambda case, block: "ok")
    assert again == [("int8", 2)]
    assert ("int8", 3) in done


def test_what_crashes_again_and_again_leaves_the_verdict_but_keeps_its_times(quick: Quick) -> None:
    found, done = quick(lambda case, block: "crashed" if case == FAST and block > 1 else "ok")
    assert [block for precision, block in done if precision == "int8"] == [1, 2, 3]
    assert found.groups[1][FAST.id].keys() == {1}
    assert found.rankings[1].case_ids == {SLOW.id}


def test_good_runs_of_before_are_judged_where_everything_crashes_now(quick: Quick) -> None:
    before, _ = quick(lambda case, block: "ok" if block < 4 else "crashed")
    assert before.blocks == 3
    found, _ = quick(lambda case, block: "crashed")
    assert found.failed == {}
    assert found.rankings[1].leader == FAST.id


def test_two_blocks_without_a_time_end_the_call(quick: Quick) -> None:
    found, done = quick(lambda case, block: "ok" if block < 2 else "crashed")
    assert found.stopped_by == "failed"
    assert max(block for _, block in done) == 3
    assert (found.rankings[1].blocks, found.is_decided) == (1, False)


def test_an_artefact_that_cannot_be_made_is_made_once_in_a_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two batches of one file share it; the next call tries it again."""
    cases = [FAST, FAST.with_factors(batch=8)]
    builder = CampaignBuilder(tmp_path / "quick-mlp", cases, repetitions=MOST_BLOCKS)
    machine = WillingMachine()
    (shared, *_) = in_making_order(machine.recipes(FAST))
    folder = RunDirectory(builder.campaign.artefact(shared.digest), shared.digest, layout.MAKING, 1)
    retried: list[bool] = []

    def run_campaign(
        campaign: CampaignDirectory, plan: ResolvedPlan, options: runner.Options, machine: Machine, listener: Quiet
    ) -> runner.Tally:
        retried.append(options.retry_failed)
        if not folder.is_complete:
            folder.path.mkdir(parents=True)
            folder.complete(run_record(shared.digest, layout.MAKING, 1, Outcome("build_failed"), None))
        for planned in runner.pending_runs(campaign, plan, options):
            attempt = 1 + len(campaign.attempts(planned.case.id, 1))
            builder.run(planned.case, 1, outcome="build_failed", detail="no", attempt=attempt)
        return runner.Tally()

    monkeypatch.setattr(runner, "run_campaign", run_campaign)
    for _ in range(2):
        setup = RoundsSetup(
            builder.campaign, read_resolved_plan(builder.campaign), machine, Quiet(), time.monotonic() + 60
        )
        assert run_rounds(setup).failed.keys() == {case.id for case in cases}
    assert retried == [True, False, True, False]


@pytest.mark.parametrize(
    ("why", "again"),
    [
        (CRASHED, True), ("timeout: longer than 60 s", True), ("killed: out of memory", True),
        ("another runner was at it", True), ("oom: CUDA out of memory", False), ("unsupported: no GPU", False),
        ("its precision is not valid: not_quantised", False),
    ],
)  # fmt: skip
def test_only_what_may_end_otherwise_is_said_to_be_repeated(why: str, again: bool) -> None:
    assert is_repeated(why) is again
