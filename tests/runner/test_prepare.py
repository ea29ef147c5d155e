# SPDX-License-Identifier: Apache-2.0
"""Artefacts: made once by a real worker, shared by runners that come and go, never half there."""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pybench.campaign import layout, storage
from pybench.campaign.claims import Claimant, claim, this_process
from pybench.campaign.directory import CampaignDirectory
from pybench.campaign.recipe import Recipe, recipes_of
from pybench.case import Case
from pybench.errors import EXIT_CORRUPT, CorruptError
from pybench.launcher import Launcher
from pybench.runner.interruption import Interruption
from pybench.runner.prepare import Maker, prepare
from pybench.runner.process import Stopped, WorkerEnd
from pybench.runner.unfinished import unfinished_makings
from tests.runner.conftest import Run, plan_content


@pytest.mark.slow
@pytest.mark.usefixtures("ready_workers")
def test_a_users_checkpoint_becomes_an_onnx_file_of_its_weights_and_has_to_stay_what_it_is(
    campaign: CampaignDirectory, run: Run, tmp_path: Path
) -> None:
    torch = pytest.importorskip("torch")
    from pybench.models.building import build

    torch.save(build("digits-cnn", seed=5).state_dict(), tmp_path / "weights.pt")
    case = Case(
        workload="infer",
        model="digits-cnn",
        runtime="onnxruntime",
        checkpoint="weights.pt",
        iterations=2,
        device="cpu",
        sources=(("checkpoint", "a" * 64),),
    )
    files = {"weights.pt": {"path": str(tmp_path / "weights.pt")}}
    tally, _ = run({**plan_content([case], 1), "files": files})
    assert dict(tally.outcomes) == {"ok": 1}
    made = campaign.artefact(recipes_of(case)["model"].digest)
    assert json.loads((made / layout.RECIPE).read_text())["files"] == {"checkpoint": str(tmp_path / "weights.pt")}
    os.truncate(made / "model.onnx", 1000)
    with pytest.raises(CorruptError, match=r"model\.onnx has changed since it was made") as caught:
        run({**plan_content([case], 2), "files": files})
    assert caught.value.exit_code == EXIT_CORRUPT
    (made / "model.onnx").unlink()
    with pytest.raises(CorruptError, match=r"model\.onnx is missing"):
        run({**plan_content([case], 2), "files": files})
    shutil.rmtree(made)
    tally, _ = run({**plan_content([case], 2), "files": files})
    assert dict(tally.outcomes) == {"ok": 2}


# Without any parameter its maker crashes in a moment, and trains nothing.
BROKEN = Recipe("onnx-quantised", ())


@pytest.fixture
def maker(campaign: CampaignDirectory) -> Maker:
    campaign.artefacts.mkdir(parents=True)
    return Maker(campaign, this_process(), Interruption(), 60.0, True, {}, lambda recipe: None, lambda text: None)


def outcome_of(maker: Maker, limit_s: float = 120.0, of: tuple[Recipe, ...] = (BROKEN,)) -> str:
    """What becomes of the first recipe; a failure when that takes too long, as for another runner to end."""
    found: list[str] = []
    asker = threading.Thread(target=lambda: found.append(prepare(of, maker)[of[0].digest].name), daemon=True)
    asker.start()
    asker.join(limit_s)
    maker.interruption.requests += 1  # a runner that still waits stops
    asker.join()
    return found[0]


def other_runner(maker: Maker) -> Maker:
    """One that lives: this process, seen from a sibling."""
    return replace(maker, claimant=replace(maker.claimant, pid=1, pid_started=started_of(1)))


def started_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def test_an_artefact_that_failed_is_tried_again_although_the_runner_that_failed_lives_on(maker: Maker) -> None:
    assert outcome_of(other_runner(maker)) == "build_failed"
    assert outcome_of(replace(maker, interruption=Interruption())) == "build_failed"
    folders = sorted(entry.name for entry in maker.campaign.artefacts.iterdir())
    assert folders == [BROKEN.digest, f"{BROKEN.digest}.failed-01"]


def test_an_artefact_that_is_not_made_is_said_at_once_with_its_reason(maker: Maker) -> None:
    said: list[str] = []
    outcomes = prepare([BROKEN], replace(maker, note=said.append))
    assert said == [f"not made: {BROKEN.title()}: {outcomes[BROKEN.digest].why}"]


