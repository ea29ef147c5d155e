# SPDX-License-Identifier: Apache-2.0
"""The scripts as bash runs them, with stand-ins for the two commands that they call: what they do with signals and exit
codes. tests/cluster/test_slurm.py has the same under Slurm."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from pybench.case import Case
from pybench.cluster.script import (
    Chunk,
    SubmissionWork,
    artefacts_script,
    check_script,
    chunks_of,
    ranges,
    shards_script,
)
from pybench.cluster.site import Job, Scratch, SiteImage, SlurmSite
from pybench.cluster.submission import scripts_of
from tests.support.waiting import wait_for

WORK = SubmissionWork(
    Path("/data/a b/campaign"), "trial", Path("/data/a b/campaign/cluster/submission-01"), 5, ("--no-sensor",)
)


def site(job: Job | None = None, **keys: Any) -> SlurmSite:
    return SlurmSite(job=job or Job(time="01:00:00"), **keys)


def directives(script: str) -> list[str]:
    return [line.removeprefix("#SBATCH ") for line in script.splitlines() if line.startswith("#SBATCH ")]


def test_shards_become_arrays_whose_indices_stay_small() -> None:
    assert [(chunk.number, chunk.offset, chunk.tasks) for chunk in chunks_of([7, 1, 2, 3, 12], 5)] == [
        (1, 0, (1, 2, 3)),
        (2, 5, (2,)),
        (3, 10, (2,)),
    ]
    assert ranges([1, 2, 3, 5, 8, 9]) == "1-3,5,8-9"


def test_what_the_site_says_becomes_directives() -> None:
    job = Job(
        time="2-00:00:00",
        partition="gpu",
        account="abc",
        constraint="a100&nvlink",
        gres="gpu:a100:1",
        cpus_per_task=8,
        throttle=4,
        checkpoint_s=600,
        options=("--gpu-freq=high", "--comment=for the paper", "--no-kill"),
    )
    assert directives(shards_script(WORK, chunks_of([1, 2, 5], 1000)[0], site(job))) == [
        "--job-name=pb-trial",
        "--array=1-2,5%4",
        '--output="/data/a b/campaign/cluster/submission-01/logs/shards-1-%a.out"',
        "--open-mode=append",
        "--requeue",
        "--signal=B:USR1@600",
        "--nodes=1",
        "--ntasks=1",
        "--time=2-00:00:00",
        "--mem=0",
        "--partition=gpu",
        "--account=abc",
        "--constraint=a100&nvlink",
        "--gres=gpu:a100:1",
        "--cpus-per-task=8",
        "--exclusive",
        "--export=NONE",
        "--gpu-freq=high",
        '--comment="for the paper"',
        "--no-kill",
    ]


def test_a_task_of_a_later_chunk_runs_the_shard_behind_it() -> None:
    later = shards_script(WORK, chunks_of([1, 4, 5], 3)[1], site())
    assert "--array=1-2" in directives(later)
    assert """--shard "$((SLURM_ARRAY_TASK_ID + 3))/5" --whole-blocks --no-sensor""" in later


def test_artefacts_are_made_by_one_task_or_by_several_with_logs_of_their_own() -> None:
    one, several = (directives(artefacts_script(WORK, site(), makers)) for makers in (1, 3))
    folder = "/data/a b/campaign/cluster/submission-01/logs"
    assert not any(line.startswith("--array") for line in one)
    assert f'--output="{folder}/artefacts.out"' in one
    assert several[1:3] == ["--array=1-3", f'--output="{folder}/artefacts-%a.out"']


def test_every_script_is_bash(tmp_path: Path) -> None:
    full = site(
        image=SiteImage(path="/a b.sif", sha256="0" * 64), scratch=Scratch(stage_image=True), prelude="module load x\n"
    )
    artefacts = [artefacts_script(WORK, full, makers) for makers in (1, 3)]
    scripts = [shards_script(WORK, chunks_of([1], 9)[0], full), *artefacts, check_script(WORK, full)]
    for script in scripts:
        path = tmp_path / "script"
        path.write_text(script)
        subprocess.run(["bash", "-n", path], check=True)


class Task:
    """A task's script with a `pybench` and a `scontrol` that write down how they are called."""

    def __init__(self, folder: Path, pybench: str, **keys: Any) -> None:
        self.folder, self.said = folder, folder / "said"
        for name, text in (("pybench", pybench), ("scontrol", f'echo "scontrol $*" >> {self.said}')):
            (folder / name).write_text(f"#!/bin/bash\n{text}\n")
            (folder / name).chmod(0o755)
        work = SubmissionWork(folder, "trial", folder / "submission", 5)
        job = Job(time="01:00:00", checkpoint_s=3, max_requeues=1)
        keys = {"pybench": str(folder / "pybench"), "scratch": Scratch(path=str(folder)), **keys}
        (folder / "task").write_text(shards_script(work, chunks_of([1, 2], 9)[0], site(job, **keys)))

    def start(self, restarts: int = 0) -> subprocess.Popen[str]:
        variables = {"SLURM_JOB_ID": "12", "SLURM_ARRAY_JOB_ID": "12", "SLURM_ARRAY_TASK_ID": "2"}
        variables |= {"SLURMD_NODENAME": "n1", "PATH": f"{self.folder}:{os.environ['PATH']}", "HOME": str(self.folder)}
        variables |= {"SLURM_RESTART_COUNT": str(restarts)} if restarts else {}
        command = ["bash", str(self.folder / "task")]  # -l would read this user's profile
        return subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def signalled(self, process: subprocess.Popen[str], number: signal.Signals) -> tuple[int, str]:
        """Sends a signal once pybench is at work; returns exit code and output."""
        wait_for(self.said.exists)
        process.send_signal(number)
        out, _ = process.communicate(timeout=120)
        return process.returncode, out

    def finish(self) -> tuple[int, str]:
        """Runs to its end; returns exit code and output."""
        process = self.start()
        out, _ = process.communicate(timeout=120)
        return process.returncode, out

    def lines(self) -> list[str]:
        return self.said.read_text().splitlines() if self.said.exists() else []

    def scratch(self) -> list[Path]:
        return list(self.folder.glob("pybench-12_2.*"))


