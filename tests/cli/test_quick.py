# SPDX-License-Identifier: Apache-2.0
"""`pybench quick` with onnxruntime on the CPU: a verdict, a plan that runs, and what cannot be measured."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from pybench.analysis.statistics.estimate import Sample
from pybench.analysis.statistics.intervals import estimate_geometric_mean
from pybench.cli import main
from pybench.cli.quick import interval_text
from pybench.launcher import Launcher
from pybench.machine.asking import ask_worker
from pybench.plan import load_plan
from pybench.runner.process import WorkerEnd
from tests.support.onnx_files import write
from tests.support.onnx_models import model

pytestmark = pytest.mark.usefixtures("ready_workers")

ONLY = ("--runtime", "onnxruntime")  # whatever other runtimes are installed


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def large(path: Path, side: int = 1024, layers: int = 3) -> Path:
    """Matrix products that are large enough for a batch to matter."""
    weights = {f"w{i}": np.eye(side, dtype=np.float32) for i in range(layers)}
    names = ["x", *(f"h{i}" for i in range(layers))]
    nodes = [helper.make_node("MatMul", [names[i], f"w{i}"], [names[i + 1]], name=f"m{i}") for i in range(layers)]
    onnx.save(model(nodes, [("x", 1, ["n", side])], [(names[-1], 1, ["n", side])], weights), path)
    return path


def quick(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["quick", *words, *ONLY, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


TINY_GPT2 = {"model_type": "gpt2", "n_layer": 1, "n_head": 2, "n_embd": 16, "vocab_size": 100, "n_positions": 128}


@pytest.mark.slow
def test_a_file_is_measured_until_it_is_decided(capsys: pytest.CaptureFixture[str]) -> None:
    path = write("torch-by-tracing", Path("models"))
    found = quick(capsys, str(path), "--minutes", "1.5", "--batch", "2")
    assert {(row["runtime"], row["provider"], row["precision"]) for row in found["cases"]} == {
        ("onnxruntime", "cpu", "fp32"), ("onnxruntime", "cpu", "int8"),
    }  # fmt: skip
    assert found["blocks"] >= 3
    assert found["stopped_by"] in ("decided", "time", "looks")
    assert found["is_decided"] == (found["stopped_by"] == "decided")
    for row in found["cases"]:
        assert row["latency_ms"]["value"] > 0
        assert row["latency_ms"]["n"] == found["blocks"]
        assert row["throughput_samples_per_s"]["value"] > 0
    int8 = next(row for row in found["cases"] if row["precision"] == "int8")
    assert int8["against_fp32_relative_error"] < 0.5
    assert Path(found["report"]).is_file()
    plan = load_plan(found["plan"])
    assert plan.repetitions.usual == found["blocks"]
    assert {case.id for case in plan.cases} == {row["case_id"] for row in found["cases"]}
    assert main(["check", found["directory"]]) == 0
    capsys.readouterr()
    assert main(["run", "quick-model.yaml", "--repetitions", str(found["blocks"] + 1)]) == 0  # the next step, shorter
    assert f"{2 * (found['blocks'] + 1)} ok" in capsys.readouterr().out


@pytest.mark.slow
def test_the_text_has_a_table_a_sentence_and_the_next_step_and_again_counts_what_is_there(
    capsys: pytest.CaptureFixture[str],
) -> None:
    large(Path("large.onnx"))
    words = ("large.onnx", "--precision", "fp32", "--batch", "1", "--minutes", "1")
    assert main(["quick", *words, *ONLY]) == 0
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert lines[0].split()[:4] == ["batch", "runtime", "precision", "ms"]
    assert lines[1].split()[:4] == ["1", "onnxruntime", "(cpu)", "fp32"]
    assert "is the only one that runs" in said.out  # so that it is decided
    assert lines[-1] == "next:   pybench run quick-large.yaml --repetitions 30"
    assert "first look: one pass of the file takes about" in said.err
    assert "block 1  fp32 on onnxruntime (cpu), batch 1: " in said.err
    done = set(Path("results/quick-large/runs").glob("*/*/attempt-*/complete"))
    again = quick(capsys, *words)
    assert (again["blocks"], again["is_decided"]) == (3, True)
    assert set(Path("results/quick-large/runs").glob("*/*/attempt-*/complete")) == done


def test_another_plan_is_never_overwritten(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    write("plain", Path())
    Path("quick.yaml").write_text("schema_version: 1\nname: mine\nmatrix: [{workload: noop}]\n")
    monkeypatch.setattr("pybench.cli.quick.find_candidates", lambda *_: pytest.fail("it probes before it refuses"))
    assert main(["quick", "model.onnx", "--plan", "quick.yaml"]) == 2
    said = capsys.readouterr().err
    assert "error: quick.yaml exists and is another plan" in said
    assert "--plan" in said
    assert "mine" in Path("quick.yaml").read_text()
    assert not Path("results").exists()


@pytest.mark.slow
def test_other_models_and_other_options_have_plans_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    write("plain", Path())
    write("plain", Path("other"))
    words = ("--precision", "fp32", "--minutes", "0.01")
    asked = [("model.onnx", "1"), ("model.onnx", "2"), ("other/model.onnx", "1"), ("model.onnx", "1")]
    found = [quick(capsys, model, "--batch", batch, *words) for model, batch in asked]
    assert [each["plan"] for each in found] == [
        "quick-model.yaml", "quick-model-2.yaml", "quick-model-3.yaml", "quick-model.yaml",
    ]  # fmt: skip
    assert found[1]["directory"] == "results/quick-model-2"
    assert found[1]["next"] == "pybench run quick-model-2.yaml --repetitions 30"


def test_two_runs_have_no_interval_that_is_worth_printing() -> None:
    estimates = [estimate_geometric_mean(Sample.of(values)) for values in ([1.0], [1.0, 1.2], [1.0, 1.2, 1.1])]
    assert [interval_text(one) for one in estimates[:2]] == ["-", "(2 runs)"]
    assert re.fullmatch(r"0\.8\d* to 1\.3\d*", interval_text(estimates[2]))
    assert interval_text(None) == "-"


def test_no_time_is_no_verdict_but_an_answer(capsys: pytest.CaptureFixture[str]) -> None:
    large(Path("large.onnx"))
    found = quick(capsys, "large.onnx", "--minutes", "0.05")
    assert not found["is_decided"]
    assert found["stopped_by"] == "time"
    assert found["verdict"].startswith("Not decided: the time was over")


def end_at_the_first_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is over then, however fast the machine is."""
    monkeypatch.setattr("pybench.quick.rounds.time", SimpleNamespace(monotonic=lambda: time.monotonic() + 60))


