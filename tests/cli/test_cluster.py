# SPDX-License-Identifier: Apache-2.0
"""`submit`, `settle`, `cancel` and `logs` where there is no Slurm, and each wrong input as one clear error. With a
Slurm: tests/cluster/test_slurm.py."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pybench.campaign import layout
from pybench.campaign.batch_job import BatchJob
from pybench.campaign.claims import Claimant, claim
from pybench.campaign.directory import CampaignDirectory
from pybench.campaign.resolved_plan import read_resolved_plan
from pybench.cli import main
from pybench.cluster.site import example_site
from tests.support.gate import gate_here
from tests.support.making import write_classifier
from tests.support.small_disk import small_disk_of
from tests.support.waiting import wait_for

PLAN = """\
schema_version: 1
name: trial
seed: 3
repetitions: 3
matrix:
  - {workload: noop, iterations: [1, 2]}
"""
SITE = 'kind: slurm\njob:\n  time: "10"\n'


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plan and a site file, on a machine without Slurm's commands."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    (tmp_path / "plan.yaml").write_text(PLAN)
    (tmp_path / "site.yaml").write_text(SITE)
    return tmp_path / "plan.yaml"


def test_a_dry_run_writes_scripts_that_can_be_read_and_no_job(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert main(["submit", str(plan), "--site", "site.yaml", "--dry-run", "--filter", "iterations=1"]) == 0
        printed = capsys.readouterr()
        folder = Path("results/trial/cluster/dry-run").absolute()
        assert printed.out.splitlines() == [str(folder / "shards-1.sbatch"), str(folder / "check.sbatch")]
        assert "3 of 3 shards, nothing submitted" in printed.err
    assert sorted(entry.name for entry in folder.iterdir()) == ["check.sbatch", "logs", "shards-1.sbatch", "site.yaml"]
    text = (folder / "shards-1.sbatch").read_text()
    assert "#SBATCH --array=1-3\n" in text
    assert f'run {Path("results/trial").absolute()} --shard "$SLURM_ARRAY_TASK_ID/3" --whole-blocks --filter' in text
    assert main(["status", "results/trial"]) == 0
    assert "submission" not in capsys.readouterr().out


def test_shards_keep_whole_blocks_and_artefacts_are_made_first(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan.write_text(PLAN.replace("noop", "infer, model: mlp, runtime: onnxruntime"))
    command = ["submit", str(plan), "--site", "site.yaml", "--dry-run", "--json"]
    assert main([*command, "--shards", "2"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["shards"], found["of"]) == ([1, 2], 2)
    assert [Path(name).name for name in found["scripts"]] == ["artefacts.sbatch", "shards-1.sbatch", "check.sbatch"]
    assert main([*command, "--shards", "1"]) == 0
    names = [Path(name).name for name in json.loads(capsys.readouterr().out)["scripts"]]
    assert names == ["shards-1.sbatch", "check.sbatch"], "one shard makes them itself"
    assert main([*command, "--shards", "4"]) == 2
    assert "the plan has 3 blocks" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "job", "array"),
    [
        ((), "", "1-3"),  # as many as there are shards
        (("--shards", "2"), "", "1-2"),
        ((), "  throttle: 2\n", "1-2"),
        ((), "  array_max: 2\n", "1-2"),
        (("--filter", "batch=1"), "", "1-2"),  # as many as there are engines
        (("--filter", "batch=1 and precision=fp32"), "", None),
        (("--filter", "runtime=onnxruntime"), "", None),  # files that take seconds
    ],
)
def test_what_takes_long_to_make_is_shared_by_tasks(
    plan: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], job: str, array: str | None
) -> None:
    entry = "infer, model: mlp, batch: [1, 2], precision: [fp32, fp16], runtime: "
    both = f"{entry}tensorrt}}\n  - {{workload: {entry}onnxruntime"
    plan.write_text(PLAN.replace("noop, iterations: [1, 2]", both))
    Path("site.yaml").write_text(SITE + job)
    assert main(["submit", str(plan), "--site", "site.yaml", "--dry-run", *more]) == 0, capsys.readouterr().err
    lines = Path("results/trial/cluster/dry-run/artefacts.sbatch").read_text().splitlines()
    found = [line.removeprefix("#SBATCH --array=") for line in lines if line.startswith("#SBATCH --array=")]
    assert found == ([] if array is None else [array])


def test_jobs_are_not_submitted_for_a_file_that_changed(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = write_classifier(Path("own.onnx"))
    plan.write_text(PLAN.replace("noop", "infer, model: own.onnx, runtime: onnxruntime"))
    command = ["--site", "site.yaml", "--dry-run"]
    assert main(["submit", str(plan), *command]) == 0, capsys.readouterr().err
    write_classifier(own, classes=4)
    assert main(["submit", "results/trial", *command]) == 2
    assert f"{own.absolute()} has changed since the plan was read" in capsys.readouterr().err
    own.unlink()
    assert main(["submit", "results/trial", *command]) == 0, "the nodes may have it"


def test_what_is_done_is_not_submitted(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan.write_text(PLAN.replace("repetitions: 3", "repetitions: 1"))
    assert main(["run", str(plan)]) == 0
    command = ["submit", str(plan), "--site", "site.yaml", "--dry-run"]
    assert main(command) == 0
    assert "nothing to submit" in capsys.readouterr().err
    run = next(CampaignDirectory(Path("results/trial")).runs())
    (run.path / layout.COMPLETE).unlink()
    assert main(["submit", "results/trial", *command[2:]]) == 0, "a campaign's directory does as well as its plan"
    assert f"#SBATCH --array={run.block}\n" in Path("results/trial/cluster/dry-run/shards-1.sbatch").read_text()


def test_kubernetes_gets_yaml_to_apply(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("site.yaml").write_text(example_site("kubernetes"))
    assert main(["submit", str(plan), "--site", "site.yaml"]) == 0
    printed = capsys.readouterr()
    path = Path("results/trial/cluster/submission-01/job.yaml").absolute()
    assert printed.out == f"{path}\n"
    assert f"kubectl apply -f {path}" in printed.err
    assert "completions: 3" in path.read_text()


def test_a_dry_run_for_kubernetes_takes_no_number(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("site.yaml").write_text(example_site("kubernetes"))
    cluster = Path("results/trial/cluster").absolute()
    for _ in range(2):
        assert main(["submit", str(plan), "--site", "site.yaml", "--dry-run"]) == 0
        printed = capsys.readouterr()
        assert printed.out == f"{cluster / 'dry-run' / 'job.yaml'}\n"
        assert printed.err.endswith("3 of 3 shards, nothing submitted\n")
    assert main(["submit", str(plan), "--site", "site.yaml"]) == 0
    assert capsys.readouterr().out == f"{cluster / 'submission-01' / 'job.yaml'}\n"


@pytest.mark.parametrize("kind", ["slurm", "kubernetes"])
def test_a_dry_run_changes_no_plan_of_a_campaign(plan: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("site.yaml").write_text(SITE if kind == "slurm" else example_site("kubernetes"))
    assert main(["run", str(plan)]) == 0
    before = _stored_plan()
    plan.write_text(PLAN.replace("[1, 2]", "[1, 3]"))
    capsys.readouterr()
    assert main(["submit", str(plan), "--site", "site.yaml", "--dry-run"]) == 0
    printed = capsys.readouterr().err
    assert "added to the plan:" in printed
    assert "results/trial keeps its former plan, which these scripts would run" in printed
    assert "submit them in this order" not in printed
    assert _stored_plan() == before
    assert main(["check", "results/trial"]) == 0


@pytest.fixture
def squeue(plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Slurm's commands where the three tasks of job 1 are in the state that this file says, in the cluster that the
    file beside it says."""
    state = tmp_path / "state"
    state.write_text("PENDING")
    state.with_name("cluster").write_text("here")
    rows = "for task in 1 2 3; do printf '%-20s%-20s%-20s%-12s%-80s%-80s\\n' 1 $task $(cat state) 0 n1 None; done"
    commands = {
        "sbatch": "echo >> jobs; wc -l < jobs",
        "squeue": f'case "$*" in *--jobs=1\\ *) {rows};; esac',
        "scancel": "echo $* >> cancelled",
        "scontrol": 'echo "ClusterName             = $(cat cluster)"',
    }
    for name, body in commands.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return state


