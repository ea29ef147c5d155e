# SPDX-License-Identifier: Apache-2.0
"""`run`, `status` and `doctor` as a user meets them: output, exit codes, one clear error for each wrong input."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from pybench.campaign.directory import CampaignDirectory, RunDirectory
from pybench.campaign.recipe import Recipe
from pybench.case import Case
from pybench.catalogue.causes import Cause
from pybench.catalogue.reasons import Reason
from pybench.cli import main
from pybench.cli.progress import Progress
from pybench.runner.outcome import Outcome
from pybench.runner.schedule import PlannedRun
from tests.cli.conftest import PLAN
from tests.support.gate import gate_here
from tests.support.making import write_classifier
from tests.support.onnx_files import write
from tests.support.onnx_models import model, node
from tests.support.waiting import wait_for

pytestmark = pytest.mark.usefixtures("ready_workers")


def test_a_plan_runs_and_its_directory_is_named(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(plan)]) == 0
    printed = capsys.readouterr()
    assert printed.out == "4 ok of 4 runs in results/trial\n"
    assert "[4/4] 4 ok, 0 s left  ok" in printed.err
    assert "\x1b" not in printed.err, "no colours or cursor movement where there is no terminal"


def test_running_again_says_what_is_there_and_does_nothing(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", str(plan)])
    capsys.readouterr()
    assert main(["run", str(plan), "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["outcomes"] == {"ok": 4}
    assert "4 ok from before; 0 runs to do" in printed.err


def test_fewer_repetitions_than_ran_are_said_to_leave_runs_out(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", str(plan)])
    assert "not counted" not in capsys.readouterr().err
    assert main(["run", str(plan), "--repetitions", "1"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "2 ok of 2 runs in results/trial\n"
    beyond = "not counted, but kept on disk: 2 runs, because the plan has 1 repetition now\n"
    assert beyond in printed.err
    assert main(["status", "results/trial"]) == 0
    assert capsys.readouterr().err == beyond
    assert main(["run", str(plan)]) == 0
    assert "4 ok from before; 0 runs to do" in capsys.readouterr().err


def test_an_entry_with_a_number_of_its_own_is_counted_right_everywhere(
    plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = "  - {workload: noop, iterations: 1}\n  - {workload: noop, iterations: 2, repetitions: 3}\n"
    plan.write_text(PLAN.partition("  - ")[0].replace("repetitions: 2", "repetitions: 1") + entries)
    assert main(["run", str(plan), "--dry-run"]) == 0
    assert "2 cases in 3 blocks: 4 runs (0 done)" in capsys.readouterr().out
    assert main(["run", str(plan), "--shard", "3/3"]) == 0
    assert "1 ok of 1 run in results/trial\n" in capsys.readouterr().out
    assert main(["check", "results/trial"]) == 3
    capsys.readouterr()
    assert main(["run", "results/trial"]) == 0  # what is left of it
    printed = capsys.readouterr()
    assert printed.out == "4 ok of 4 runs in results/trial\n"
    assert "1 ok from before; 3 runs to do" in printed.err
    assert main(["check", "results/trial"]) == 0
    capsys.readouterr()
    assert main(["status", "results/trial", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(case["repetitions"], case["outcomes"]) for case in found["cases"]] == [(1, {"ok": 1}), (3, {"ok": 3})]
    assert main(["run", str(plan), "--shard", "4/4"]) == 2
    assert "the plan has 3 blocks" in capsys.readouterr().err
    assert main(["run", str(plan), "--repetitions", "2"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "4 ok of 4 runs in results/trial\n"
    assert "not counted, but kept on disk: 1 run, because the plan has 2 repetitions now" in printed.err


def test_status_reads_each_run_once(
    plan: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["run", str(plan)])
    capsys.readouterr()
    read, read_run = Counter[Path](), RunDirectory.read_run

    def counting(run: RunDirectory) -> dict[str, Any]:
        read[run.path] += 1
        return read_run(run)

    monkeypatch.setattr(RunDirectory, "read_run", counting)
    assert main(["status", "results/trial", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["outcomes"]["ok"] == len(read) > 1
    assert shown["outcomes"] == sum((Counter(case["outcomes"]) for case in shown["cases"]), Counter())
    assert set(read.values()) == {1}


def test_status_tells_what_is_missing(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", str(plan), "--filter", "iterations=1"])
    assert "noop iterations=1, block 2" in capsys.readouterr().err
    assert main(["status", "results/trial"]) == 0
    printed = capsys.readouterr().out
    assert "2 ok, 2 missing of 4 runs" in printed
    assert sorted(re.findall("noop iterations=.", printed)) == ["noop iterations=1", "noop iterations=2"]
    assert main(["check", "results/trial"]) == 3
    assert "noop iterations=2" in capsys.readouterr().out
    assert main(["status", "results/trial", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outcomes"] == {"ok": 2, "missing": 2}


def test_a_dry_run_lists_everything_and_starts_nothing(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(plan), "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert "2 cases in 2 blocks: 4 runs (0 done), 0 artefacts to make, into results/trial" in printed
    assert "noop iterations=1" in printed
    assert not Path("results").exists()


def test_a_dry_run_counts_the_cases_that_cannot_run_here_by_why(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells = "infer, model: mlp, runtime: onnxruntime, device: cpu, precision: [fp32, fp8, fp16, fp8+fp16]"
    plan.write_text(PLAN.replace("noop, iterations: [1, 2]", cells))
    pytest.importorskip("onnxruntime")
    assert main(["run", str(plan), "--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        "3 of 4 cases cannot run on this machine: no_fp8_on_cpu 1, no_fp16_on_cpu 1, no_fp8+fp16_on_cpu 1"
    )


def test_a_dry_run_forecasts_that_a_required_energy_cannot_be_measured(
    plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--json"]) in (0, 1)
    found = {one["what"]: one["status"] for one in json.loads(capsys.readouterr().out)["findings"]}
    measured = "yes" in (found["CPU energy"], found["module energy"], found["node energy"])
    told = "energy, which the plan requires, cannot be measured in 2 cases: "
    for require, expected in (("energy", not measured), ("timing", False)):
        plan.write_text(f"{PLAN}require: [{require}]\n")
        assert main(["run", str(plan), "--dry-run"]) == 0
        assert (told in capsys.readouterr().out) == expected


def test_a_dry_run_counts_what_an_own_file_computes_or_says_that_it_is_unknown(
    plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("onnxruntime")
    cells = "infer, model: {name}/model.onnx, runtime: onnxruntime, provider: cpu, batch: [1, 8]"
    weights = {"w": np.ones((4, 4), np.float32)}
    nodes = [node("Einsum", "x w", "a", equation="ij,jk->ik"), node("MatMul", "a w", "y")]
    Path("einsum").mkdir()
    onnx.save(model(nodes, [("x", 1, ["n", 4])], [("y", 1, ["n", 4])], weights), "einsum/model.onnx")
    write("plain", Path("plain"))
    write("if", Path("if"))
    for name in ("plain", "einsum", "if"):
        plan.write_text(PLAN.replace("noop, iterations: [1, 2]", cells.format(name=name)))
        assert main(["run", str(plan), "--dry-run", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["runs"] == 4
        assert found["estimate_unknown_cases"] == (0 if name == "plain" else 2)
        assert found["estimate_s"] < 30
    assert main(["run", str(plan), "--dry-run"]) == 0
    assert "an unknown time and " in (said := capsys.readouterr().out)
    assert "but for 2: what their models compute cannot be counted)" in said


def test_a_dry_run_of_a_shard_counts_its_own_runs(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", str(plan)])
    capsys.readouterr()
    assert main(["run", str(plan), "--dry-run", "--shard", "1/2"]) == 0
    assert "2 cases in 1 block: 2 runs (2 done)" in capsys.readouterr().out


OWN_INT8 = "infer, model: mine.onnx, runtime: onnxruntime, device: cpu, precision: int8, calibration_images: 10"


def test_artefacts_can_be_made_ahead_of_the_runs_that_then_take_them(
    plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("onnxruntime")
    write_classifier(plan.parent / "mine.onnx", side=16)
    plan.write_text(PLAN.replace("noop, iterations: [1, 2]", OWN_INT8))
    assert main(["run", str(plan), "--artefacts-only"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "1 ok of 1 artefact in results/trial\n"
    assert printed.err.count("making onnx-quantised mine.onnx") == 1
    assert main(["status", "results/trial"]) == 0
    assert "2 missing of 2 runs" in capsys.readouterr().out
    assert main(["run", str(plan), "--artefacts-only", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["artefacts"] == {"ok": 1}
    assert main(["run", str(plan)]) == 0
    assert "making" not in capsys.readouterr().err


def test_an_artefact_that_cannot_be_made_ahead_is_named(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_classifier(plan.parent / "mine.onnx")
    plan.write_text(PLAN.replace("noop, iterations: [1, 2]", OWN_INT8))
    assert main(["run", str(plan), "--artefacts-only", "--timeout", "0.01"]) == 1
    named, counted, hint = capsys.readouterr().out.splitlines()
    assert re.search(r"  build_failed: stopped after \S+ s, because of --timeout$", named)
    assert counted == "1 build_failed of 1 artefact in results/trial"
    assert hint == "1 artefact failed and stays as it is: --retry-failed repeats it"
    assert main(["run", str(plan)]) == 1
    counted, hint = capsys.readouterr().out.splitlines()
    assert counted == "2 build_failed of 2 runs in results/trial"
    assert hint == "2 runs failed and stay as they are: --retry-failed repeats them"


def test_cases_that_cannot_run_here_get_no_artefacts_and_are_counted(
    plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan.write_text(PLAN.replace("noop, iterations: [1, 2]", "infer, model: mlp, runtime: onnxruntime, precision: fp8"))
    assert main(["run", str(plan), "--artefacts-only"]) == 0
    assert capsys.readouterr().out == (
        "no artefact to make in results/trial\n"
        "no artefact was made for 1 case that cannot run on this machine: --dry-run lists the reasons\n"
    )


def test_a_campaign_goes_on_when_nobody_reads_its_progress(plan: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "pybench.cli", "run", str(plan)]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}  # as users have it
    done = subprocess.run(command, stderr=writing, stdout=subprocess.PIPE, env=buffered, check=False)
    os.close(writing)
    assert (done.returncode, done.stdout) == (0, b"4 ok of 4 runs in results/trial\n")


def test_progress_counts_a_run_once_and_what_another_runner_does_not_at_all() -> None:
    said = io.StringIO()
    progress = Progress(said)
    progress.begin(3, {"ok": 1})
    progress.skipped()
    progress.finished(PlannedRun(Case(workload="noop"), 1, 0), Outcome("ok"), 5.0)
    assert "[1/2] 2 ok, 5 s left" in said.getvalue()


@pytest.mark.parametrize("is_terminal", [False, True])
@pytest.mark.parametrize("name", ["unsupported", "build_failed"])
def test_why_no_block_of_a_case_runs_is_said_once(
    name: str, is_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = io.StringIO()
    monkeypatch.setattr(said, "isatty", lambda: is_terminal)
    progress = Progress(said)
    progress.begin(3, {})
    for block, why in ((1, "no GPU"), (2, "no GPU"), (3, "no memory")):
        outcome = Outcome(name, Reason(Cause.NO_GPU, why))
        progress.finished(PlannedRun(Case(workload="h2d"), block, 0), outcome, 0.0)
    assert said.getvalue().count("block 1: no GPU\n") == 1
    assert said.getvalue().count("no GPU") == 1
    assert "block 3: no memory\n" in said.getvalue()


def test_shards_together_are_the_whole(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(plan), "--shard", "1/2"]) == 0
    assert main(["run", str(plan), "--shard", "2/2"]) == 0
    capsys.readouterr()
    main(["status", "results/trial"])
    assert "4 ok of 4 runs" in capsys.readouterr().out


def test_a_changed_plan_is_continued_and_its_changes_named(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", str(plan)])
    plan.write_text(PLAN.replace("[1, 2]", "[2, 3]"))
    for words in (["--dry-run"], []):
        capsys.readouterr()
        assert main(["run", str(plan), *words]) == 0
        said = capsys.readouterr().err
        assert re.search(r"^added to the plan: \w{12} noop iterations=3$", said, re.MULTILINE)
        removed = r"^removed from the plan, kept on disk but not counted: \w{12} noop iterations=1$"
        assert re.search(removed, said, re.MULTILINE)


def test_what_is_required_and_not_valid_has_its_commonest_reason(
    plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["run", str(plan)])
    for record in Path("results/trial/runs").glob("*/*/*/run.json"):
        content = json.loads(record.read_text())
        content["valid"]["timing"] = {"value": False, "reasons": ["clock_changed"]}
        record.write_text(json.dumps(content))
    plan.write_text(f"{PLAN}require: [timing]\n")
    capsys.readouterr()
    assert main(["run", str(plan)]) == 1
    said = capsys.readouterr().out
    assert "required by the plan but not valid: timing in 4 runs, mostly clock_changed\n" in said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "missing.yaml"], "missing.yaml"),
        (["run", "plan.yaml", "--shard", "3/2"], "--shard 3/2: not of the form I/N"),
        (["run", "plan.yaml", "--shard", "3/3"], "--shard 3/3: has no block"),
        (["run", "plan.yaml", "--filter", "flavour=mint"], "flavour"),
        (["run", "plan.yaml", "--filter", "iterations=99"], "no case matches"),
        (["run", "plan.yaml", "--rerun", "zzz"], "--rerun zzz matches no case of the plan"),
        (["run", "plan.yaml", "--timeout", "-1"], "--timeout"),
        (["run", "plan.yaml", "--frobnicate"], "--frobnicate"),
        (["run"], "PLAN"),
        (["status", "nowhere"], "nowhere is not a folder"),
        (["status", "."], "is not a campaign"),
        (["frobnicate"], "frobnicate"),
    ],
)
def test_wrong_usage_is_one_error_and_exit_code_2(
    plan: Path, arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert says in printed.err
    assert "Traceback" not in printed.err
    assert not Path("results").exists()


def test_a_corrupt_run_is_exit_code_4(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", str(plan)])
    next(Path("results/trial/runs").glob("*/*/*/run.json")).write_text("{")
    capsys.readouterr()
    assert main(["run", str(plan)]) == 4
    assert main(["status", "results/trial"]) == 4
    assert "run.json cannot be read" in capsys.readouterr().err


def test_cpus_that_this_machine_lacks_are_unsupported(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan.write_text(PLAN.replace("iterations: [1, 2]", "affinity: 0-9999"))
    assert main(["run", str(plan)]) == 1
    assert "this process may use the CPUs" in capsys.readouterr().err
    runs = list(Path("results/trial/runs").glob("*/*/attempt*/run.json"))
    assert {json.loads(run.read_text())["reason"] for run in runs} == {"no_such_cpu"}


def test_on_a_terminal_the_progress_is_one_line(plan: Path) -> None:
    """A real pseudo-terminal: the line is rewritten, and gone at the end."""
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "pybench.cli", "run", str(plan)]
    process = subprocess.Popen(command, stderr=follower, stdout=subprocess.PIPE)
    os.close(follower)
    shown = b""
    while True:
        try:
            piece = os.read(leader, 4096)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    os.close(leader)
    out, _ = process.communicate()
    assert process.returncode == 0
    assert out == b"4 ok of 4 runs in results/trial\n"
    assert b"\r\x1b[K" in shown
    assert b"\n" not in shown


def test_ctrl_c_is_answered_at_once_and_the_run_at_hand_is_finished(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = gate_here(tmp_path / "gate", monkeypatch)
    command = [sys.executable, "-m", "pybench.cli", "run", str(plan)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    wait_for(lambda: list(Path("results").glob("trial/runs/*/*/attempt-01/stderr.log")))
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert process.stderr.readline() == "stopping after the current run; interrupt again to stop it now\n"
    gate.open()
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "1 ok, 3 missing of 4 runs" in out
    assert "run the same command again to continue" in out


@pytest.mark.parametrize(("asked", "code"), [(signal.SIGINT, 130), (signal.SIGUSR1, 75)])
def test_a_rerun_that_is_stopped_says_what_it_did_not_repeat_and_that_it_begins_anew(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: signal.Signals, code: int
) -> None:
    plan.write_text(PLAN.replace("repetitions: 2", "repetitions: 3").replace("iterations: [1, 2]", "iterations: 1"))
    assert main(["run", str(plan)]) == 0
    case = next(CampaignDirectory(Path("results/trial")).runs()).case_id
    gate = gate_here(tmp_path / "gate", monkeypatch)
    command = [sys.executable, "-m", "pybench.cli", "run", str(plan), "--rerun", case]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    wait_for(lambda: list(Path("results").glob("trial/runs/*/*/attempt-02/stderr.log")))
    process.send_signal(asked)
    gate.open()
    out, _ = process.communicate(timeout=120)
    assert process.returncode == code
    assert out.splitlines() == [
        "3 ok of 3 runs in results/trial",
        "not repeated: 2 runs",
        "interrupted: the same command begins --rerun anew; without --rerun it does only what is missing",
    ]


def test_doctor_says_what_is_here_and_how_to_get_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    printed = capsys.readouterr().out
    assert "this machine" in printed
    assert "CPU energy" in printed
    assert main(["doctor", "--json"]) == 0
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert all(finding["hint"] for finding in findings if finding["status"] == "no")


def test_status_names_a_search_that_goes_on_at_the_next_run(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", str(plan)])
    folder = CampaignDirectory(Path("results/trial")).unfinished("a" * 64)
    folder.mkdir(parents=True)
    (folder / "recipe.json").write_text(json.dumps({"recipe": Recipe("kept-nodes", (("model", "mlp"),)).as_json()}))
    (folder / "trials.jsonl").write_text("{}\n" * 3)
    capsys.readouterr()
    assert main(["status", "results/trial"]) == 0
    said = "kept-nodes mlp was ended early: 2 trials are kept, and `pybench run results/trial` goes on from there\n"
    assert capsys.readouterr().err == said
    assert main(["status", "results/trial", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["unfinished"]
    assert (found["artefact"], found["title"], found["trials"]) == ("a" * 64, "kept-nodes mlp", 2)
