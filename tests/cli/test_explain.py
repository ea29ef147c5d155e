# SPDX-License-Identifier: Apache-2.0
"""`explain` as a user meets it: of a campaign that ran here on a CPU, of recorded engines, and what it refuses."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest

from pybench.cli import main
from pybench.dataset import load
from pybench.errors import EXIT_USAGE
from pybench.plan import load_plan
from tests.analysis.findings.test_explanation import engines
from tests.kernels.test_engine import recorded

ROOT = Path(__file__).parents[2]

PLAN = """\
schema_version: 1
name: own
seed: 3
repetitions: 2
defaults: {warmup_iterations: 2, iterations: 20, energy_window_s: 0, idle_window_s: 0}
matrix:
  - {workload: infer, model: model.onnx, runtime: onnxruntime, provider: cpu, precision: [fp32, int8], threads: 1}
"""


def write_convolutions(path: Path) -> None:
    """[batch, 3, 32, 32] through three convolutions with Relu, one of them with a residual sum, to ten scores."""
    from onnx import TensorProto, checker, helper, numpy_helper, save

    random = np.random.default_rng(7)
    shapes = {"w1": (16, 3, 3, 3), "w2": (16, 16, 3, 3), "w3": (16, 16, 3, 3), "w4": (16, 10)}
    weights = {name: random.normal(0, 0.2, shape).astype(np.float32) for name, shape in shapes.items()}
    pads = {"pads": [1, 1, 1, 1]}
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["pictures", "w1"], ["a"], name="first", **pads),
            helper.make_node("Relu", ["a"], ["b"], name="first_relu"),
            helper.make_node("Conv", ["b", "w2"], ["c"], name="second", **pads),
            helper.make_node("Relu", ["c"], ["d"], name="second_relu"),
            helper.make_node("Conv", ["d", "w3"], ["e"], name="third", **pads),
            helper.make_node("Add", ["e", "b"], ["f"], name="residual"),
            helper.make_node("GlobalAveragePool", ["f"], ["g"], name="pool"),
            helper.make_node("Flatten", ["g"], ["h"], name="flat"),
            helper.make_node("MatMul", ["h", "w4"], ["scores"], name="product"),
        ],
        "convolutions",
        [helper.make_tensor_value_info("pictures", TensorProto.FLOAT, ["batch", 3, 32, 32])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", 10])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    checker.check_model(model)
    save(model, path)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign of int8 against fp32 that ran on this CPU."""
    folder = tmp_path_factory.mktemp("ran")
    write_convolutions(folder / "model.onnx")
    (folder / "plan.yaml").write_text(PLAN)
    assert main(["run", str(folder / "plan.yaml"), "--out", str(folder / "c")]) == 0
    return folder / "c"


def ids(campaign: Path) -> dict[str, str]:
    return {case.precision: case.id for case in load(campaign).plan.cases}


