# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from pybench.campaign.batch_job import BatchJob
from pybench.campaign.claims import STALE_S, Claimant, claim, is_alive, is_dead, read_claimant, this_process


def test_only_one_of_two_gets_a_claim(tmp_path: Path) -> None:
    me = this_process()
    assert claim(tmp_path / "block" / "attempt-01.claim", me)
    assert not claim(tmp_path / "block" / "attempt-01.claim", replace(me, pid=me.pid + 1))
    assert json.loads((tmp_path / "block" / "attempt-01.claim").read_text())["pid"] == os.getpid()


def test_one_of_many_processes_wins_every_time(tmp_path: Path) -> None:
    """Eight processes race for 40 claims; each claim has one winner."""
    script = (
        "import sys, pathlib\n"
        "from pybench.campaign.claims import claim, this_process\n"
        "print(*(n for n in range(40) if claim(pathlib.Path(sys.argv[1]) / f'{n}.claim', this_process())))\n"
    )
    racers = [
        subprocess.Popen([sys.executable, "-c", script, tmp_path], stdout=subprocess.PIPE, text=True) for _ in range(8)
    ]
    won = [number for racer in racers for number in racer.communicate()[0].split()]
    assert sorted(won, key=int) == [str(number) for number in range(40)]
    assert not list(tmp_path.glob(".*"))


def test_a_living_claimant_is_alive_and_a_gone_one_is_not(tmp_path: Path) -> None:
    me = this_process()
    claim(tmp_path / "mine", me)
    assert is_alive(tmp_path / "mine", replace(me, pid=me.pid + 1))
    assert not is_alive(tmp_path / "mine", me), "the asker is at work on nothing"
    with subprocess.Popen(["sleep", "0"]) as gone:
        gone.wait()
    claim(tmp_path / "gone", replace(me, pid=gone.pid))
    assert not is_alive(tmp_path / "gone", me)


def test_a_claim_that_its_owner_has_removed_is_neither_alive_nor_dead(tmp_path: Path) -> None:
    """Another may claim the same name the next moment, and nothing of it must be cleared away."""
    me = this_process()
    assert not is_alive(tmp_path / "removed", me)
    assert not is_dead(tmp_path / "removed", me)
    claim(tmp_path / "left behind", replace(me, pid_started=me.pid_started - 1))
    assert is_dead(tmp_path / "left behind", me)
    claim(tmp_path / "at work", me)
    assert not is_dead(tmp_path / "at work", replace(me, pid=me.pid + 1))


def test_a_reused_process_number_is_not_the_claimant(tmp_path: Path) -> None:
    me = this_process()
    claim(tmp_path / "older", replace(me, pid_started=me.pid_started - 1))
    assert not is_alive(tmp_path / "older", me)


def test_a_claim_from_before_a_restart_of_this_machine_is_dead(tmp_path: Path) -> None:
    me = this_process()
    claim(tmp_path / "before", replace(me, boot_id="another"))
    before_boot = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) - 1
    os.utime(tmp_path / "before", (before_boot, before_boot))
    assert not is_alive(tmp_path / "before", me)


def test_a_claim_from_another_host_of_the_same_name_lives_as_long_as_its_heartbeat(tmp_path: Path) -> None:
    me = this_process()
    claim(tmp_path / "namesake", replace(me, boot_id="another"))
    assert is_alive(tmp_path / "namesake", me)


def test_a_claim_whose_answer_was_lost_on_the_network_is_won(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an NFS client does that asks again: the second link fails on the first one's success."""
    link = os.link

    def link_twice(source: Path, target: Path) -> None:
        link(source, target)
        link(source, target)

    monkeypatch.setattr(os, "link", link_twice)
    assert claim(tmp_path / "mine", this_process())


def test_a_claim_from_another_host_lives_as_long_as_its_heartbeat(tmp_path: Path) -> None:
    me = this_process()
    claim(tmp_path / "elsewhere", Claimant("other-host", "other-boot", "pid:[1]", 12, 34))
    assert is_alive(tmp_path / "elsewhere", me)
    old = time.time() - STALE_S - 1
    os.utime(tmp_path / "elsewhere", (old, old))
    assert not is_alive(tmp_path / "elsewhere", me)


def test_a_claim_of_a_job_that_was_started_again_is_dead_at_once(tmp_path: Path) -> None:
    """However young its heartbeat: the node is lost, and its next start must not wait five minutes."""
    job = BatchJob("slurm", "big", "12_3", 0, "n1")
    claim(tmp_path / "lost", Claimant("n1", "other-boot", "pid:[1]", 12, 34, job))
    me = this_process()
    assert is_alive(tmp_path / "lost", me)
    assert is_alive(tmp_path / "lost", replace(me, job=job))
    assert not is_alive(tmp_path / "lost", replace(me, job=replace(job, restart=1, node="n2")))


def test_a_claim_names_its_job_and_is_read_back(tmp_path: Path) -> None:
    me = replace(this_process(), job=BatchJob("slurm", "big", "12_3", 1, "n1"))
    claim(tmp_path / "mine", me)
    assert read_claimant(tmp_path / "mine") == me
    assert read_claimant(tmp_path / "absent") is None
    assert (me.machine, replace(me, job=None).machine) == ("n1", me.host)


def test_a_malformed_claim_is_dead(tmp_path: Path) -> None:
    (tmp_path / "half").write_text('{"host": ')
    assert not is_alive(tmp_path / "half", this_process())
    assert is_dead(tmp_path / "half", this_process())
