# SPDX-License-Identifier: Apache-2.0
"""Campaigns of real workers: order, resume, outcomes, interruption. The noop workload idles for its energy window."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from pybench import runner
from pybench.campaign import hashed, layout, storage
from pybench.campaign.directory import CampaignDirectory
from pybench.campaign.extract import EXTRACT
from pybench.campaign.resolved_plan import store_stop
from pybench.case import Case
from pybench.case.repetitions import Stop
from pybench.catalogue.validities import VALIDITIES
from pybench.errors import CorruptError, UsageError
from tests.runner.conftest import Run, noop_cases, plan_content
from tests.runner.machines import WillingMachine
from tests.support.gate import Gate, gate_here
from tests.support.processes import is_running
from tests.support.waiting import wait_for


def attempts(campaign: CampaignDirectory, case: Case, block: int = 1) -> list[str]:
    return [
        f"{attempt.attempt} {attempt.read_run()['outcome']}"
        for attempt in campaign.attempts(case.id, block)
        if attempt.is_complete
    ]


def test_a_campaign_runs_every_case_in_every_block_once(campaign: CampaignDirectory, run: Run) -> None:
    cases = noop_cases(2)
    tally, _ = run(plan_content(cases, 2))
    assert tally.is_success
    assert dict(tally.outcomes) == {"ok": 4}
    assert sorted((found.case_id, found.block, found.attempt) for found in campaign.runs()) == sorted(
        (case.id, block, 1) for case in cases for block in (1, 2)
    )


def test_runs_that_ended_a_while_ago_are_hashed_before_the_first_reader_comes(
    campaign: CampaignDirectory, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = noop_cases(2)
    run(plan_content(cases, 1))  # in less than RECENT_S
    assert noted(campaign) == set()
    monkeypatch.setattr(hashed, "RECENT_S", -1.0)
    for blocks in (2, 3):
        run(plan_content(cases, blocks))
        ended = {storage.relative(found.path, campaign.path) for found in campaign.runs() if found.block > 1}
        assert noted(campaign) == ended
    assert all(found.has(EXTRACT) for found in campaign.runs())


def noted(campaign: CampaignDirectory) -> set[str]:
    """Runs of the index."""
    index = campaign.path / hashed.INDEX
    return set(json.loads(index.read_bytes())["runs"]) if index.exists() else set()


def test_a_run_directory_stands_alone(campaign: CampaignDirectory, run: Run) -> None:
    run(plan_content(noop_cases(1), 1))
    found = next(campaign.runs())
    names = {entry.name for entry in found.path.iterdir()}
    assert {
        "case.json",
        "environment.json",
        "run.json",
        "summary.json",
        "stdout.log",
        "stderr.log",
        "complete",
    } <= names
    assert found.read_case() == noop_cases(1)[0]
    record = found.read_run()
    assert record["outcome"] == "ok"
    assert set(record["valid"]) == set(VALIDITIES)
    assert {"python_start", "imports", "workload", "writing", "harness"} <= set(record["parts_s"])
    assert found.read_environment()["native_build_id"]


def test_running_again_does_only_what_is_missing(campaign: CampaignDirectory, run: Run) -> None:
    cases = noop_cases(2)
    run(plan_content(cases, 1))
    (campaign.attempts(cases[0].id, 1)[0].path / layout.COMPLETE).unlink()
    tally, listener = run(plan_content(cases, 2))
    assert tally.is_success
    assert sorted(listener.outcomes) == sorted([(cases[0].id, 1, "ok"), (cases[0].id, 2, "ok"), (cases[1].id, 2, "ok")])
    assert [attempt.is_complete for attempt in campaign.attempts(cases[0].id, 1)] == [False, True]


def test_a_changed_plan_names_what_it_adds_and_orphans(campaign: CampaignDirectory) -> None:
    cases = noop_cases(3)
    assert runner.open_for_running(campaign, plan_content(cases[:2], 1), "") == ([], [])
    assert runner.open_for_running(campaign, plan_content(cases[1:], 1), "") == ([cases[2]], [cases[0]])


def test_a_plan_that_the_disk_does_not_take_leaves_the_former_one(campaign: CampaignDirectory) -> None:
    runner.open_for_running(campaign, plan_content(noop_cases(1), 1), "name: trial\n")
    before = campaign.plan_resolved.read_bytes()
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 18, former[1]))  # Python ignores the signal: a write fails
        with pytest.raises(UsageError, match=r"cannot write .*plan\.yaml"):
            runner.open_for_running(campaign, plan_content(noop_cases(2), 1), "#" * (1 << 19))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, former)
    assert campaign.plan_resolved.read_bytes() == before
    assert campaign.plan.read_text() == "name: trial\n"
    assert list(campaign.path.glob(f"*{storage.TEMPORARY_SUFFIX}")) == []


def test_a_plan_that_is_refused_after_it_was_stored_leaves_the_files_of_the_former_one(
    campaign: CampaignDirectory,
) -> None:
    runner.open_for_running(campaign, plan_content(noop_cases(1), 1), "name: trial\n")
    store_stop(campaign, Stop(1, "decided"))
    before = {path: path.read_bytes() for path in campaign.path.glob("*.*")}
    assert len(before) == 3
    changed = (campaign, plan_content(noop_cases(2), 1), "name: trial # changed\n")
    with contextlib.suppress(KeyboardInterrupt), runner.opened_for_running(*changed):
        assert campaign.plan.read_text() == "name: trial # changed\n"
        assert not campaign.stopped.exists()
        raise KeyboardInterrupt
    assert {path: path.read_bytes() for path in campaign.path.glob("*.*")} == before


def test_a_plan_with_another_name_does_not_replace_a_campaigns_plan(campaign: CampaignDirectory) -> None:
    runner.open_for_running(campaign, plan_content(noop_cases(1), 1), "name: trial\n")
    with pytest.raises(UsageError, match="is the campaign `trial`, and this plan is `other`"):
        runner.open_for_running(campaign, {**plan_content(noop_cases(2), 1), "name": "other"}, "name: other\n")
    assert campaign.plan.read_text() == "name: trial\n"


def test_a_folder_with_something_else_in_it_is_refused_and_left_alone(campaign: CampaignDirectory) -> None:
    campaign.path.mkdir()
    (campaign.path / "thesis.tex").write_text("mine")
    with pytest.raises(UsageError, match="is not empty and not a campaign"):
        runner.open_for_running(campaign, plan_content(noop_cases(1), 1), "")
    assert [entry.name for entry in campaign.path.iterdir()] == ["thesis.tex"]


def test_a_runner_killed_while_it_made_the_directory_leaves_one_that_can_be_continued(
    campaign: CampaignDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each of its writes in turn: nothing after that write happens, and what it wrote halfway stays."""
    content = plan_content(noop_cases(1), 1)
    write = storage.write_bytes
    for survived in range(3):
        where = CampaignDirectory(campaign.path.with_name(f"killed-{survived}"))
        left = survived

        def die(path: Path, data: bytes) -> None:
            nonlocal left
            if left == 0:
                storage.temporary_name(path).touch()
                raise KeyboardInterrupt
            left -= 1
            write(path, data)

        with monkeypatch.context() as patched:
            patched.setattr(storage, "write_bytes", die)
            with contextlib.suppress(KeyboardInterrupt):
                runner.open_for_running(where, content, "")
        assert runner.open_for_running(where, content, "") == ([], [])