@pytest.mark.parametrize(
    ("state", "first", "then", "said"),
    [
        ("PENDING", [], [], None),
        ("RUNNING", [], [], None),
        ("PENDING", ["--filter", "iterations=1"], [], "3 shards for a `run` with other options"),
        ("RUNNING", [], ["--retry-failed"], "3 shards for a `run` with other options"),
        ("RUNNING", [], ["--repetitions", "6"], "3 shards begun before the plan changed"),
        ("PENDING", [], ["--repetitions", "6"], None),  # it reads the plan when it begins
        ("RUNNING", [], ["--set", "criteria=[{baseline: {iterations: 1}}]"], None),  # the runs are the same
    ],
)
def test_what_a_job_in_the_queue_may_leave_out_is_not_left_to_it(
    plan: Path,
    squeue: Path,
    capsys: pytest.CaptureFixture[str],
    state: str,
    first: list[str],
    then: list[str],
    said: str | None,
) -> None:
    command = ["submit", str(plan), "--site", "site.yaml"]
    assert main([*command, *first]) == 0
    squeue.write_text(state)
    before = _stored_plan()
    capsys.readouterr()
    code = main([*command, *then])
    printed = capsys.readouterr()
    if said is None:
        assert (code, printed.out) == (0, "nothing to submit; 3 shards already in the queue\n"), printed.err
        return
    assert (code, printed.out) == (2, "")
    assert f"jobs in the queue may leave out some of the missing runs: {said}" in printed.err
    assert _stored_plan() == before, "jobs in the queue read it when they begin"
    squeue.write_text("COMPLETED")
    assert main([*command, *then]) == 0
    assert "3 of 3 shards submitted" in capsys.readouterr().err


