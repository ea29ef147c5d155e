# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the runner or of a worker at any moment: running again finishes the campaign and counts nothing twice."""

from __future__ import annotations

import contextlib
import os
import random
import select
import signal
import time
from collections import Counter

import pytest

from pybench import runner
from pybench.campaign.directory import CampaignDirectory
from pybench.campaign.resolved_plan import read_resolved_plan
from tests.runner.conftest import noop_cases, plan_content
from tests.runner.test_campaign import start_runner, worker_pids
from tests.support.waiting import wait_for

KILLS = 30
BLOCKS = 8
SEED = 20261121
STARTS, WORKS, WAITS, STORES = "the runner starts", "a worker works", "the runner waits", "the runner stores a run"
MOMENTS = (STARTS, WORKS, WORKS, WAITS, STORES, STORES)
RUN_S = 0.4  # about what a start and a run last
STORING_S = 0.02  # what the runner does between two workers


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_after_kills_at_random_moments_every_run_counts_once(campaign: CampaignDirectory) -> None:
    cases = noop_cases(4, idle_s=0.05)
    longer = plan_content(cases, 16 * BLOCKS)  # however slow the killing is, the runs last longer
    content = plan_content(cases, BLOCKS)
    chance = random.Random(SEED)
    killed: Counter[str] = Counter()
    while killed.total() < KILLS:
        process = start_runner(campaign, longer)
        moment = WORKS
        while killed.total() < KILLS and moment == WORKS:
            moment = chance.choice(MOMENTS)
            victim = _victim(campaign, process.pid, moment, chance)
            assert process.poll() is None, "the campaign was over before all kills: make it longer"
            _kill(victim)
            killed[moment] += 1
        process.kill()
        process.wait()
    assert set(killed) == set(MOMENTS)

    status = start_runner(campaign, content).wait(timeout=300)
    plan = read_resolved_plan(campaign)
    planned = list(runner.planned_runs(plan.cases, plan.seed, plan.repetitions))
    assert dict(runner.tally(campaign, plan, planned).outcomes) == {"ok": len(planned)}
    assert status == 0
    counted = Counter((run.case_id, run.block) for run in campaign.runs() if run.block <= BLOCKS)
    assert set(counted.values()) == {1}
    assert len(counted) == len(planned)
    for run in planned:
        outcomes = [
            found.read_run()["outcome"] for found in campaign.attempts(run.case.id, run.block) if found.is_complete
        ]
        assert outcomes.count("ok") == 1, "a run that had succeeded was done again"
        assert set(outcomes) <= {"ok", "killed"}
    assert not worker_pids(campaign)


def _victim(campaign: CampaignDirectory, runner_pid: int, moment: str, chance: random.Random) -> int:
    """The process to kill, once its moment has come."""
    if moment == STARTS:
        time.sleep(chance.uniform(0.0, RUN_S))
        return runner_pid
    worker = wait_for(lambda: worker_pids(campaign))[0]
    if moment == STORES:
        _wait_for_end(worker)
        time.sleep(chance.uniform(0.0, STORING_S))
        return runner_pid
    time.sleep(chance.uniform(0.0, RUN_S))
    return worker if moment == WORKS else runner_pid


def _wait_for_end(pid: int) -> None:
    """Without the pauses of polling, which would miss what follows."""
    with contextlib.suppress(ProcessLookupError):
        ended = os.pidfd_open(pid)
        select.select([ended], [], [], 60)
        os.close(ended)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return  # it ended by itself in the meantime