@pytest.mark.timeout(150)
def test_a_run_that_takes_too_long_is_a_timeout_and_is_repeated_only_when_asked(
    campaign: CampaignDirectory, run: Run
) -> None:
    case = noop_cases(1, idle_s=200)[0]
    tally, _ = run(plan_content([case], 1), timeout_s=1.5)
    assert dict(tally.outcomes) == {"timeout": 1}
    assert not tally.is_success
    _, listener = run(plan_content([case], 1), timeout_s=1.5)
    assert listener.pending == 0
    run(plan_content([case], 1), timeout_s=1.5, retry_failed=True)
    assert attempts(campaign, case) == ["1 timeout", "2 timeout"]


def test_max_failures_stops_a_campaign(run: Run) -> None:
    tally, listener = run(plan_content(noop_cases(3, idle_s=30), 1), timeout_s=0.5, max_failures=1)
    assert tally.too_many_failures
    assert [name for _, _, name in listener.outcomes] == ["timeout"]


def test_what_this_machine_cannot_do_is_unsupported_and_covers_its_cell(campaign: CampaignDirectory, run: Run) -> None:
    cases = noop_cases(2)
    tally, _ = run(plan_content(cases, 1), WillingMachine(refuses=frozenset({cases[0].id})))
    assert tally.is_success
    assert dict(tally.outcomes) == {"unsupported": 1, "ok": 1}
    latest = campaign.latest(cases[0].id, 1)
    assert latest is not None
    assert (latest.read_run()["reason"], latest.read_run()["detail"]) == ("no_gpu", "there is no GPU")


def test_a_campaign_without_one_ok_run_is_no_success(run: Run) -> None:
    cases = noop_cases(1)
    tally, _ = run(plan_content(cases, 1), WillingMachine(refuses=frozenset({cases[0].id})))
    assert tally.uncovered == 0
    assert not tally.is_success


