# SPDX-License-Identifier: Apache-2.0
"""A block is measured on one machine: what another began of it is done again, what another ended stays, and what
another is at is left to it."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from pybench.campaign import layout
from pybench.campaign.claims import read_claimant, this_process
from pybench.campaign.directory import CampaignDirectory, RunDirectory
from pybench.campaign.resolved_plan import parse_resolved_plan
from pybench.runner import Options, open_for_running, run_campaign
from pybench.runner.outcome import Outcome
from pybench.runner.schedule import PlannedRun
from pybench.runner.whole_blocks import is_of
from tests.runner.conftest import Run, noop_cases, plan_content
from tests.runner.listening import Quiet
from tests.runner.machines import WillingMachine
from tests.runner.test_campaign import start_runner, worker_pids
from tests.support.gate import Gate, gate_here
from tests.support.waiting import wait_for


def move(campaign: CampaignDirectory, run: RunDirectory, host: str) -> None:
    """Makes a run one of another machine's."""
    stored = json.loads(run.claim.read_text())
    run.claim.write_text(json.dumps({**stored, "host": host}))


def outcomes(campaign: CampaignDirectory, block: int, count: int) -> list[list[int]]:
    """The numbers of each case's attempts."""
    return [[attempt.attempt for attempt in campaign.attempts(case.id, block)] for case in noop_cases(count)]


def test_what_another_machine_began_of_a_block_is_done_again(campaign: CampaignDirectory, run: Run) -> None:
    content = plan_content(noop_cases(3), 2)
    run(content)
    first, second, _ = noop_cases(3)
    for block in (1, 2):
        move(campaign, campaign.attempt(first.id, block, 1), "elsewhere")
    (campaign.attempt(second.id, 1, 1).path / layout.COMPLETE).unlink()
    _, listener = run(content, whole_blocks=True)
    assert sorted(listener.outcomes) == sorted([(first.id, 1, "ok"), (second.id, 1, "ok")])
    assert outcomes(campaign, 1, 3) == [[1, 2], [1, 2], [1]], "the third was made here"
    assert outcomes(campaign, 2, 3) == [[1], [1], [1]], "a block that is done stays as it is"


def test_without_being_asked_only_what_is_missing_is_done(campaign: CampaignDirectory, run: Run) -> None:
    content = plan_content(noop_cases(2), 1)
    run(content)
    first, second = noop_cases(2)
    move(campaign, campaign.attempt(first.id, 1, 1), "elsewhere")
    (campaign.attempt(second.id, 1, 1).path / layout.COMPLETE).unlink()
    _, listener = run(content)
    assert outcomes(campaign, 1, 2) == [[1], [1, 2]]
    (note,) = listener.notes
    assert note.startswith("block 1 began on another machine or GPU, or with another number of CPUs")
    assert note.endswith("--whole-blocks repeats it here")


def test_a_filter_hides_no_torn_block(campaign: CampaignDirectory, run: Run) -> None:
    """What another machine did of the other cases is not repeated, because it is not selected."""
    content = plan_content(noop_cases(2), 1)
    run(content)
    first, second = noop_cases(2)
    move(campaign, campaign.attempt(first.id, 1, 1), "elsewhere")
    for whole_blocks in (False, True):
        (campaign.attempt(second.id, 1, 1 + whole_blocks).path / layout.COMPLETE).unlink()
        _, listener = run(content, selected=frozenset({second.id}), whole_blocks=whole_blocks)
        assert [note.partition(", and ")[2] for note in listener.notes] == [
            "--whole-blocks without --filter repeats it here",
        ]
    assert outcomes(campaign, 1, 2) == [[1], [1, 2, 3]]


def test_a_run_belongs_to_a_machine_and_its_gpu(campaign: CampaignDirectory, run: Run) -> None:
    run(plan_content(noop_cases(1), 1))
    made, me = next(campaign.runs()), this_process()
    case, here = made.read_case(), WillingMachine()
    assert is_of(made, me, here, case)
    assert not is_of(made, replace(me, host="elsewhere"), here, case)
    summary = json.loads(made.file(layout.SUMMARY).read_text())
    summary["labels"]["device"] = "GPU-1"
    made.file(layout.SUMMARY).write_text(json.dumps(summary))
    assert is_of(made, me, WillingMachine(uuids=("GPU-1",)), case)
    assert not is_of(made, me, WillingMachine(uuids=("GPU-2",)), case)


def test_a_run_belongs_to_a_number_of_cpus(campaign: CampaignDirectory, run: Run) -> None:
    run(plan_content(noop_cases(1), 1))
    made, me = next(campaign.runs()), this_process()
    cpus, case = len(os.sched_getaffinity(0)), made.read_case()
    assert is_of(made, me, WillingMachine(cpu_count=cpus), case)
    assert not is_of(made, me, WillingMachine(cpu_count=cpus + 1), case)