@pytest.mark.parametrize("content", ["", "{}", '{"schema_version": 1}'])
def test_an_artefact_whose_record_is_damaged_is_corrupt(maker: Maker, content: str) -> None:
    made = maker.campaign.artefact(BROKEN.digest)
    made.mkdir()
    storage.write_text(made / layout.RUN, content)
    storage.write_text(made / layout.COMPLETE, "")
    with pytest.raises(CorruptError, match="remove its folder"):
        prepare([BROKEN], maker)


@pytest.mark.slow
@pytest.mark.usefixtures("ready_workers")
def test_a_run_names_the_artefact_that_was_not_made_and_not_what_would_have_been_made_of_it(
    campaign: CampaignDirectory, run: Run, tmp_path: Path
) -> None:
    onnx = pytest.importorskip("onnx")
    values = np.random.default_rng(0).standard_normal((2, 8, 8)).astype(np.float32)
    weights = [onnx.numpy_helper.from_array(value, f"w{number}") for number, value in enumerate(values)]
    names = ["x", "hidden", "y"]
    nodes = [onnx.helper.make_node("MatMul", [names[i], f"w{i}"], [names[i + 1]], f"product{i}") for i in (0, 1)]
    ends = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["N", 8]) for name in ("x", "y")]
    graph = onnx.helper.make_graph(nodes, "two", ends[:1], ends[1:], weights)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "two.onnx")
    factors = {"precision": "int8", "keep_error_max": 1e-9, "device": "cpu", "iterations": 2}
    sources = (("model", storage.sha256_of(tmp_path / "two.onnx")),)
    case = Case(workload="infer", model="two.onnx", runtime="onnxruntime", sources=sources, **factors)
    run({**plan_content([case], 1), "files": {"two.onnx": {"path": str(tmp_path / "two.onnx")}}})
    (record,) = [found.read_run() for found in campaign.runs()]
    search = dict(recipes_of(case)["model"].needs)["kept"]
    assert record["outcome"] == "build_failed"
    assert record["detail"].startswith(f"model: {search.title()}: the signal error is ")


SEARCH = Recipe("kept-nodes", ())


@pytest.mark.parametrize("stopped", ["timeout", None])
def test_what_a_search_found_stays_until_it_has_an_answer(
    maker: Maker, monkeypatch: pytest.MonkeyPatch, stopped: Stopped | None
) -> None:
    """The maker crashes by itself, or its time is up; the next one is told the same folder, and gets to the end."""
    from pybench.runner import prepare as module

    unfinished, work = maker.campaign.unfinished(SEARCH.digest), module.run_worker
    said: list[str] = []

    def ended(launcher: Launcher, arguments: list[str], folder: Path, *others: Any) -> WorkerEnd:
        end = work(launcher, arguments, folder, *others)
        assert json.loads((folder / layout.RECIPE).read_text())["unfinished"] == f"artefacts/{unfinished.name}"
        (unfinished / "trials.jsonl").write_text("{}")
        (folder / ".trials-1").mkdir()
        (folder / ".trials-1" / "trial.onnx").write_text("large")
        return replace(end, stopped=stopped, last_words="trial 31: signal error 0.08, 14 nodes kept")

    monkeypatch.setattr(module, "run_worker", ended)
    assert prepare([SEARCH], replace(maker, note=said.append))[SEARCH.digest].name == "build_failed"
    assert (unfinished / "trials.jsonl").exists()
    assert not list(maker.campaign.artefact(SEARCH.digest).glob(".*"))
    assert "run again with --retry-failed to go on from there" in said[0]
    assert ("trial 31" in said[0]) == (stopped == "timeout")

    def answered(launcher: Launcher, arguments: list[str], folder: Path, *others: Any) -> WorkerEnd:
        end = ended(launcher, arguments, folder, *others)
        (folder / SEARCH.file).write_text("{}")
        return replace(end, stopped=None, exit_status=0, report={"outcome": "ok"})

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "run_worker", answered)
    with monkeypatch.context() as patch:
        patch.setattr(module, "_publish", killed)
        with pytest.raises(KeyboardInterrupt):
            prepare([SEARCH], maker)
    assert (unfinished / "trials.jsonl").exists()  # the answer came to no address
    assert prepare([SEARCH], maker)[SEARCH.digest].name == "ok"
    assert not unfinished.exists()
    unfinished.mkdir()  # as of a runner that was killed before it removed it
    prepare([SEARCH], maker)
    assert not unfinished.exists()


