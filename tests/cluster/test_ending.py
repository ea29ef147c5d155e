# SPDX-License-Identifier: Apache-2.0
"""What Slurm's words become. The commands here are scripts that print what Slurm 22.05 printed (its accounts need a
database server, which tests do without); tests/cluster/test_slurm.py asks a real Slurm."""

from __future__ import annotations

import os
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
from pybench.cluster.slurm import AccountedStart, JobState
from pybench.errors import ClusterError
from tests.runner.conftest import noop_cases, plan_content

JOB = BatchJob("slurm", "test", "12_3", 0, "n1")

# Written by SLURM_TIME_FORMAT=%s sacct -X -D -n -P --format=JobID,Start,End,State,NodeList,ExitCode. Before it, there
# were scontrol requeue and scancel (2_1), and scancel of a job that waited (4). The controller then lost its state, a
# second job 2_1 was cancelled, and a node was lost with a job that may be queued again (4_1).
ACCOUNTS = """\
4|None|1796035920|CANCELLED by 0|None assigned|0:0
2_1|1796035915|1796035920|REQUEUED|n1|0:0
2_1|1796035926|1796036003|CANCELLED by 0|n1|0:0
2_1|1796036012|1796036016|CANCELLED by 0|n1|0:0
4_1|1796036040|1796036044|NODE_FAIL|n3|0:0
4_1|1796036050|Unknown|RUNNING|n1|0:0
"""


def state(word: str, restarts: int = 0) -> JobState:
    return JobState("12_3", word, restarts, "n2", None)


def account(word: str) -> AccountedStart:
    return AccountedStart(word, "n1", "exit code 0:0", 0.0, 1.0)


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
    found = outcome_of(JOB, state(word), None, 0.0)
    assert found is not None
    assert (found.name, found.reason and found.reason.stored_code) == (outcome, word)
    assert found.why == f"Slurm says {word} of job 12_3 on n2"
    assert outcome in layout.OUTCOMES


def test_what_may_still_run_stays_open() -> None:
    for word in ("RUNNING", "COMPLETING", "PENDING", "SUSPENDED", "REQUEUE_HOLD"):
        assert outcome_of(JOB, state(word), None, STALE_S + 1) is None
    assert outcome_of(JOB, None, None, STALE_S - 1) is None, "forgotten, but its heart beat a moment ago"
    assert outcome_of(JOB, None, account("RUNNING"), STALE_S + 1) is None


def test_a_start_that_was_followed_by_another_is_over() -> None:
    found = outcome_of(JOB, state("RUNNING", restarts=1), None, 0.0)
    assert found is not None
    assert (found.name, found.reason and found.reason.stored_code) == ("killed", "REQUEUED")
    told = outcome_of(JOB, state("RUNNING", restarts=1), account("NODE_FAIL"), 0.0)
    assert told is not None
    assert (told.name, told.reason and told.reason.stored_code) == ("killed", "NODE_FAIL"), "accounts know why"
    assert outcome_of(JOB, None, account("REQUEUED"), 0.0) is not None


def test_a_job_that_slurm_has_forgotten_is_dead_once_its_claim_is_old() -> None:
    found = outcome_of(JOB, None, None, STALE_S + 1)
    assert found is not None
    assert (found.name, found.reason and found.reason.stored_code) == ("killed", "job_forgotten")


def test_the_second_start_is_not_judged_by_the_first() -> None:
    second = BatchJob("slurm", "test", "12_3", 1, "n1")
    assert outcome_of(second, state("RUNNING", restarts=1), account("RUNNING"), 0.0) is None


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


@pytest.mark.parametrize(
    ("job", "time_s", "began_s", "word"),
    [
        ("2_1", 1796035919, 1796035915, "REQUEUED"),
        ("2_1", 1796035922, 1796035915, "REQUEUED"),  # by a clock that is ahead
        ("2_1", 1796035925, 1796035926, "CANCELLED"),  # by a clock that is behind
        ("2_1", 1796036016.8, 1796036012, "CANCELLED"),
        ("4_1", 1796036042, 1796036040, "NODE_FAIL"),
        ("4_1", 1796039999, 1796036050, "RUNNING"),
    ],
)
def test_accounts_tell_of_the_start_that_was_running(
    commands: Path, job: str, time_s: float, began_s: float, word: str
) -> None:
    write_command(commands, "sacct", f"[ $SLURM_TIME_FORMAT = %s ] && cat <<'END'\n{ACCOUNTS}END")
    found = slurm.start_at(slurm.history([job])[job], time_s)
    assert found is not None
    assert (found.began_s, found.state) == (began_s, word)


def test_accounts_tell_nothing_of_a_time_without_a_start(commands: Path) -> None:
    write_command(commands, "sacct", f"cat <<'END'\n{ACCOUNTS}END")
    found = slurm.history(["2_1", "4"])
    assert slurm.start_at(found["2_1"], 1796036016 + slurm.SKEW_S + 1) is None
    assert "4" not in found, "it never began"


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


def test_a_job_that_had_the_same_number_before_does_not_count(tmp_path: Path, commands: Path) -> None:
    campaign = left_behind(tmp_path, JOB)
    beat_s = 1796036229
    os.utime(campaign.attempt(noop_cases(1)[0].id, 1, 1).claim, (beat_s, beat_s))
    rows = [f"12_3|{beat_s - 900}|{beat_s - 600}|TIMEOUT|n1|0:0", f"12_3|{beat_s - 60}|{beat_s + 2}|CANCELLED|n1|0:0"]
    write_command(commands, "squeue", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1")
    write_command(commands, "sacct", "".join(f"echo '{row}';" for row in rows))
    closed = close_ended(campaign, read_resolved_plan(campaign))
    assert [(one.outcome.name, one.outcome.why) for one in closed] == [
        ("interrupted", "Slurm says CANCELLED of job 12_3 on n1 (exit code 0:0)")
    ]


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
