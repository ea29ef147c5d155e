# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the runner or of a worker at any moment: running again finishes the campaign and counts nothing twice."""

from __future__ import annotations

import os
import random
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

KILLS = 50
BLOCKS = 30
SEED = 20261121


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_after_kills_at_fifty_random_moments_every_run_counts_once(campaign: CampaignDirectory) -> None:
    cases = noop_cases(4, idle_s=0.05)
    longer = plan_content(cases, 4 * BLOCKS)  # however slow the killing is, the runs last longer
    content = plan_content(cases, BLOCKS)
    moment = random.Random(SEED)
    killed: Counter[str] = Counter()
    while killed.total() < KILLS:
        process = start_runner(campaign, longer)
        while killed.total() < KILLS:
            time.sleep(moment.uniform(0.0, 1.0))
            assert process.poll() is None, "the campaign was over before all kills: make it longer"
            victims = wait_for(lambda: worker_pids(campaign)) if moment.random() < 0.7 else []
            _kill(victims[0] if victims else process.pid)
            killed["worker" if victims else "runner"] += 1
            if not victims:
                process.wait()
                break
        process.kill()
        process.wait()
    assert min(killed.values()) >= 10  # both kinds really happened

    status = start_runner(campaign, content).wait(timeout=600)
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


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return  # it ended by itself in the meantime
