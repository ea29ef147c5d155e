# SPDX-License-Identifier: Apache-2.0
"""What Slurm's words become. The commands here are scripts that print what Slurm 22.05 printed (its accounts need a
database server, which tests do without); tests/cluster/test_slurm.py asks a real Slurm."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybench import runner
from pybench.campaign import layout
from pybench.campaign.batch_job import BatchJob
from pybench.campaign.claims import STALE_S, Claimant, claim
from pybench.campaign.directory import CampaignDirectory
from pybench.campaign.resolved_plan import read_resolved_plan
from pybench.cluster import slurm
from pybench.cluster.ending import close_ended, outcome_of
from pybench.cluster.slurm import JobState
from pybench.errors import ClusterError
from tests.runner.conftest import noop_cases, plan_content

JOB = BatchJob("slurm", "test", "12_3", 0, "n1")

# Written by sacct -X -D -n -P --format=JobID,Submit,State,NodeList,ExitCode. Before it, a node was lost with a job that
# may be queued again (3_1) and one that may not (1_1). Then there were scontrol requeue (5_1), a preemption (7_1),
# scancel (9_1).
ACCOUNTS = """\
1_1|2026-11-22T09:28:01|NODE_FAIL|n3|0:0
3_1|2026-11-22T09:28:01|NODE_FAIL|n3|0:0
5_1|2026-11-22T09:28:01|REQUEUED|n1|0:0
7_1|2026-11-22T09:28:01|PREEMPTED|n2|0:0
9_1|2026-11-22T09:28:02|CANCELLED by 0|n1|0:0
11|2026-11-22T09:28:09|COMPLETED|n2|0:0
3_1|2026-11-22T09:28:09|PENDING|None assigned|0:0
5_1|2026-11-22T09:28:10|RUNNING|n1|0:0
"""


def state(word: str, restarts: int = 0) -> JobState:
    return JobState("12_3", word, restarts, "n2", None)


@pytest.mark.parametrize(
    ("word", "outcome"),
    [
        ("OUT_OF_MEMORY", "oom"),
        ("TIMEOUT", "timeout"),
        ("DEADLINE", "timeout"),
        ("PREEMPTED", "interrupted"),
        ("CANCELLED", "interrupted"),
        ("NODE_FAIL", "killed"),
        ("BOOT_FAIL", "killed"),
        ("FAILED", "killed"),
        ("COMPLETED", "killed"),
    ],
)
def test_slurms_word_is_the_reason(word: str, outcome: str) -> None:
    found = outcome_of(JOB, state(word), (), 0.0)
    assert found is not None
    assert (found.name, found.reason and found.reason.stored_code) == (outcome, word)
    assert found.why == f"Slurm says {word} of job 12_3 on n2"
    assert outcome in layout.OUTCOMES


def test_what_may_still_run_stays_open() -> None:
    for word in ("RUNNING", "COMPLETING", "PENDING", "SUSPENDED", "REQUEUE_HOLD"):
        assert outcome_of(JOB, state(word), (), STALE_S + 1) is None
    assert outcome_of(JOB, None, (), STALE_S - 1) is None, "forgotten, but its heart beat a moment ago"
    assert outcome_of(JOB, None, (state("RUNNING"),), STALE_S + 1) is None


def test_a_start_that_was_followed_by_another_is_over() -> None:
    found = outcome_of(JOB, state("RUNNING", restarts=1), (), 0.0)
    assert found is not None
    assert (found.name, found.reason and found.reason.stored_code) == ("killed", "REQUEUED")
    told = outcome_of(JOB, state("RUNNING", restarts=1), (state("NODE_FAIL"), state("RUNNING", 1)), 0.0)
    assert told is not None
    assert (told.name, told.reason and told.reason.stored_code) == ("killed", "NODE_FAIL"), "accounts know why"
    assert outcome_of(JOB, None, (state("REQUEUED"),), 0.0) is not None


def test_a_job_that_slurm_has_forgotten_is_dead_once_its_claim_is_old() -> None:
    found = outcome_of(JOB, None, (), STALE_S + 1)
    assert found is not None
    assert (found.name, found.reason and found.reason.stored_code) == ("killed", "job_forgotten")


def test_the_second_start_is_not_judged_by_the_first() -> None:
    second = BatchJob("slurm", "test", "12_3", 1, "n1")
    assert outcome_of(second, state("RUNNING", restarts=1), (state("NODE_FAIL"), state("RUNNING", 1)), 0.0) is None


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of PATH beside the system's own."""
    folder = tmp_path / "commands"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    write_command(folder, "scontrol", "echo 'ClusterName             = test'")
    return folder


def write_command(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_accounts_are_read_start_by_start(commands: Path) -> None:
    write_command(commands, "sacct", f"cat <<'END'\n{ACCOUNTS}END")
    found = slurm.history(["1_1", "3_1"])
    assert [start.state for start in found["3_1"]] == ["NODE_FAIL", "PENDING"]
    assert [(start.state, start.node) for start in found["9_1"]] == [("CANCELLED", "n1")]


def test_a_site_without_accounts_has_no_history(commands: Path) -> None:
    write_command(commands, "sacct", "echo 'Slurm accounting storage is disabled' >&2; exit 1")
    assert slurm.history(["1_1"]) == {}


def left_behind(folder: Path, job: BatchJob) -> CampaignDirectory:
    """A campaign of one run, claimed by a job of another machine that then died."""
    campaign, content = CampaignDirectory(folder / "campaign"), plan_content(noop_cases(1), 1)
    runner.open_for_running(campaign, content, "")
    claim(campaign.attempt(noop_cases(1)[0].id, 1, 1).claim, Claimant("n1", "boot", "pid:[1]", 4, 5, job))
    return campaign


def test_an_attempt_that_had_only_been_claimed_is_closed_whole(tmp_path: Path, commands: Path) -> None:
    """Here the real squeue of a machine without a cluster would not answer: one that prints its columns does."""
    campaign = left_behind(tmp_path, JOB)
    row = "".join(
        text.ljust(width)
        for text, width in zip(("12", "3", "TIMEOUT", "0", "n1", "None"), (20, 20, 20, 12, 80, 80), strict=True)
    )
    write_command(commands, "squeue", f"echo '{row}'")
    write_command(commands, "sacct", "exit 1")
    plan = read_resolved_plan(campaign)
    closed = close_ended(campaign, plan)
    assert [(one.job, one.outcome.name) for one in closed] == [("12_3", "timeout")]
    attempt = next(campaign.runs())
    assert attempt.read_case() == noop_cases(1)[0]
    assert attempt.read_run()["reason"] == "TIMEOUT"
    assert close_ended(campaign, plan) == []


def test_nothing_is_judged_where_slurm_does_not_say_which_cluster_it_is(tmp_path: Path, commands: Path) -> None:
    campaign = left_behind(tmp_path, JOB)
    write_command(commands, "scontrol", "echo 'Unable to contact slurm controller' >&2; exit 1")
    with pytest.raises(ClusterError, match="Unable to contact"):
        close_ended(campaign, read_resolved_plan(campaign))
    assert not list(campaign.runs())


def test_a_job_of_another_cluster_is_left_alone(tmp_path: Path, commands: Path) -> None:
    campaign = left_behind(tmp_path, BatchJob("slurm", "elsewhere", "12_3", 0, "n1"))
    write_command(commands, "squeue", "echo squeue was asked >&2; exit 1")
    assert close_ended(campaign, read_resolved_plan(campaign)) == []
