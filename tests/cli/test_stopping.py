# SPDX-License-Identifier: Apache-2.0
"""Plans that stop when they are decided, as a user meets them: real runs on a CPU, and stops that follow from disk."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pybench.campaign.directory import CampaignDirectory
from pybench.campaign.resolved_plan import read_planned, read_resolved_plan
from pybench.case import Case
from pybench.case.repetitions import Stop, StoppingRule
from pybench.cli import main
from pybench.cli.stopping import LastBlock
from tests.support.campaigns import CampaignBuilder
from tests.support.waiting import wait_for

PLAN = """\
schema_version: 1
name: until
repetitions: {until: decided, at_most: 50}
matrix:
  - {workload: infer, model: digits-cnn, runtime: onnxruntime, batch: [1, 256], iterations: 20, warmup_iterations: 2}
criteria: {baseline: {batch: 1}, accept: {throughput_ratio_min: 1}}
"""
FP32 = Case(workload="infer", model="digits-cnn", runtime="onnxruntime")
INT8 = FP32.with_factors(precision="int8")


@pytest.fixture
def plan(plan: Path) -> Path:
    plan.write_text(PLAN)
    return plan


def _attempts(folder: Path) -> list[str]:
    return sorted(str(path.parent.relative_to(folder)) for path in folder.glob("runs/*/*/*/complete"))


# --- real runs ------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("ready_workers")
def test_a_campaign_stops_when_it_is_decided_and_stays_so(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(plan), "--json"]) == 0
    printed = capsys.readouterr()
    found = json.loads(printed.out)["stopping"]
    after = found["after_block"]
    assert (found["reason"], found["at_most"]) == ("decided", 50)
    assert after in found["looks"][:-1]
    assert f"after block {after} of at most 50: 1 of 1 question decided\n" in printed.err
    folder = Path("results/until")
    done = _attempts(folder)
    assert len(done) == 2 * after
    told = f"stopped after block {after} of at most 50: decided\n"
    (folder / "stopped.json").unlink()  # it follows from the runs
    for source in (str(plan), str(folder)):
        assert main(["run", source]) == 0
        assert capsys.readouterr().out == f"{2 * after} ok of {2 * after} runs in results/until\n{told}"
    assert _attempts(folder) == done
    assert main(["status", str(folder)]) == 0
    assert capsys.readouterr().out.endswith(f"until: {2 * after} ok of {2 * after} runs\n{told}")
    assert main(["check", str(folder)]) == 0
    assert f"{2 * after} of {2 * after} planned runs are covered" in capsys.readouterr().out
    assert main(["analyse", str(folder)]) == 0
    sentence = f"{told[0].upper()}{told[1:-1]}. Intervals and p values allow for 7 looks."
    assert sentence in capsys.readouterr().out
    assert main(["run", str(plan), "--dry-run"]) == 0
    assert f"in {after} blocks: {2 * after} runs ({2 * after} done)" in capsys.readouterr().out


@pytest.mark.usefixtures("ready_workers")
@pytest.mark.timeout(300)
def test_a_killed_campaign_goes_on_and_decides_by_what_is_on_disk(
    plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path("results/until")
    program = "import sys; from pybench.cli import main; sys.exit(main())"
    with subprocess.Popen([sys.executable, "-P", "-c", program, "run", str(plan)], env=dict(os.environ)) as process:
        wait_for(lambda: len(_attempts(folder)) >= 3, 120)
        process.send_signal(signal.SIGKILL)
    before = _attempts(folder)
    assert not (folder / "stopped.json").exists()
    assert main(["status", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "not decided so far: " in said
    assert " of at most 50 blocks complete; the next look is after block 3\n" in said
    assert main(["run", str(plan)]) == 0
    stop = read_resolved_plan(CampaignDirectory(folder)).repetitions.stop
    assert stop is not None
    assert stop.reason == "decided"
    assert set(before) < set(_attempts(folder))
    again = LastBlock(CampaignDirectory(folder), *_rule(folder), note=lambda text: None)
    assert again() == stop.after_block


@pytest.mark.usefixtures("ready_workers")
def test_time_that_is_over_ends_a_campaign_after_its_block(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan.write_text(PLAN.replace("at_most: 50", "at_most: 50, within_s: 0.01"))
    assert main(["run", str(plan)]) == 0
    told = "not decided within 0.01 s: stopped after block 1 of at most 50\n"
    assert capsys.readouterr().out == f"2 ok of 2 runs in results/until\n{told}"
    assert main(["run", str(plan)]) == 0  # across calls: the time is over
    assert len(_attempts(Path("results/until"))) == 2
    assert main(["check", "results/until"]) == 0
    plan.write_text(PLAN.replace("at_most: 50", "at_most: 3"))  # more time, and few blocks
    assert main(["run", str(plan)]) == 0
    assert len(_attempts(Path("results/until"))) == 6


# --- before anything runs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["run", "plan.yaml", "--filter", "batch=1"], "--filter batch=1: the plan stops when all of its comparisons"),
        (["run", "plan.yaml", "--shard", "1/2"], "--shard 1/2: the plan stops when it is decided, so its blocks"),
        (["submit", "plan.yaml", "--site", "site.yaml"], "the plan stops when it is decided, so its blocks follow"),
    ],
)
def test_what_would_tear_a_campaign_apart_is_refused(
    plan: Path, capsys: pytest.CaptureFixture[str], arguments: Sequence[str], what: str
) -> None:
    assert main(["submit", "--example-site", "slurm"]) == 0
    (plan.parent / "site.yaml").write_text(capsys.readouterr().out)
    assert main(list(arguments)) == 2
    said = capsys.readouterr().err
    assert what in said
    assert "--repetitions 10" in said
    assert not Path("results").exists()


def test_validate_and_a_dry_run_say_how_much_at_most(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(plan)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("until: 2 cases, at most 50 repetitions: at most 100 runs\n")
    assert "  stops when decided; looks after blocks 3, 5, 8, 12, 20, 32, 50\n" in said
    assert main(["validate", str(plan), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["stopping"]["looks"] == [3, 5, 8, 12, 20, 32, 50]
    assert main(["run", str(plan), "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "2 cases in at most 50 blocks: at most 100 runs (0 done)" in said
    assert "at most about " in said


# --- stops that follow from what is on disk -------------------------------------------------------------------------


def _built(folder: Path, ratio: float, blocks: int, rule: StoppingRule) -> CampaignBuilder:
    builder = CampaignBuilder(
        folder, [FP32, INT8], declared={"baseline": {"precision": "fp32"}, "accept": {"speedup_min": 1.2}}, rule=rule
    )
    rng = np.random.default_rng(5)
    for block in range(1, blocks + 1):
        for case, ms in ((FP32, 10.0), (INT8, 10.0 * ratio)):
            builder.run(case, block, {"latency_mean_ms": ms * float(np.exp(rng.normal(0, 0.01)))})
    return builder


def _rule(folder: Path) -> tuple[Any, StoppingRule]:
    plan = read_planned(CampaignDirectory(folder))
    assert plan.repetitions.rule is not None
    return plan, plan.repetitions.rule


def _asked(builder: CampaignBuilder) -> tuple[int | None, Stop | None, list[str]]:
    notes: list[str] = []
    last = LastBlock(builder.campaign, *_rule(builder.path), notes.append)()
    return last, read_resolved_plan(builder.campaign).repetitions.stop, notes


def test_looks_are_taken_in_order_and_the_first_that_decides_counts(tmp_path: Path) -> None:
    late = _built(tmp_path / "late", 0.5, 9, StoppingRule(20))
    assert _asked(late)[:2] == (3, Stop(3, "decided"))  # though nine blocks are there
    near = _built(tmp_path / "near", 1 / 1.2, 7, StoppingRule(20))
    last, stop, notes = _asked(near)
    assert (last, stop) == (None, None)
    assert notes == [f"after block {look} of at most 20: 0 of 1 question decided" for look in (3, 5)]


def test_the_last_block_ends_a_campaign_that_is_not_decided(tmp_path: Path) -> None:
    assert _asked(_built(tmp_path / "c", 1 / 1.2, 4, StoppingRule(4)))[:2] == (4, Stop(4, "blocks"))


def test_a_block_that_is_not_whole_is_not_looked_at(tmp_path: Path) -> None:
    builder = _built(tmp_path / "c", 0.5, 3, StoppingRule(20))
    shutil.rmtree(builder.campaign.block(INT8.id, 2))
    assert _asked(builder) == (None, None, [])


@pytest.mark.parametrize("outcome", ["interrupted", "killed"])
def test_a_run_that_is_done_again_has_not_ended(tmp_path: Path, outcome: str) -> None:
    builder = _built(tmp_path / "c", 0.5, 3, StoppingRule(20))
    builder.run(INT8, 3, {}, outcome=outcome, attempt=2)
    assert _asked(builder) == (None, None, [])


def test_time_is_that_of_the_runs_and_its_end_is_a_look(tmp_path: Path) -> None:
    """A run of these campaigns takes a second."""
    run_s = _built(tmp_path / "c", 0.5, 1, StoppingRule(20)).campaign.attempt(FP32.id, 1, 1).read_run()["duration_s"]
    near = _built(tmp_path / "near", 1 / 1.2, 9, StoppingRule(20, 7 * run_s))
    assert _asked(near)[:2] == (4, Stop(4, "time"))
    far = _built(tmp_path / "far", 0.1, 9, StoppingRule(20, 4 * run_s))
    assert _asked(far)[:2] == (2, Stop(2, "decided"))


def test_a_repeated_run_decides_anew(tmp_path: Path) -> None:
    builder = _built(tmp_path / "c", 0.5, 3, StoppingRule(20))
    assert _asked(builder)[0] == 3
    builder.run(INT8, 2, {"latency_mean_ms": 10.0}, attempt=2)
    assert _asked(builder)[:2] == (None, None)
    assert not builder.campaign.stopped.exists()


@pytest.mark.parametrize(
    "content", ['{"schema_version": 1}', '{"schema_version": 1, "after_block": 99, "reason": "x"}']
)
def test_a_damaged_stop_is_named_with_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    builder = _built(tmp_path / "c", 0.5, 3, StoppingRule(20))
    builder.campaign.stopped.write_text(content)
    assert main(["status", str(builder.path)]) == 4
    said = capsys.readouterr().err
    assert "stopped.json" in said
    assert f"remove it and run {builder.path} again" in said
    assert _asked(builder)[:2] == (3, Stop(3, "decided"))  # which needs no file


@pytest.mark.parametrize(("after", "reason"), [(3, "decided"), (5, "time"), (4, "blocks")])
def test_a_stop_that_the_runs_do_not_have_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], after: int, reason: str
) -> None:
    builder = _built(tmp_path / "c", 1 / 1.2, 5, StoppingRule(5, 1e6))
    assert _asked(builder)[1] == Stop(5, "blocks")
    assert main(["check", str(builder.path)]) == 0
    builder.campaign.stopped.write_text(f'{{"schema_version": 1, "after_block": {after}, "reason": "{reason}"}}')
    for command in (["check"], ["publish", "--dry-run"]):
        assert main([*command, str(builder.path)]) == 4
        said = capsys.readouterr().err
        assert "stopped.json says `" in said
        assert "but the runs say `not decided after 5 blocks`" in said


def test_a_stop_says_nothing_of_runs_that_are_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    builder = _built(tmp_path / "c", 1 / 1.2, 5, StoppingRule(5, 1e6))
    assert _asked(builder)[1] == Stop(5, "blocks")
    shutil.rmtree(next(builder.path.glob("runs/*/block-002")))
    assert main(["check", str(builder.path)]) == 3
    assert "1 of 10 planned runs is not covered" in capsys.readouterr().err
    assert main(["publish", "--dry-run", "--incomplete", str(builder.path)]) == 0


@pytest.mark.process
def test_a_published_campaign_stays_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    builder = _built(tmp_path / "c", 0.5, 4, StoppingRule(20))
    assert _asked(builder)[0] == 3
    archive = tmp_path / "c.zip"
    assert main(["publish", str(builder.path), "--archive", str(archive)]) == 0
    assert main(["fetch", str(archive), "--out", str(tmp_path / "fetched")]) == 0
    capsys.readouterr()
    assert main(["check", str(tmp_path / "fetched"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["planned"], found["full"], found["beyond_repetitions"]) == (6, True, 2)
    assert "`stopped.json`" in (tmp_path / "fetched" / "README.md").read_text()
    assert main(["replay", str(tmp_path / "fetched")]) == 0