@pytest.mark.parametrize(("trials", "said"), [(0, ""), (1, "; 1 trial is kept, and the next run goes on from there")])
def test_a_search_that_was_killed_says_that_its_trials_are_kept_and_who_goes_on(
    maker: Maker, monkeypatch: pytest.MonkeyPatch, trials: int, said: str
) -> None:
    from pybench.runner import prepare as module

    unfinished, work = maker.campaign.unfinished(SEARCH.digest), module.run_worker

    def ended(launcher: Launcher, arguments: list[str], folder: Path, *others: Any) -> WorkerEnd:
        end = work(launcher, arguments, folder, *others)
        (unfinished / "trials.jsonl").write_text('{"of": {}}\n' + trials * '{"kept": []}\n' + '{"half of a li')
        return replace(end, signal="SIGKILL", exit_status=None, report=None)

    monkeypatch.setattr(module, "run_worker", ended)
    outcome = prepare([SEARCH], maker)[SEARCH.digest]
    assert outcome.name == "killed"
    assert outcome.why == f"somebody or something outside pybench killed the worker{said}"
    assert [found.trials for found in unfinished_makings(maker.campaign)] == [1] * trials


def test_what_was_ended_early_is_told_from_what_is_being_made_and_from_what_has_failed(maker: Maker) -> None:
    unfinished, directory = maker.campaign.unfinished(SEARCH.digest), Path("results/mine")
    unfinished.mkdir()
    (unfinished / "trials.jsonl").write_text("{}\n" * 4)
    assert unfinished_makings(maker.campaign) == []  # of what, nobody knows
    storage.write_json(unfinished / layout.RECIPE, {"recipe": SEARCH.as_json()})
    (found,) = unfinished_makings(maker.campaign)
    early = "kept-nodes was ended early: 3 trials are kept, and `pybench run results/mine"
    assert found.text(directory) == f"{early}` goes on from there"
    making = maker.campaign.artefacts / f".{SEARCH.digest}.attempt-01.claim"
    claim(making, replace(this_process(), pid=os.getppid(), pid_started=started(os.getppid())))
    (found,) = unfinished_makings(maker.campaign)
    assert found.text(directory) == "kept-nodes is being made: 3 trials so far"
    making.unlink()
    maker.campaign.artefact(SEARCH.digest).mkdir()
    (maker.campaign.artefact(SEARCH.digest) / layout.COMPLETE).touch()
    (found,) = unfinished_makings(maker.campaign)
    assert found.text(directory) == f"{early} --retry-failed` goes on from there"
    assert "`pybench run 'my results' --retry-failed`" in found.text(Path("my results"))


def started(pid: int) -> int:
    """The start of a process in ticks since the machine's, as claims have it."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def test_half_made_artefacts_of_dead_runners_are_removed_whatever_is_made(maker: Maker) -> None:
    dead, unclaimed, alive = (maker.campaign.artefacts / f".{letter * 64}.attempt-01" for letter in "abc")
    for folder in (dead, unclaimed, alive):
        folder.mkdir()
        (folder / "half").write_text("of it")
    assert claim(dead.with_name(dead.name + ".claim"), Claimant("gone", "", "", 1, 1))
    os.utime(dead.with_name(dead.name + ".claim"), (0, 0))
    assert claim(alive.with_name(alive.name + ".claim"), Claimant("elsewhere", "", "", 1, 1))
    prepare([], maker)
    assert [folder.exists() for folder in (dead, unclaimed, alive)] == [False, False, True]
    assert not unclaimed.with_name(unclaimed.name + ".claim").exists()


def test_an_artefact_that_another_runner_finished_meanwhile_is_taken_and_not_made_twice(
    maker: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one's folder comes to its address while this runner's worker is at work: neither may be lost."""
    from pybench.runner import prepare as module

    assert outcome_of(maker) == "build_failed"
    folder = maker.campaign.artefact(BROKEN.digest)
    work = module.run_worker

    def overtaken(*arguments: Any) -> WorkerEnd:
        end = work(*arguments)
        shutil.copytree(folder.with_name(f"{folder.name}.failed-01"), folder)
        record = json.loads((folder / layout.RUN).read_text())
        (folder / layout.RUN).write_text(json.dumps({**record, "outcome": "ok"}))
        return end

    monkeypatch.setattr(module, "run_worker", overtaken)
    assert outcome_of(replace(maker, interruption=Interruption())) == "ok"
    assert not [entry for entry in maker.campaign.artefacts.iterdir() if "attempt" in entry.name]