def test_the_first_number_waits_for_nothing_that_it_does_not_need(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """FP32 at the smallest batch is first, before anything is converted; no framework is asked for twice."""
    asked: list[str] = []

    def ask(launcher: Launcher, question: Sequence[str], what: str, **how: Any) -> dict[str, Any]:
        asked.extend(question[1].split(",") if question[0] == "--probe" else ())
        return ask_worker(launcher, question, what, **how)

    monkeypatch.setattr("pybench.machine.facts.ask_worker", ask)
    end_at_the_first_number(monkeypatch)
    large(Path("large.onnx"))
    words = ["quick", "large.onnx", "--minutes", "0.01", "--batch", "16", "--batch", "2", "--batch", "4"]
    assert main([*words, "--json"]) == 0
    said = capsys.readouterr()
    measured = [row for row in json.loads(said.out)["cases"] if row["latency_ms"] is not None]
    assert [(row["precision"], row["batch"]) for row in measured] == [("fp32", 2)]
    assert "making" not in said.err
    assert not any(Path("results/quick-large/artefacts").iterdir())
    assert len(asked) == len(set(asked)) > 1


def test_a_built_in_model_has_a_first_number_before_it_is_exported(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    end_at_the_first_number(monkeypatch)
    assert main(["quick", "mlp", "--minutes", "0.01", "--json"]) == 0
    said = capsys.readouterr()
    lines = said.err.splitlines()
    (look,) = [
        index for index, line in enumerate(lines) if re.match(r"first look: one pass of mlp in torch .* ms", line)
    ]
    making = [index for index, line in enumerate(lines) if line.startswith("making ")]
    assert [lines[index] for index in making] == ["making onnx mlp"]
    assert look < making[0]
    measured = [row for row in json.loads(said.out)["cases"] if row["latency_ms"] is not None]
    assert [(row["precision"], row["batch"]) for row in measured] == [("fp32", 1)]


def test_a_model_of_a_library_is_looked_at_before_it_is_exported(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("transformers")
    Path("mine").mkdir()
    Path("mine/config.json").write_text(json.dumps(TINY_GPT2))
    words = ["quick", "mine", "--runtime", "onnxruntime", "--precision", "fp32", "--batch", "1", "--minutes", "0.01"]
    assert main([*words, "--json"]) == 0
    said = capsys.readouterr()
    assert re.search(r"first look: one pass of mine/config.json in torch .* ms", said.err)
    (row,) = json.loads(said.out)["cases"]
    assert row["latency_ms"]["value"] > 0
    assert 'model: "mine/config.json"' in Path("quick-mine.yaml").read_text()


def test_a_model_that_its_library_does_not_have_is_one_error(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("timm")
    assert main(["quick", "timm/resnet19"]) == 2
    assert "error: timm/resnet19: timm has no model 'resnet19'\n  hint: did you mean timm/resnet18" in (
        capsys.readouterr().err
    )
    assert not list(Path().glob("*.yaml"))


def test_a_file_in_fp16_is_measured_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    path = write("fp16-weights-and-input", Path())
    found = quick(capsys, str(path), "--batch", "64", "--minutes", "0.01")
    (row,) = found["cases"]
    assert row["latency_ms"]["value"] > 0
    assert row["throughput_samples_per_s"]["value"] == pytest.approx(64_000 / row["latency_ms"]["value"])


def test_a_file_in_fp16_is_called_fp32_only_where_no_fp16_runs(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("openvino")
    from pybench.runtimes.openvino import cpu_types

    of_openvino, other = ("fp16", "fp32") if "fp16" in cpu_types() else ("fp32", "fp16")
    w = np.ones((8, 8), np.float16)
    nodes = [onnx.helper.make_node("MatMul", ["x", "w"], ["y"])]
    fed, written = (("x", onnx.TensorProto.FLOAT16, [2, 8]), ("y", onnx.TensorProto.FLOAT16, [2, 8]))
    onnx.save(model(nodes, [fed], [written], {"w": w}), "half.onnx")
    found = quick(capsys, "half.onnx", "--batch", "2", "--minutes", "0.01", "--runtime", "openvino")
    called = {(row["runtime"], row["precision"]) for row in found["cases"]}
    assert called >= {("onnxruntime", "fp32"), ("openvino", of_openvino)}
    assert ("openvino", other) not in called


def test_a_file_in_fp16_takes_arrays(capsys: pytest.CaptureFixture[str]) -> None:
    path = write("fp16-weights-and-input", Path())
    (taken,) = onnx.load(path).graph.input
    sizes = [size.dim_value or 2 for size in taken.type.tensor_type.shape.dim]
    np.savez("a.npz", **{taken.name: np.ones(sizes, np.float16)})
    assert quick(capsys, str(path), "--input", "a.npz", "--minutes", "0.01")["cases"][0]["latency_ms"]["value"] > 0


def test_what_fails_is_named_and_the_rest_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    """The file says that any batch goes, and reshapes to one."""
    path = write("sizes-fixed-inside", Path())
    found = quick(capsys, str(path), "--minutes", "0.01")
    rows = {(row["precision"], row["batch"]): row for row in found["cases"]}
    assert any(row["latency_ms"] for (_, batch), row in rows.items() if batch == 1)
    assert rows["fp32", 8]["latency_ms"] is None


def test_a_crash_is_told_with_its_log_and_repeated_by_the_same_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write("plain", Path())
    words = ("--precision", "fp32", "--batch", "1", "--minutes", "0.01")
    report = {"outcome": "crashed", "reason": "ModuleNotFoundError", "detail": "No module named 'pybench.gone'"}

    def crash(launcher: Launcher, arguments: Sequence[str], folder: Path, *_: Any) -> WorkerEnd:
        (folder / "stderr.log").touch()
        return WorkerEnd(1, None, report, None, "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", 1.0, None)

    with monkeypatch.context() as broken:
        broken.setattr("pybench.runner.attempt.run_worker", crash)
        assert main(["quick", str(path), *words, *ONLY]) == 2
    said = capsys.readouterr().err
    assert "error: model.onnx cannot be measured here: crashed: No module named 'pybench.gone'" in said
    (log,) = Path("results/quick-model/runs").glob("*/*/*/stderr.log")
    assert f"hint: read {log}; the same command repeats runs that crashed" in said
    found = quick(capsys, str(path), *words)
    assert [(row["failed"], row["failures"]) for row in found["cases"]] == [(None, [])]


def test_a_file_that_no_plan_may_rewrite_is_measured_at_its_own_batch(capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [
        helper.make_node("ReduceMean", ["boxes"], ["middle"], axes=[0], keepdims=1),
        helper.make_node("Add", ["x", "middle"], ["y"]),
    ]
    onnx.save(model(nodes, [("x", 1, [8, 3]), ("boxes", 1, [4, 3])], [("y", 1, [8, 3])], opset=17), "boxes.onnx")
    quick(capsys, "boxes.onnx", "--precision", "fp32", "--minutes", "0.05", "--plan", "boxes.yaml")
    assert [(case.batch, case.fixed_batch) for case in load_plan("boxes.yaml").cases] == [(8, None)]


def test_a_fixed_batch_and_a_larger_one_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    path = write("fixed-batch", Path())
    found = quick(capsys, str(path), "--precision", "fp32", "--batch", "8", "--minutes", "0.01")
    assert [(row["batch"], row["latency_ms"] is not None) for row in found["cases"]] == [(8, True)]
    quick(capsys, str(path), "--precision", "fp32", "--minutes", "0.01", "--plan", "two.yaml", "--out", "two")
    assert [(case.batch, case.fixed_batch) for case in load_plan("two.yaml").cases] == [(1, None), (8, 1)]


@pytest.mark.parametrize("batches", [("1", "8"), ("8", "1"), ("8",)])
def test_each_batch_that_is_asked_for_is_judged(capsys: pytest.CaptureFixture[str], batches: tuple[str, ...]) -> None:
    nodes = [helper.make_node("Reshape", ["x", "sizes"], ["y"], name="fold")]
    content = model(nodes, [("x", 1, [1, 12])], [("y", 1, [3, 4])], {"sizes": np.array([3, 4])})
    onnx.save(content, "model.onnx")
    assert main(["quick", "model.onnx", *(word for batch in batches for word in ("--batch", batch))]) == 2
    said = capsys.readouterr().err
    assert "error: --batch 8: model.onnx: its batch is fixed at 1, and cannot be 8: the node fold (Reshape) " in said
    assert "hint: give --batch 1, or export the model with its batch free" in said
    assert not list(Path().glob("*.yaml"))


def test_arrays_are_fed(capsys: pytest.CaptureFixture[str]) -> None:
    path = write("plain", Path())
    np.savez("a.npz", x=np.ones((3, 12), np.float32))
    found = quick(capsys, str(path), "--input", "a.npz", "--precision", "fp32", "--minutes", "0.01")
    assert [(row["batch"], row["latency_ms"] is not None) for row in found["cases"]] == [(3, True)]
    (case,) = load_plan("quick-model.yaml").cases
    assert (case.batch, case.inputs) == (3, "a.npz")


@pytest.mark.parametrize(
    ("array", "words", "said"),
    [
        (np.ones((3, 12)), (), "--input a.npz: x is float64, the model takes float32"),
        (np.ones((3, 11), np.float32), (), "--input a.npz: x is [3, 11], this case feeds [3, 12]"),
        (np.full((3, 12), np.nan, np.float32), (), "--input a.npz: x is not finite: of its 36 numbers are 36 NaN"),
        (np.ones((3, 12), np.float32), ("--batch", "2"), "--batch 2: a.npz has 3 samples"),
    ],
)
def test_arrays_that_do_not_fit_are_told(
    capsys: pytest.CaptureFixture[str], array: Any, words: tuple[str, ...], said: str
) -> None:
    path = write("plain", Path())
    np.savez("a.npz", x=array)
    assert main(["quick", str(path), "--input", "a.npz", *words]) == 2
    assert f"error: {said}" in capsys.readouterr().err
    assert not list(Path().glob("*.yaml"))


def test_free_sizes_run_and_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    path = write("free-height-and-width", Path())
    assert main(["quick", str(path), "--shape", "x.height=16", "--precision", "fp32", "--batch", "1", *ONLY,
                 "--minutes", "0.01"]) == 0  # fmt: skip
    assert "x.width is free: 224 is taken (--shape x.width=N states another)" in capsys.readouterr().err
    (case,) = load_plan("quick-model.yaml").cases
    assert case.shapes == "x.height=16,x.width=224"


def test_sizes_that_no_runtime_takes_end_the_command_at_the_first_look(capsys: pytest.CaptureFixture[str]) -> None:
    path = write("free-height-and-width", Path())
    assert main(["quick", str(path), "--shape", "x.height=1", "--shape", "x.width=16"]) == 2
    said = capsys.readouterr().err
    assert "error: model.onnx does not run on these inputs (" in said
    assert said.endswith("hint: fed were x.height=1,x.width=16: state other sizes with --shape\n")
    assert not Path("results").exists()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("empty", "model.onnx: it is empty"),
        ("truncated", "it is not an ONNX file"),
        ("external-data-missing", "there is no such file"),
        ("custom-operator", "Frobnicate(-1) is not a registered function/op"),
        ("types-do-not-fit", "is not a runnable ONNX model"),
        ("sizes-do-not-fit", "model.onnx"),
    ],
)
def test_a_file_that_cannot_be_measured_is_one_error(name: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    write(name, Path())
    assert main(["quick", "model.onnx"]) == 2
    lines = capsys.readouterr().err.splitlines()
    (error,) = [line for line in lines if line.startswith("error: ")]
    assert said in error
    assert not list(Path().glob("*.yaml"))
    assert not Path("results").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["resnet51"], "error: resnet51: no such file"),
        (["model.onnx", "--runtime", "tensorr"], "error: --runtime tensorr: there is none of that name"),
        (["model.onnx", "--precision", "int7"], "error: --precision int7: there is none of that name"),
        (["model.onnx", "--precision", "fp8"], "error: model.onnx cannot be measured here"),
        (["model.onnx", "--shape", "x.1=5"], "error: --shape: x.1 is 12 in the file"),
    ],
)
def test_a_wrong_wish_is_one_error(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    write("plain", Path())
    assert main(["quick", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_built_in_model_without_torch_is_told_what_to_install() -> None:
    absent = Path("absent") / "torch"
    absent.mkdir(parents=True)
    (absent / "__init__.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n")
    without = {**os.environ, "PYTHONPATH": str(absent.parent.absolute())}
    words = [sys.executable, "-m", "pybench.cli", "quick", "resnet50"]
    done = subprocess.run(words, env=without, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "hint: install pybench-campaign[torch]" in done.stderr


@pytest.mark.slow
def test_ctrl_c_leaves_a_campaign_that_continues(capsys: pytest.CaptureFixture[str]) -> None:
    large(Path("large.onnx"))
    words = ["quick", "large.onnx", "--precision", "fp32", "--minutes", "1"]
    with subprocess.Popen([sys.executable, "-m", "pybench.cli", *words], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("block 1"):
                process.send_signal(signal.SIGINT)
                break
        rest = process.stderr.read()
        assert process.wait(60) == 130
    assert "interrupted" in rest
    done = set(Path("results/quick-large/runs").glob("*/*/attempt-*/complete"))
    assert done
    assert main([*words[:-1], "0.1"]) == 0
    capsys.readouterr()
    assert done <= set(Path("results/quick-large/runs").glob("*/*/attempt-*/complete"))