# Finishes its run when asked, and says that something is left.
WILLING = "trap 'echo $TMPDIR >> {0}; exit 75' USR1; echo begun >> {0}; for i in {{1..1000}}; do sleep 0.1; done"
DEAF = "trap 'n=$((n + 1)); [ $n -lt 2 ] || exit 75' USR1; echo begun >> {0}; for i in {{1..1000}}; do sleep 0.1; done"
ENDED = "trap 'echo term >> {0}; exit 130' TERM; echo begun >> {0}; for i in {{1..1000}}; do sleep 0.1; done"


def test_a_task_that_is_asked_to_checkpoint_is_queued_again_under_its_own_name(tmp_path: Path) -> None:
    task = Task(tmp_path, WILLING.format(tmp_path / "said"))
    code, out = task.signalled(task.start(), signal.SIGUSR1)
    begun, scratch, requeued = task.lines()
    assert (begun, requeued) == ("begun", "scontrol requeue 12_2")
    assert Path(scratch).parent == tmp_path
    assert task.scratch() == []
    assert code == 75
    assert "12_2: asked to checkpoint" in out


@pytest.mark.timeout(90)  # of itself it lasts 100 s
def test_a_run_that_takes_too_long_is_stopped_in_time(tmp_path: Path) -> None:
    task = Task(tmp_path, DEAF.format(tmp_path / "said"))
    assert "insist_after_s=2 " in (tmp_path / "task").read_text(), "two thirds of checkpoint_s"
    began = time.monotonic()
    code, _ = task.signalled(task.start(), signal.SIGUSR1)
    assert code == 75
    assert time.monotonic() - began >= 2
    assert task.lines()[-1] == "scontrol requeue 12_2"


def test_a_task_is_not_queued_again_for_ever(tmp_path: Path) -> None:
    task = Task(tmp_path, WILLING.format(tmp_path / "said"))
    code, out = task.signalled(task.start(restarts=1), signal.SIGUSR1)
    assert code == 75
    assert "not once more (max_requeues)" in out
    assert not any(line.startswith("scontrol") for line in task.lines())


def test_a_task_that_slurm_ends_hands_it_on_and_is_not_queued_again(tmp_path: Path) -> None:
    task = Task(tmp_path, ENDED.format(tmp_path / "said"))
    code, out = task.signalled(task.start(), signal.SIGTERM)
    assert (code, task.lines()) == (130, ["begun", "term"])
    assert "ended by Slurm" in out
    assert task.scratch() == []


def test_a_signal_that_pybench_cannot_take_yet_queues_the_task_again(tmp_path: Path) -> None:
    task = Task(tmp_path, f"echo begun >> {tmp_path / 'said'}; exec sleep 200")
    assert task.signalled(task.start(), signal.SIGUSR1)[0] == 75
    assert task.lines() == ["begun", "scontrol requeue 12_2"]


def test_the_exit_code_of_pybench_is_the_tasks(tmp_path: Path) -> None:
    task = Task(tmp_path, f'echo "$*" >> {tmp_path / "said"}; exit 4')
    assert task.finish()[0] == 4
    assert task.lines() == [f"run {tmp_path} --shard 2/5 --whole-blocks"]


@pytest.mark.parametrize("is_staged", [False, True])
def test_nothing_runs_in_another_image(tmp_path: Path, is_staged: bool) -> None:
    (tmp_path / "i.sif").write_bytes(b"image")
    image = SiteImage(path=str(tmp_path / "i.sif"), sha256=hashlib.sha256(b"image").hexdigest())
    scratch = Scratch(path=str(tmp_path), stage_image=is_staged)
    task = Task(tmp_path, f'echo "$*" >> {tmp_path / "said"}', image=image, scratch=scratch)
    assert task.finish()[0] == 0
    used = task.lines()[0].partition(" --container ")[2]
    assert (used == image.path) is not is_staged
    (tmp_path / "i.sif").write_bytes(b"imagf")
    code, out = task.finish()
    assert code == 78
    assert "the image is not the one that was submitted" in out
    assert len(task.lines()) == 1


def test_environment_and_prelude_come_before_pybench(tmp_path: Path) -> None:
    keys = {"prelude": "export LOADED=module", "environment": {"WORDS": "two words $HOME"}}
    task = Task(tmp_path, f'echo "$LOADED/$WORDS/$PYTHONNOUSERSITE" >> {tmp_path / "said"}', **keys)
    assert task.finish()[0] == 0
    assert task.lines() == ["module/two words $HOME/1"]


def test_as_many_tasks_make_artefacts_as_have_one_that_waits_for_no_other() -> None:
    """Weights are trained before an engine is built of them: three artefacts that take long keep two tasks busy."""
    cases = [Case(workload="infer", model="digits-cnn", runtime="tensorrt", batch=batch) for batch in (1, 2)]
    first, again = (scripts_of(WORK, site(), [1, 2, 3], cases, again=again)[0] for again in (False, True))
    assert (first.name, first.chunk) == ("artefacts.sbatch", Chunk(1, 0, (1, 2)))
    assert (again.name, again.chunk) == ("artefacts.sbatch", None)
