# SPDX-License-Identifier: Apache-2.0
"""Every unusual ONNX file through `validate`, `run --dry-run` and a campaign: no traceback, no campaign that ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybench.cli import main
from tests.support.onnx_files import FILES, write
from tests.support.onnx_outcomes import CELLS, ENTRY, PLAN, Cell, sweep, table
from tests.support.ready_workers import ReadyWorkers

pytestmark = pytest.mark.usefixtures("ready_workers")

# Files whose FP32 cells run on onnxruntime's CPU provider, with every batch or the one that they have.
RUN = {
    "plain", "external-data", "output-without-shape", "opset-7", "contributed-operator", "local-function",
    "local-function-with-if", "if", "output-of-another-batch",
    "loop", "sequence-inside", "strings-inside", "several-inputs", "scalar-beside", "fixed-batch", "token-ids",
    "fp16-weights-and-input", "fp64-weights-and-input", "bool-input", "uint8-input", "int8-input", "uint16-input",
    "int16-input", "int32-input", "uint32-input", "int64-input", "uint64-input", "not-in-running-order",
    "sizes-fixed-inside", "one-bias-for-all", "not-finite", "torch-by-tracing", "torch-by-dynamo",
    "quantised-to-qdq", "quantised-dynamically", "token-ids-out-of-range",
}  # fmt: skip
# What onnxruntime says when it opens or runs the file.
NOT_TAKEN = {
    "opset-newest": ("unsupported", "format_too_new"),
    "opset-unknown": ("unsupported", "opset_too_new"),
    "ir-version-too-new": ("unsupported", "format_too_new"),
    "custom-operator": ("unsupported", "unknown_operator"),
    "unknown-operator": ("unsupported", "unknown_operator"),
    "node-named-twice": ("build_failed", "input_refused"),
    "sizes-do-not-fit": ("build_failed", "input_refused"),
    "types-do-not-fit": ("build_failed", "input_refused"),
    "bf16-weights-and-input": ("unsupported", "no_kernel"),
}
UNREADABLE = "unreadable"  # by anyone but root, who reads everything: see tests/plan/test_files.py


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory, served_workers: ReadyWorkers) -> list[Cell]:
    return sweep(tmp_path_factory.mktemp("files"), served_workers, [name for name in FILES if name != UNREADABLE])


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_every_cell_runs_or_is_refused_or_fails_alone(cells: list[Cell]) -> None:
    assert len(cells) == len(CELLS) * (len(FILES) - 1)
    ends = {cell.outcome for cell in cells}
    assert ends <= {"ok", "refused", "unsupported", "build_failed"}, table(cells)
    assert all("Traceback" not in cell.why and cell.why for cell in cells if cell.outcome != "ok")


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_files_run_or_are_told_before_the_first_run_unless_only_the_runtime_knows(cells: list[Cell]) -> None:
    run = {cell.file for cell in cells if (cell.precision, cell.outcome) == ("fp32", "ok")}
    assert run == RUN, table(cells)
    found = {
        cell.file: (cell.outcome, cell.why.split()[0])
        for cell in cells
        if cell.precision == "fp32" and cell.outcome not in ("ok", "refused") and cell.file not in RUN
    }
    assert found == NOT_TAKEN, table(cells)


@pytest.mark.parametrize("name", [name for name in FILES if name != UNREADABLE])
def test_validate_and_dry_run_agree_on_a_file(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(name, tmp_path / name)
    Path("plan.yaml").write_text(PLAN.format(entries=ENTRY.format(name=name, precision="fp32", batch=1)))
    status = main(["validate", "plan.yaml"])
    said = capsys.readouterr().err
    assert status in (0, 2)
    assert (status == 0) == (name in RUN or name in NOT_TAKEN)
    assert main(["expand", "plan.yaml"]) == status
    if status == 2:
        assert said.startswith("plan.yaml:6:")
        assert said.rstrip().endswith(")"), "the hint"
        assert len(said.strip().splitlines()) == 1
        assert main(["run", "plan.yaml", "--dry-run"]) == 2
        assert not Path("results").exists()


@pytest.mark.parametrize("name", ["custom-operator", "opset-unknown", "node-named-twice", "types-do-not-fit"])
def test_what_only_the_runtime_tells_is_known_before_the_first_run(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(name, tmp_path / name)
    Path("plan.yaml").write_text(PLAN.format(entries=ENTRY.format(name=name, precision="[fp32, int8]", batch=1)))
    for words in (["run", "plan.yaml", "--dry-run"], ["run", "plan.yaml"]):
        assert main(words) == 2
        (error,) = capsys.readouterr().err.splitlines()
        assert error.startswith("plan.yaml:6:")
        assert f": `model`: {name}/model.onnx" in error
        assert error.endswith(")"), "the hint"
        assert not Path("results").exists()


def test_weights_that_do_not_fit_have_their_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.chdir(tmp_path)
    torch.save({"fc.weight": torch.zeros(3, 3)}, tmp_path / "mine.pt")
    entry = "  - {workload: infer, model: digits-cnn, runtime: torch,\n     checkpoint: mine.pt}\n"
    Path("plan.yaml").write_text(f"schema_version: 1\nname: test\nmatrix:\n{entry}")
    said = "`checkpoint`: mine.pt does not fit digits-cnn"
    assert main(["run", "plan.yaml", "--dry-run"]) == 2
    assert capsys.readouterr().err.startswith(f"plan.yaml:5:18: {said}")
    assert main(["run", "plan.yaml", "--dry-run", "--set", "matrix.0.checkpoint=./mine.pt"]) == 2
    assert f"--set matrix.0.checkpoint=./mine.pt: {said}" in capsys.readouterr().err


def test_a_file_that_a_runtime_does_not_take_leaves_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = ("plain", "custom-operator")
    entries = [ENTRY.format(name=name, precision="fp32", batch=1) for name in names if write(name, tmp_path / name)]
    Path("plan.yaml").write_text(PLAN.format(entries="\n".join(entries)))
    assert main(["run", "plan.yaml", "--dry-run"]) == 0
    assert "[unsupported: " in capsys.readouterr().out
    assert main(["run", "plan.yaml"]) == 0
    assert "1 ok, 1 unsupported of 2 runs" in capsys.readouterr().out


def test_a_campaign_continues_where_only_refused_cases_are_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write("custom-operator", tmp_path / "custom-operator")
    refused = ENTRY.format(name="custom-operator", precision="fp32", batch=1)
    Path("plan.yaml").write_text(PLAN.format(entries=f"{refused}\n  - {{workload: noop}}"))
    assert main(["run", "plan.yaml", "--filter", "workload=noop"]) == 0
    capsys.readouterr()
    assert main(["run", "plan.yaml"]) == 0
    assert "1 ok, 1 unsupported of 2 runs" in capsys.readouterr().out


def test_a_campaign_does_not_go_on_with_a_file_that_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    entries = [ENTRY.format(name=name, precision="fp32", batch=1) for name in ("one", "other")]
    one = write("plain", tmp_path / "one")
    write("output-without-shape", tmp_path / "other")
    Path("plan.yaml").write_text(PLAN.format(entries="\n".join(entries)))
    started = ["run", "plan.yaml", "--repetitions", "2", "--shard", "1/2"]
    assert main(started) == 0, capsys.readouterr().err
    (folder,) = Path("results").iterdir()
    content = one.read_bytes()
    one.write_bytes((tmp_path / "other/model.onnx").read_bytes())
    runs = sorted(folder.glob("runs/*/*/*"))
    capsys.readouterr()
    for more in ([], ["--dry-run"], ["--artefacts-only"]):
        assert main(["run", str(folder), *more]) == 2
        error, hint = capsys.readouterr().err.splitlines()
        assert error == f"error: {one} has changed since the plan was read"
        assert hint.startswith("  hint: give the plan's file")
    assert sorted(folder.glob("runs/*/*/*")) == runs
    assert main(["run", str(folder), "--shard", "1/2", "--whole-blocks"]) == 0, "nothing is left to do in this block"
    assert main(["run", str(folder), "--filter", "model=other/model.onnx"]) == 0, "a file that did not change"
    one.write_bytes(content)
    assert main(["run", str(folder)]) == 0