def test_a_failed_artefact_that_another_runner_sets_aside_while_it_is_read_is_not_corrupt(
    maker: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pybench.runner import prepare as module

    assert outcome_of(maker) == "build_failed"
    folder = maker.campaign.artefact(BROKEN.digest)
    read = module._stored_outcome

    def set_aside(path: Path) -> object:
        folder.rename(folder.with_name(f"{folder.name}.failed-01"))
        return read(path)

    monkeypatch.setattr(module, "_stored_outcome", set_aside)
    assert outcome_of(replace(maker, interruption=Interruption())) == "build_failed"
    assert folder.exists()


def test_runners_that_retry_a_failed_artefact_at_once_do_not_trip_over_each_other(maker: Maker) -> None:
    assert outcome_of(maker) == "build_failed"
    runners = [replace(maker, interruption=Interruption()) for _ in range(2)]
    others = [runners[0], other_runner(runners[1])]
    with ThreadPoolExecutor(2) as pool:
        assert set(pool.map(outcome_of, others)) == {"build_failed"}


def test_what_another_runner_is_making_is_passed_over_until_the_rest_is_made(maker: Maker) -> None:
    theirs = maker.campaign.artefacts / f".{BROKEN.digest}.attempt-01.claim"
    assert claim(theirs, other_runner(maker).claimant)
    announced: list[Recipe] = []

    def announce(recipe: Recipe) -> None:
        announced.append(recipe)
        theirs.unlink(missing_ok=True)  # as if its owner ended while this runner makes the other artefact

    assert outcome_of(replace(maker, announce=announce), of=(BROKEN, SEARCH)) == "build_failed"
    assert announced == [SEARCH, BROKEN]


@pytest.mark.parametrize("is_here", [True, False])
def test_who_makes_what_is_waited_for_is_said_once(
    maker: Maker, monkeypatch: pytest.MonkeyPatch, is_here: bool
) -> None:
    theirs = maker.campaign.artefacts / f".{BROKEN.digest}.attempt-01.claim"
    other = other_runner(maker).claimant
    assert claim(theirs, other if is_here else replace(other, host="node7", pid_namespace="of a container"))
    os.utime(theirs, (time.time() - 12, time.time() - 12))
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            theirs.unlink()

    monkeypatch.setattr("pybench.runner.prepare.time", SimpleNamespace(sleep=wait))
    said: list[str] = []
    prepare([BROKEN, Recipe("engine", (), (("model", BROKEN),))], replace(maker, note=said.append))
    where = "" if is_here else r" on node7 \(heard of 1[2-9] s ago, taken for dead after 300 s\)"
    assert re.fullmatch(rf"waiting for {BROKEN.title()}, which process 1{where} is making", said[0])
    assert [text for text in said[1:] if "waiting" in text] == []


def test_what_needs_an_artefact_of_another_runner_is_made_after_it(maker: Maker) -> None:
    needy = Recipe("engine", (), (("model", BROKEN),))
    theirs = maker.campaign.artefacts / f".{BROKEN.digest}.attempt-01.claim"
    assert claim(theirs, other_runner(maker).claimant)
    announced: list[Recipe] = []

    def announce(recipe: Recipe) -> None:
        announced.append(recipe)
        theirs.unlink(missing_ok=True)

    outcomes = prepare([BROKEN, needy, SEARCH], replace(maker, announce=announce))
    assert announced == [SEARCH, BROKEN]
    assert outcomes[needy.digest] is outcomes[BROKEN.digest]  # what it needs was not made


def test_a_dead_runners_half_made_artefact_is_removed_and_made(maker: Maker) -> None:
    folder = maker.campaign.artefacts / f".{BROKEN.digest}.attempt-01"
    folder.mkdir()
    (folder / "half").write_text("of it")
    assert claim(folder.with_name(folder.name + ".claim"), Claimant("gone", "", "", 1, 1))
    os.utime(folder.with_name(folder.name + ".claim"), (0, 0))
    assert outcome_of(maker) == "build_failed"
    assert not folder.exists()