def test_the_difference_of_int8_and_fp32_is_assigned_to_nodes(ran: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = ids(ran)
    capsys.readouterr()
    assert main(["explain", str(ran), cases["int8"][:12], cases["fp32"][:12], "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["has_times"] is True
    assert {one["name"] for one in told["cases"]} == {"fp32", "int8"}
    assert all(one["profiled_ms"] > 0 and one["latency_mean_ms"] > 0 for one in told["cases"])
    assert all(side["assigned_ratio"] >= 0.95 for side in told["not_assigned"])
    rows = {node: row for row in told["rows"] for node in row["nodes"]}
    assert {"first", "second", "third", "product"} <= set(rows)
    both = [kernel["computes_in"] for side in rows["second"]["sides"] for kernel in side["kernels"]]
    assert set(both) == {"fp32", "int8"}
    works = {kernel["work"] for row in told["rows"] for side in row["sides"] for kernel in side["around"]}
    assert "quantising" in works, "what quantises the input stands with the node that it feeds"
    slower, faster = told["cases"]
    loss = sum(share["excess_ms"] for share in told["work"])
    assert loss == pytest.approx(slower["profiled_ms"] - faster["profiled_ms"])
    assert loss == pytest.approx(told["profiled_loss_ms"])


def test_a_terminal_gets_sentences_and_tables(ran: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = ids(ran)
    capsys.readouterr()
    assert main(["explain", str(ran), cases["int8"], cases["fp32"], "--rows", "2"]) == 0
    printed = capsys.readouterr().out
    assert "Unprofiled, an iteration of " in printed
    assert "Profiles are made after every window, " in printed
    assert "Assigned to nodes:" in printed
    assert "ONNX nodes, the costliest first" in printed
    assert "more rows" in printed
    assert "not assigned" in printed
    assert "QLinearConv in int8" in printed or "Conv in fp32" in printed


def test_every_run_stores_its_profile_outside_of_every_window(ran: Path) -> None:
    dataset = load(ran)
    for folder in dataset.runs["folder"]:
        stored = json.loads((ran / folder / "profile.json").read_text())
        assert stored["schema_version"] == 1
        assert "after every window" in stored["method"]
        summary = json.loads((ran / folder / "summary.json").read_text())
        assert summary["labels"]["profile"] == stored["method"]
        assert 0 < summary["metrics"]["multiplying_time_ratio"]["value"] < 1
        assert summary["metrics"]["kernels_count"]["value"] == len(stored["kernels"])
        assert "profile.json" in (ran / folder / "complete").read_text()


@pytest.mark.parametrize("name", ["zz", ""])
def test_a_case_that_there_is_not_is_one_error(ran: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["explain", str(ran), name, ids(ran)["fp32"]]) == EXIT_USAGE
    printed = capsys.readouterr()
    assert "fits no case of the plan" in printed.err
    assert f"hint: `pybench status {ran}` lists cases with their ids" in printed.err
    assert main(["status", str(ran)]) == 0
    assert ids(ran)["fp32"][:12] in capsys.readouterr().out
    capsys.readouterr()
    assert printed.out == ""


def long_engine(name: str, copies: int) -> str:
    """A recorded engine many times over, one copy behind the other."""
    layers = []
    for number in range(copies):
        for layer in json.loads(recorded(name))["Layers"]:
            tensors = [*layer["Inputs"], *layer["Outputs"]]
            for tensor in tensors:
                tensor["Name"] = f"{number}/{tensor['Name']}"
            nodes = layer["Metadata"].replace("[ONNX Layer: ", f"[ONNX Layer: {number}")
            layers.append({**layer, "Name": f"{number}/{layer['Name']}", "Metadata": nodes})
    return json.dumps({"Layers": layers})


@pytest.mark.timing
def test_eight_times_as_many_layers_are_explained_in_about_eight_times_the_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("int8+fp16-residual", "fp8-residual")
    builder, cases = engines(tmp_path / "c", int8_fp16=names[0], fp8_fp16=names[1])

    def cpu_s(copies: int) -> float:
        for case, name in zip(cases, names, strict=True):
            (builder.path / "artefacts" / case.id / "layers.json").write_text(long_engine(name, copies))
        begin = time.thread_time()
        assert main(["explain", str(builder.path), cases[0].id, cases[1].id, "--json"]) == 0
        taken_s = time.thread_time() - begin
        assert len(json.loads(capsys.readouterr().out)["rows"]) >= copies * 54
        return taken_s

    cpu_s(1)  # imports
    short, long = (min(cpu_s(copies) for _ in range(2)) for copies in (2, 16))
    assert long < 24 * short  # every pair of layers would take sixty-four times


def test_recorded_engines_are_explained_without_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    builder, cases = engines(tmp_path / "c", int8_fp16="int8+fp16-residual", fp8_fp16="fp8-residual")
    assert main(["explain", str(builder.path), *(case.title() for case in cases), "--rows", "0"]) == 0
    printed = capsys.readouterr().out
    assert "Times of kernels are absent: the profile of int8+fp16 and that of fp8+fp16 have none." in printed
    assert "Kernels that move constants: 47 of 106 in int8+fp16, 0 of 74 in fp8+fp16." in printed
    assert "ONNX nodes, in the order of execution" in printed
    assert printed.count("moves constants") == 47


def test_the_chapter_names_cases_of_the_first_plan() -> None:
    said = (ROOT / "docs/user/explain.md").read_text(encoding="utf-8")
    *_, first, second = next(line for line in said.splitlines() if line.startswith("pybench explain ")).split()
    meant = [case for case in load_plan(ROOT / "plans/quickstart.yaml").cases if case.id[:12] in (first, second)]
    assert [(case.model, case.precision) for case in meant] == [("resnet50", "fp32"), ("resnet50", "int8")]
