# SPDX-License-Identifier: Apache-2.0
"""A block is measured on one machine: what another began of it is done again, what another ended stays."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest

from pybench.campaign import layout
from pybench.campaign.claims import this_process
from pybench.campaign.directory import CampaignDirectory, RunDirectory
from pybench.runner.whole_blocks import is_of
from tests.runner.conftest import Run, noop_cases, plan_content
from tests.runner.machines import WillingMachine


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
    assert note.startswith("block 1 began on another machine, GPU or number of CPUs")
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
        assert [note.partition("; ")[2] for note in listener.notes] == [
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