def _stored_plan() -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in Path("results/trial").glob("plan*")}


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("invalid partition", "correct the site file"),
        ("Unable to contact slurm controller (connect failure)", "check that the cluster's controller is running"),
    ],
)
def test_a_plan_whose_jobs_sbatch_refuses_is_not_the_campaigns(
    plan: Path, squeue: Path, capsys: pytest.CaptureFixture[str], said: str, hint: str
) -> None:
    assert main(["run", str(plan)]) == 0
    before = _stored_plan()
    plan.write_text(PLAN.replace("[1, 2]", "[1, 3]"))
    squeue.with_name("sbatch").write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
    capsys.readouterr()
    assert main(["submit", str(plan), "--site", "site.yaml"]) == 1
    printed = capsys.readouterr().err
    assert f"sbatch refused shards-1.sbatch: {said}\n  hint: {hint}" in printed
    assert "the plan" not in printed
    assert _stored_plan() == before
    assert main(["check", "results/trial"]) == 0


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGHUP, -signal.SIGHUP), (signal.SIGTERM, -signal.SIGTERM)]
)
def test_a_submission_that_is_ended_leaves_no_job(plan: Path, squeue: Path, number: int, code: int) -> None:
    """The whole terminal is sent the signal while sbatch has not answered for the second job."""
    assert main(["run", str(plan)]) == 0
    before = _stored_plan()
    plan.write_text(PLAN.replace("[1, 2]", "[1, 3]"))
    sbatch, scancel = squeue.with_name("sbatch"), squeue.with_name("scancel")
    sbatch.write_text(
        "#!/bin/sh\necho >> jobs\n[ $(wc -l < jobs) = 1 ] || until [ -e answer ]; do sleep 0.05; done\nwc -l < jobs\n"
    )
    scancel.write_text('#!/bin/sh\necho "$@" >> cancelled\n')
    scancel.chmod(0o755)
    command = [sys.executable, "-m", "pybench.cli", "submit", str(plan), "--site", "site.yaml"]
    # Tests under nohup ignore SIGHUP, and their children would do so, too.
    process = subprocess.Popen(["env", "--default-signal=HUP", *command], start_new_session=True)
    wait_for(lambda: Path("jobs").exists() and Path("jobs").read_text() == "\n\n")
    os.killpg(process.pid, number)
    Path("answer").touch()
    assert process.wait(timeout=60) == code
    assert Path("cancelled").read_text() == "2\n1\n"
    assert CampaignDirectory(Path("results/trial")).submissions() == []
    assert _stored_plan() == before