def test_required_but_unmeasurable_is_no_success(run: Run) -> None:
    tally, _ = run(plan_content(noop_cases(1), 1, require=["energy"]))
    if tally.is_success:
        pytest.skip("SKIPPED: this machine measures energy")
    assert dict(tally.invalid) == {"energy": 1}


def test_a_rerun_keeps_the_earlier_attempt(campaign: CampaignDirectory, run: Run) -> None:
    cases = noop_cases(2)
    run(plan_content(cases, 1))
    run(plan_content(cases, 1), rerun=frozenset({cases[0].id}))
    assert attempts(campaign, cases[0]) == ["1 ok", "2 ok"]
    assert attempts(campaign, cases[1]) == ["1 ok"]


def test_a_killed_worker_is_killed_and_done_again_without_being_asked(campaign: CampaignDirectory, run: Run) -> None:
    case = noop_cases(1, idle_s=100)[0]
    killer = threading.Thread(target=kill_worker_of, args=(campaign, signal.SIGKILL))
    killer.start()
    tally, _ = run(plan_content([case], 1))
    killer.join()
    assert dict(tally.outcomes) == {"killed": 1}
    _, listener = run(plan_content([case], 1), timeout_s=0.5)
    assert listener.done == {}, "what is done again is not counted among what was done before"
    assert attempts(campaign, case) == ["1 killed", "2 timeout"]


def test_a_worker_that_dies_of_its_own_signal_has_crashed(campaign: CampaignDirectory, run: Run) -> None:
    case = noop_cases(1, idle_s=100)[0]
    killer = threading.Thread(target=kill_worker_of, args=(campaign, signal.SIGSEGV))
    killer.start()
    run(plan_content([case], 1))
    killer.join()
    assert attempts(campaign, case) == ["1 crashed"]


def test_corrupt_files_of_a_complete_run_stop_everything(campaign: CampaignDirectory, run: Run) -> None:
    case = noop_cases(1)[0]
    run(plan_content([case], 1))
    record = campaign.attempts(case.id, 1)[0].file(layout.RUN)
    record.write_text(record.read_text()[:40])
    with pytest.raises(CorruptError, match=r"run\.json cannot be read"):
        run(plan_content([case], 1))


def test_cpus_that_the_machine_lacks_are_unsupported_and_end_no_other_case(
    campaign: CampaignDirectory, run: Run
) -> None:
    cases = [Case(workload="noop", affinity="0-99999"), Case(workload="noop")]
    run(plan_content(cases, 1))
    found = {record.case_id: record.read_run() for record in campaign.runs()}
    assert [found[case.id]["outcome"] for case in cases] == ["unsupported", "ok"]
    assert found[cases[0].id]["reason"] == "no_such_cpu"


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Gate:
    return gate_here(tmp_path / "gate", monkeypatch)


def test_interrupted_once_the_run_at_hand_is_finished_and_no_other_begins(
    campaign: CampaignDirectory, gate: Gate
) -> None:
    process = start_runner(campaign, plan_content(noop_cases(2), 1))
    wait_for(lambda: worker_pids(campaign))
    process.send_signal(signal.SIGINT)
    gate.open()
    assert process.wait(timeout=60) == 130
    assert [record.read_run()["outcome"] for record in campaign.runs()] == ["ok"]


def test_interrupted_twice_the_run_is_stopped_and_done_again_without_being_asked(
    campaign: CampaignDirectory, gate: Gate
) -> None:
    content = plan_content(noop_cases(2), 1)
    process = start_runner(campaign, content)
    wait_for(lambda: worker_pids(campaign))
    interrupt_twice(process)
    assert process.wait(timeout=60) == 130
    assert [record.read_run()["outcome"] for record in campaign.runs()] == ["interrupted"]
    gate.open()
    assert start_runner(campaign, content).wait(timeout=60) == 0


@pytest.mark.parametrize("is_runner_told_later", [False, True])
def test_a_slurm_job_that_is_ended_leaves_its_runs_for_slurms_word(
    campaign: CampaignDirectory, monkeypatch: pytest.MonkeyPatch, is_runner_told_later: bool
) -> None:
    """SIGTERM once is enough there. The worker may get it so long before the runner that another run has begun."""
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    process = start_runner(campaign, plan_content(noop_cases(2, idle_s=100), 1))
    worker, *_ = wait_for(lambda: worker_pids(campaign))
    if is_runner_told_later:
        os.kill(worker, signal.SIGTERM)
        wait_for(lambda: set(worker_pids(campaign)) - {worker})
        process.terminate()
    else:
        process.send_signal(signal.SIGSTOP)  # it finds both when it goes on
        os.kill(worker, signal.SIGTERM)
        process.terminate()
        process.send_signal(signal.SIGCONT)
    assert process.wait(timeout=60) == 130
    assert list(campaign.runs()) == []
    left = [attempt for case, block in campaign.started() for attempt in campaign.claims(case, block)]
    assert [json.loads(attempt.claim.read_text())["job"]["id"] for attempt in left] == ["12"] * (
        2 if is_runner_told_later else 1
    )