def test_a_run_that_measured_nothing_tears_no_block(
    campaign: CampaignDirectory, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = noop_cases(1)
    run(plan_content(cases, 1), WillingMachine(refuses=frozenset({cases[0].id})))
    made = next(campaign.runs())
    move(campaign, made, "elsewhere")
    assert is_of(made, this_process(), WillingMachine(), cases[0])


def on_node(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runners that start from now on are in jobs of a node of Slurm, as their variables tell."""
    monkeypatch.setenv("SLURM_JOB_ID", name.removeprefix("n"))
    monkeypatch.setenv("SLURMD_NODENAME", name)


def machines(campaign: CampaignDirectory) -> list[set[str]]:
    """The machines that each block comes from."""
    found: dict[int, set[str]] = {}
    for made in campaign.runs():
        maker = read_claimant(made.claim)
        found.setdefault(made.block, set()).add(maker.machine if maker else "")
    return [found[block] for block in sorted(found)]


def test_a_block_that_another_machine_is_at_is_left_to_it(
    campaign: CampaignDirectory, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, gate = plan_content(noop_cases(3), 1), gate_here(tmp_path / "gate", monkeypatch)
    on_node("n1", monkeypatch)
    first = start_runner(campaign, content, whole_blocks=True)
    wait_for(lambda: worker_pids(campaign))
    on_node("n2", monkeypatch)
    tally, listener = run(content, whole_blocks=True)
    assert (listener.outcomes, tally.busy, tally.uncovered) == ([], 3, 3)
    (note,) = listener.notes
    assert note.startswith(f"block 1 is left to process {first.pid}: cases are compared within a block")
    gate.open()
    assert first.wait(timeout=60) == 0
    assert machines(campaign) == [{"n1"}]
    assert outcomes(campaign, 1, 3) == [[1], [1], [1]]


def test_runners_of_several_machines_that_begin_at_once_tear_no_block(
    campaign: CampaignDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, runners = plan_content(noop_cases(3, idle_s=0.1), 4), list[subprocess.Popen[bytes]]()
    for node in ("n1", "n2", "n3"):
        on_node(node, monkeypatch)
        runners.append(start_runner(campaign, content, whole_blocks=True))
    for runner in runners:
        runner.wait(timeout=120)
    assert [len(names) for names in machines(campaign)] == [1] * 4


def test_a_block_that_another_machine_takes_between_two_runs_is_left_to_it(
    campaign: CampaignDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, others = plan_content(noop_cases(3), 1), list[subprocess.Popen[bytes]]()
    gate = Gate(tmp_path / "gate")

    class Interrupted(Quiet):
        def finished(self, planned: PlannedRun, outcome: Outcome, wall_s: float) -> None:
            super().finished(planned, outcome, wall_s)
            with monkeypatch.context() as patched:
                on_node("n2", patched)
                patched.setenv("PYTHONPATH", str(gate.folder), prepend=os.pathsep)
                others.append(start_runner(campaign, content, whole_blocks=True))
            wait_for(lambda: worker_pids(campaign))

    on_node("n1", monkeypatch)
    open_for_running(campaign, content, "")
    listener = Interrupted()
    options, plan = Options(whole_blocks=True), parse_resolved_plan(content)
    tally = run_campaign(campaign, plan, options, WillingMachine(), listener)
    assert (len(listener.outcomes), tally.busy) == (1, 2)
    gate.open()
    assert [other.wait(timeout=60) for other in others] == [0]
    assert machines(campaign) == [{"n2"}]


def test_what_another_machine_did_of_a_block_meanwhile_is_done_again(
    campaign: CampaignDirectory, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes a case of block 2 while block 1 is at work here, and has ended when block 2 begins."""
    cases = noop_cases(2)
    content = plan_content(cases, 2)

    def before_a_block() -> None:
        if len(list(campaign.runs())) == 2:
            on_node("n2", monkeypatch)
            assert start_runner(campaign, content, selected=[cases[0].id]).wait(timeout=60) == 0

    on_node("n1", monkeypatch)
    tally, _ = run(content, whole_blocks=True, last_block=before_a_block)
    assert tally.is_success
    assert machines(campaign) == [{"n1"}, {"n1"}]
    assert outcomes(campaign, 2, 2) == [[1, 2], [1]]


def test_processes_of_one_machine_share_a_block_unless_a_gpu_may_tell_them_apart(
    campaign: CampaignDirectory, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = noop_cases(2)
    content, one, other = plan_content(cases, 1), cases[0].id, cases[1].id
    with monkeypatch.context() as patched:
        gate = gate_here(tmp_path / "gate", patched)
        first = start_runner(campaign, content, whole_blocks=True, selected=[one])
        wait_for(lambda: worker_pids(campaign))
    with_gpu = WillingMachine(uuids=("GPU-1",))
    found = [run(content, here, whole_blocks=True, selected=frozenset({other}))[1] for here in (with_gpu, None)]
    gate.open()
    assert first.wait(timeout=60) == 0
    assert [listener.outcomes for listener in found] == [[], [(other, 1, "ok")]]