@pytest.mark.parametrize("kind", ["slurm", "kubernetes"])
def test_too_many_shards_change_no_plan(plan: Path, squeue: Path, kind: str) -> None:
    Path("site.yaml").write_text(SITE if kind == "slurm" else example_site("kubernetes"))
    assert main(["run", str(plan)]) == 0
    before = _stored_plan()
    plan.write_text(PLAN.replace("[1, 2]", "[1, 3]"))
    command = ["submit", str(plan), "--site", "site.yaml"]
    assert main([*command, "--shards", "4"]) == 2
    assert _stored_plan() == before
    assert main(command) == 0
    assert _stored_plan() != before


def _take_out_of_submission(*names: str) -> list[object]:
    """Makes the first submission one of an older pybench, which did not store these; returns their values."""
    path = Path("results/trial/cluster/submission-01/submission.json")
    stored = json.loads(path.read_text())
    taken = [stored.pop(name) for name in names]
    path.write_text(json.dumps(stored))
    return taken


def test_a_submission_of_an_older_pybench_may_leave_out_anything(
    plan: Path, squeue: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["submit", str(plan), "--site", "site.yaml"]
    assert main(command) == 0
    _take_out_of_submission("arguments", "planned")
    assert main(command) == 2
    assert "3 shards for a `run` with other options" in capsys.readouterr().err


def test_jobs_of_another_cluster_are_named_and_left_alone(
    plan: Path, squeue: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """There, jobs 1 and 2 are the campaign's; here, they are somebody else's."""
    command = ["submit", str(plan), "--site", "site.yaml"]
    assert main(command) == 0
    squeue.with_name("cluster").write_text("other")
    assert main(["cancel", "results/trial"]) == 0
    printed = capsys.readouterr()
    assert printed.out.endswith("nothing in the queue\n")
    assert "submission 01 is of the cluster here: cancel it there" in printed.err
    assert not Path("cancelled").exists()
    assert main(["status", "results/trial"]) == 0
    assert "submission 01 (slurm): on the cluster here, which is not asked here\n" in capsys.readouterr().out
    assert main(command) == 0
    assert "3 of 3 shards submitted" in capsys.readouterr().err
    squeue.with_name("cluster").write_text("here")
    assert main(["cancel", "results/trial"]) == 0
    assert Path("cancelled").read_text() == "1\n"


def test_a_submission_that_names_no_cluster_is_of_this_one(plan: Path, squeue: Path) -> None:
    assert main(["submit", str(plan), "--site", "site.yaml"]) == 0
    assert _take_out_of_submission("cluster") == ["here"]
    assert main(["cancel", "results/trial"]) == 0
    assert Path("cancelled").read_text() == "1\n"


def test_a_shard_that_another_cluster_is_at_is_not_submitted(
    plan: Path, squeue: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["submit", str(plan), "--site", "site.yaml"]
    assert main(command) == 0
    squeue.with_name("cluster").write_text("other")
    campaign = CampaignDirectory(Path("results/trial"))
    case = read_resolved_plan(campaign).cases[0].id
    made = campaign.attempt(case, 2, 1).claim
    claim(made, Claimant("n1", "boot", "pid:[1]", 4, 5, BatchJob("slurm", "here", "1_2", 0, "n1")))
    assert main(command) == 2
    assert "block 2 is being run by job 1_2 of the cluster here, and this is other" in capsys.readouterr().err
    assert campaign.submissions() == [1]
    os.utime(made, (0, 0))
    assert main(command) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--site is missing"),
        (["--site", "absent.yaml"], "absent.yaml: no such file"),
        (["--site", "wrong.yaml"], "wrong.yaml:3:3: unknown key `job.tiem` (did you mean `time`?)"),
        (["--site", "site.yaml"], "sbatch is not on PATH"),
        (["--site", "image.yaml", "--dry-run", "--set", "x"], "--set x"),
    ],
)
def test_a_wrong_input_is_one_error_and_writes_nothing(
    plan: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    Path("wrong.yaml").write_text(SITE.replace("time", "tiem"))
    Path("image.yaml").write_text(SITE)
    assert main(["submit", str(plan), *arguments]) == 2
    printed = capsys.readouterr().err
    assert said in printed
    assert "Traceback" not in printed
    assert not Path("results").exists()


def test_an_image_that_is_another_is_refused_before_anything_is_written(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sbatch").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "sbatch").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    Path("site.yaml").write_text(f'{SITE}image:\n  path: image.sif\n  sha256: "{"0" * 64}"\n')
    command = ["submit", str(plan), "--site", "site.yaml"]
    assert main(command) == 2
    assert "the image image.sif cannot be read" in capsys.readouterr().err
    Path("image.sif").write_bytes(b"truncated")
    assert main(command) == 2
    assert "the site file says 000" in capsys.readouterr().err
    assert not Path("results").exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 16 KiB, which a plan fits and its scripts do not."""
    with small_disk_of(tmp_path / "disk", "16k") as folder:
        yield folder


def test_a_full_disk_is_one_error_and_leaves_no_half_submission(
    plan: Path, small_disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["submit", str(plan), "--site", "site.yaml", "--out", str(small_disk / "trial"), "--dry-run"]
    assert main(command) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert not (small_disk / "trial" / "cluster" / "dry-run").exists()
    subprocess.run(["/usr/bin/mount", "-o", "remount,size=4m", small_disk], check=True)
    assert main(command) == 0


def test_two_submissions_at_once_wait_for_each_other(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["submit", str(plan), "--site", "site.yaml", "--dry-run"]
    assert main(command) == 0
    with open("results/trial/cluster/.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert main(command) == 2
    assert "another `pybench submit` is running" in capsys.readouterr().err


def test_what_needs_a_submission_says_so(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["submit", str(plan), "--site", "site.yaml", "--dry-run"]) == 0
    capsys.readouterr()
    assert main(["cancel", "results/trial"]) == 0
    assert capsys.readouterr().out == "nothing in the queue\n"
    assert main(["settle", "results/trial", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"closed": [], "open": 0}
    assert main(["logs", "results/trial"]) == 2
    assert "has no submission" in capsys.readouterr().err


def test_what_may_not_be_cancelled_is_named_after_what_was(
    plan: Path, squeue: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The array is of another user, the check is not."""
    command = ["submit", str(plan), "--site", "site.yaml"]
    squeue.with_name("squeue").write_text(
        "#!/bin/sh\nfor word; do case $word in --jobs=*) job=${word#*=};; esac; done\n"
        "printf '%-20s%-20s%-20s%-12s%-80s%-80s\\n' $job N/A RUNNING 0 n1 None\n"
    )
    scancel = squeue.with_name("scancel")
    scancel.write_text('#!/bin/sh\n[ "$1" != 1 ] || { echo "Access denied" >&2; exit 1; }\n')
    scancel.chmod(0o755)
    assert main(command) == 0
    capsys.readouterr()
    assert main(["cancel", "results/trial"]) == 1
    printed = capsys.readouterr()
    assert printed.out == "cancelled 2\n"
    assert printed.err == "error: scancel refused job 1: Access denied\n"


def test_an_example_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["submit", "--example-site", "slurm"]) == 0
    assert capsys.readouterr().out == example_site("slurm")
    assert main(["submit", "--example-site", "pbs"]) == 2


def test_a_campaigns_directory_continues_with_its_own_plan(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(plan), "--set", "repetitions=1"]) == 0
    plan.unlink()
    (next(CampaignDirectory(Path("results/trial")).runs()).path / layout.COMPLETE).unlink()
    before = Path("results/trial/plan.resolved.json").read_bytes()
    assert main(["run", "results/trial"]) == 0
    assert "2 ok of 2 runs" in capsys.readouterr().out
    assert Path("results/trial/plan.resolved.json").read_bytes() == before
    assert main(["run", "results/trial", "--set", "seed=4"]) == 2
    assert "results/trial is an existing campaign" in capsys.readouterr().err


def test_a_runner_that_is_asked_to_checkpoint_says_whether_something_is_left(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan.write_text(PLAN.replace("iterations: [1, 2]", "iterations: 1").replace("repetitions: 3", "repetitions: 2"))
    gate = gate_here(tmp_path / "gate", monkeypatch)
    codes = []
    for _ in range(2):
        process = subprocess.Popen([sys.executable, "-m", "pybench.cli", "run", str(plan)], stdout=subprocess.DEVNULL)
        wait_for(_is_at_work)
        process.send_signal(signal.SIGUSR1)
        gate.open()
        codes.append(process.wait(timeout=120))
        gate.shut()
    assert codes == [75, 0], "one block each time, and after the second nothing is left"


def _is_at_work() -> bool:
    logs = Path("results").glob("trial/runs/*/*/attempt-*/stderr.log")
    return any(not (path.parent / layout.COMPLETE).exists() for path in logs)