def test_a_worker_dies_with_its_runner(campaign: CampaignDirectory) -> None:
    process = start_runner(campaign, plan_content(noop_cases(1, idle_s=100), 1))
    workers = wait_for(lambda: worker_pids(campaign))
    process.kill()
    process.wait()
    wait_for(lambda: not any(is_running(pid) for pid in workers))


def test_two_runners_share_a_campaign_and_do_nothing_twice(campaign: CampaignDirectory) -> None:
    content = plan_content(noop_cases(3, idle_s=0.1), 4)
    both = [start_runner(campaign, content) for _ in range(2)]
    assert {process.wait(timeout=120) for process in both} <= {0, 1}
    found = [attempts(campaign, case, block) for case in noop_cases(3, idle_s=0.1) for block in range(1, 5)]
    assert found == [["1 ok"]] * 12


def test_a_second_runner_on_this_machine_is_told_of_the_first_and_counts_what_is_left(
    campaign: CampaignDirectory, run: Run, gate: Gate
) -> None:
    content = plan_content(noop_cases(2), 1)
    first = start_runner(campaign, content)
    wait_for(lambda: worker_pids(campaign))
    opener = threading.Timer(1.0, gate.open)
    opener.start()
    tally, listener = run(content)
    assert first.wait(timeout=60) in (0, 1)  # the second may still be at the last run
    assert [note for note in listener.notes if f"process {first.pid} runs this campaign" in note] == listener.notes
    assert len(listener.notes) == 1
    assert tally.busy == tally.outcomes["missing"]


RUNNER = """
import json, sys, pathlib
sys.path.append(sys.argv[3])
from pybench import runner
from pybench.campaign.directory import CampaignDirectory
from pybench.campaign.resolved_plan import parse_resolved_plan
from tests.runner.listening import Quiet
from tests.runner.machines import WillingMachine
campaign = CampaignDirectory(pathlib.Path(sys.argv[1]))
content = json.loads(sys.argv[2])
runner.open_for_running(campaign, content, "")
plan = parse_resolved_plan(content)
options = runner.Options(**json.loads(sys.argv[4]))
tally = runner.run_campaign(campaign, plan, options, WillingMachine(), Quiet())
sys.exit(130 if tally.interrupted else 0 if tally.is_success else 1)
"""


def start_runner(campaign: CampaignDirectory, content: object, **options: object) -> subprocess.Popen[bytes]:
    """A runner in a process of its own, as `pybench run` is, without the command line's imports."""
    given = [campaign.path, json.dumps(content), Path(__file__).parents[2], json.dumps(options)]
    return subprocess.Popen([sys.executable, "-P", "-c", RUNNER, *given])


def interrupt_twice(process: subprocess.Popen[bytes]) -> None:
    """By two different signals: of two equal ones the kernel keeps one, where the first has not been taken yet."""
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)


def worker_pids(campaign: CampaignDirectory) -> list[int]:
    """Workers of this campaign that have got as far as their work."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            command = os.fsdecode((entry / "cmdline").read_bytes()).split("\0") if entry.name.isdigit() else []
        except OSError:
            continue
        if "pybench.worker" in command and str(campaign.path) in command:
            found.append(int(entry.name))
    return found


def kill_worker_of(campaign: CampaignDirectory, number: signal.Signals) -> None:
    pids = wait_for(lambda: worker_pids(campaign))
    time.sleep(0.5)
    os.kill(pids[0], number)


def test_blocks_after_the_last_one_that_is_wanted_are_not_begun(run: Run) -> None:
    cases, asked = noop_cases(2), list[int]()

    def last_block() -> int | None:
        asked.append(len(asked))
        return None if len(asked) < 3 else 2

    result, listener = run(plan_content(cases, 5), last_block=last_block)
    assert sorted({block for _, block, _ in listener.outcomes}) == [1, 2]
    assert (dict(result.outcomes), result.is_success) == ({"ok": 4}, True)
    assert len(asked) == 4  # before each block, and in the end
    result, listener = run(plan_content(cases, 5), last_block=lambda: 2)
    assert (listener.outcomes, dict(result.outcomes)) == ([], {"ok": 4})


def test_what_is_repeated_lies_before_the_last_block(run: Run) -> None:
    cases = noop_cases(1)
    run(plan_content(cases, 3), last_block=lambda: 2)
    _, listener = run(plan_content(cases, 3), last_block=lambda: 2, rerun=frozenset({cases[0].id}))
    assert [block for _, block, _ in listener.outcomes] == [1, 2]
