# SPDX-License-Identifier: Apache-2.0
"""What an ONNX file tells is a problem of the plan, with the place in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from pybench.onnx_file.graph import read_model
from pybench.plan import Plan
from tests.support.onnx_files import write
from tests.support.onnx_models import model, save_lengths

Load = Callable[..., Plan]
Problems = Callable[..., list[str]]


def entry(precision: str = "fp32", batch: str = "[1, 2]", runtime: str = "onnxruntime") -> str:
    return f"""\
  - workload: infer
    model: model.onnx
    runtime: {runtime}
    precision: {precision}
    batch: {batch}
"""


def test_a_file_that_no_runtime_runs_is_one_problem_at_its_name(tmp_path: Path, problems: Problems) -> None:
    write("dangling", tmp_path)
    (said,) = problems(entry())
    assert said.startswith("5:12: `model`: model.onnx: the node sum (Add) reads nowhere, which nothing writes (export")


def test_a_fixed_batch_is_rewritten_for_each_other_batch(tmp_path: Path, load: Load) -> None:
    write("fixed-batch", tmp_path)
    cases = load(entry(batch="[1, 2, 4]")).cases
    assert [(case.batch, case.fixed_batch) for case in cases] == [(1, None), (2, 1), (4, 1)]
    assert cases[0].id == load(entry(batch="1")).cases[0].id
    assert load(entry(batch="[1, 2]").rstrip() + "\n    fixed_batch: 1\n").cases == cases[:2]


def test_a_node_that_keeps_the_batch_is_a_problem_of_each_other_batch(tmp_path: Path, problems: Problems) -> None:
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"], name="fold")]
    inputs, outputs = [("x", TensorProto.FLOAT, (1, 3, 4))], [("y", TensorProto.FLOAT, None)]
    onnx.save(model(nodes, inputs, outputs, {"shape": np.array([3, 4])}), tmp_path / "model.onnx")
    assert problems(entry(batch="[1, 2, 4]")) == [
        f"8:{column}: `batch`: model.onnx: its batch is fixed at 1, and cannot be {batch}: the node fold (Reshape) "
        "reshapes to [3, 4], a constant number of elements (set batch: 1, or export the model with its batch free)"
        for column, batch in ((16, 2), (19, 4))
    ]


def test_a_fixed_batch_that_is_none_is_a_problem(tmp_path: Path, problems: Problems) -> None:
    write("fixed-batch", tmp_path)
    (said,) = problems(entry(batch="2").rstrip() + "\n    fixed_batch: 3\n")
    assert (
        "`fixed_batch`: model.onnx: its batch is fixed at 1, and `fixed_batch` is 3 (leave `fixed_batch` out)" in said
    )
    write("plain", tmp_path)
    (said,) = problems(entry(batch="2").rstrip() + "\n    fixed_batch: 1\n")
    assert "it takes batch 2 as it is, and `fixed_batch` is 1" in said


def test_seq_len_sets_no_fixed_lengths_that_differ(tmp_path: Path, problems: Problems, load: Load) -> None:
    save_lengths(tmp_path / "model.onnx", 50, 1)
    assert [case.seq_len for case in load(entry(batch="1")).cases] == [128]
    (said,) = problems(entry() + "    seq_len: 50\n")
    assert said.startswith("9:5: `seq_len` changes nothing in this entry")
    save_lengths(tmp_path / "model.onnx", 1, "steps")
    assert [case.seq_len for case in load(entry(batch="1") + "    seq_len: [8, 16]\n").cases] == [8, 16]


def test_a_sequence_that_no_input_of_the_file_has_makes_no_second_case(
    tmp_path: Path, problems: Problems, load: Load
) -> None:
    write("plain", tmp_path)
    told = "9:5: `seq_len` changes nothing in this entry (it sets the second dimension of token ids, and no input"
    (said,) = problems(entry() + "    seq_len: [16, 32]\n")
    assert said.startswith(told)
    mixed = entry(batch="1").replace("model.onnx", "[model.onnx, distilbert]") + "    seq_len: [16, 32]\n"
    cases = load(mixed).cases
    assert [(case.model, case.seq_len) for case in cases] == [
        ("model.onnx", 128),
        ("distilbert", 16),
        ("distilbert", 32),
    ]
    assert cases[0].id == load(entry(batch="1")).cases[0].id


@pytest.mark.parametrize(
    "name", ["free-height-and-width", "string-input", "no-inputs", "unranked-input", "sequence-output", "string-output"]
)
def test_what_no_case_feeds_is_one_problem(tmp_path: Path, problems: Problems, name: str) -> None:
    write(name, tmp_path)
    (said,) = problems(entry())
    assert said.startswith("5:12: `model`: model.onnx: ")


def test_lower_precisions_are_made_of_fp32(tmp_path: Path, problems: Problems, load: Load) -> None:
    write("fp16-weights-and-input", tmp_path)
    wanted = "it multiplies in fp16, and lower precisions are made of FP32 (export the model in FP32)"
    assert problems(entry("[fp32, int8, bf16, fp16]", "1")) == [
        f"7:{column}: `precision`: model.onnx: {wanted}" for column in (23, 29)
    ]
    assert len(load(entry("[fp32, fp16]")).cases) == 4
    write("quantised-to-qdq", tmp_path)
    assert len(load(entry("[fp32, int8]")).cases) == 4


@pytest.mark.parametrize("kind", ["fp16", "bf16"])
@pytest.mark.parametrize(
    ("runtime", "where", "precision"),
    [
        ("onnxruntime", "    device: cuda\n", "fp32"),
        ("onnxruntime", "    provider: cuda\n", "tf32"),
        ("tensorrt", "", "tf32"),
    ],
)
def test_a_file_in_a_lower_precision_is_not_fp32(
    tmp_path: Path, problems: Problems, load: Load, kind: str, runtime: str, where: str, precision: str
) -> None:
    write(f"{kind}-weights-and-input", tmp_path)
    wanted = f"all its weights are {kind}, and it multiplies in {kind}, not in {precision}"
    (said,) = problems(entry(f"[{precision}, {kind}]", "1", runtime) + where)
    hint = f"(use precision: {kind}, or export the model in FP32)"
    assert said == f"7:17: `precision`: model.onnx: {wanted} {hint}"
    if precision == "fp32":  # without a precision, the model is what does not fit
        (said,) = problems(entry(batch="1", runtime=runtime).replace("    precision: fp32\n", "") + where)
        assert said == f"5:12: `model`: model.onnx: {wanted} {hint}"
    assert len(load(entry(kind, runtime=runtime) + where).cases) == 2


@pytest.mark.parametrize("where", ["provider: cpu", "device: cpu", "device: auto"])
def test_a_runtime_that_may_cast_such_a_file_to_fp32_takes_it(tmp_path: Path, load: Load, where: str) -> None:
    write("fp16-weights-and-input", tmp_path)
    assert len(load(entry() + f"    {where}\n").cases) == 2
    assert len(load(entry(runtime="openvino")).cases) == 2


def halves(more: list[onnx.NodeProto], output: int, **weights: np.ndarray) -> onnx.ModelProto:
    """x [batch, 4] in FP32, cast to `h` in FP16, which `more` makes `y` of."""
    nodes = [helper.make_node("Cast", ["x"], ["h"], to=TensorProto.FLOAT16), *more]
    return model(nodes, [("x", 1, ["batch", 4])], [("y", output, None)], weights)


def test_a_mixed_file_is_taken_as_fp32(tmp_path: Path, load: Load, problems: Problems) -> None:
    path, half, single = tmp_path / "model.onnx", np.eye(4, dtype=np.float16), np.eye(4, dtype=np.float32)
    first, widened = helper.make_node("MatMul", ["h", "w"], ["y"]), helper.make_node("Cast", ["w"], ["s"], to=1)
    onnx.save(halves([first], TensorProto.FLOAT16, w=half), path)
    assert len(problems(entry(batch="1") + "    device: cuda\n")) == 1  # an input in FP32 makes no difference
    onnx.save(halves([first, helper.make_node("MatMul", ["x", "s"], ["z"])], 10, w=half, s=single), path)
    assert len(load(entry() + "    device: cuda\n").cases) == 2  # a weight in FP32
    onnx.save(halves([widened, helper.make_node("MatMul", ["x", "s"], ["y"])], 1, w=half), path)
    assert len(load(entry() + "    device: cuda\n").cases) == 2  # weights are stored in FP16 and multiplied in FP32


@pytest.mark.parametrize(
    ("name", "node"),
    [("if", "node_of_y (If)"), ("loop", "node_of_y (Loop)"), ("local-function-with-if", "node_of_b (If)")],
)
def test_no_lower_precision_is_made_of_graphs_inside_nodes(
    tmp_path: Path, problems: Problems, load: Load, name: str, node: str
) -> None:
    write(name, tmp_path)
    wanted = "has graphs inside, and no lower precision is made of such a file"
    hint = "(run it in fp32, or export the model without If, Loop and Scan)"
    assert problems(entry("[fp32, int8, fp16]", "1")) == [
        f"7:{column}: `precision`: model.onnx: the node {node} {wanted} {hint}" for column in (23, 29)
    ]
    assert len(load(entry()).cases) == 2


def test_torch_takes_no_file_so_its_sizes_are_not_judged(tmp_path: Path, load: Load) -> None:
    write("fixed-batch", tmp_path)
    assert len(load(entry(runtime="torch")).cases) == 2


def test_accuracy_takes_models_of_images(tmp_path: Path, problems: Problems) -> None:
    write("plain", tmp_path)
    said = problems("  - {workload: accuracy, model: model.onnx, runtime: onnxruntime, images: digits}\n")
    assert "it takes x ['batch', 12] float32, not images" in said[0]


def judged(images: str = "synthetic-100") -> str:
    return f"  - {{workload: accuracy, model: model.onnx, runtime: onnxruntime, images: {images}}}\n"


def classifier(path: Path, output: tuple[int | str, ...] | None) -> None:
    """A model of images whose output states this shape."""
    nodes = [helper.make_node("Identity", ["image"], ["scores"])]
    ends = [("image", TensorProto.FLOAT, ("n", 3, 8, 8))], [("scores", TensorProto.FLOAT, output)]
    onnx.save(model(nodes, *ends), path)


@pytest.mark.parametrize("output", [("n", 5, 8, 8), (), ("n",)])
def test_an_output_that_has_no_score_for_each_class_is_not_judged(
    tmp_path: Path, problems: Problems, output: tuple[int | str, ...]
) -> None:
    classifier(tmp_path / "model.onnx", output)
    stated = ", ".join(map(str, output))
    (said,) = problems(judged())
    assert said == (
        "4:33: `model`: model.onnx: classification judges an output of [batch, classes], and scores is "
        f"[{stated}] (export the model with scores of that shape as its first output, or use workload: infer)"
    )


def test_an_output_that_tells_too_few_classes_apart_is_not_judged(tmp_path: Path, problems: Problems) -> None:
    classifier(tmp_path / "model.onnx", ("n", 10))
    (said,) = problems(judged())
    assert said.startswith("4:75: `images`: model.onnx: it tells 10 classes apart, and synthetic-100 has 100 (judge")


@pytest.mark.parametrize("output", [None, ("n", "classes"), ("n", 100), ("n", 1000)])
def test_what_an_output_does_not_state_is_no_problem(
    tmp_path: Path, load: Load, output: tuple[int | str, ...] | None
) -> None:
    classifier(tmp_path / "model.onnx", output)
    assert len(load(judged()).cases) == 1


def kept(expression: str, precision: str = "[int8, fp16]", more: str = "") -> str:
    values = f"workload: infer, model: model.onnx, runtime: tensorrt, precision: {precision}{more}"
    return f"  - {{{values}, keep_fp32: {expression}}}\n"


def test_a_keep_list_that_names_no_node_of_the_file_is_one_problem_at_its_place(
    tmp_path: Path, problems: Problems, load: Load
) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="/stem/Relu"),
        helper.make_node("Constant", [], ["one"], name="/one", value_float=1.0),
        helper.make_node("Mul", ["a", "one"], ["b"], name="/stem/Mul"),
        helper.make_node("Tanh", ["b"], ["c"]),
        helper.make_node("Relu", ["c"], ["y"], name="/head/Relu"),
    ]
    ends = [("x", TensorProto.FLOAT, (1, 4))], [("y", TensorProto.FLOAT, (1, 4))]
    onnx.save(model(nodes, *ends), tmp_path / "model.onnx")
    (none,) = problems(kept("auto"))
    assert none == (
        "4:97: `keep_fp32`: model.onnx: no node's whole name matches 'auto' "
        "(names are like /stem/Relu, /stem/Mul, Tanh_3)"
    )
    (part,) = problems(kept("head"))
    assert "(it must match a whole name, but matches only a part of /head/Relu: put .* around it)" in part
    (constant,) = problems(kept("/one"))
    assert "no node's whole name matches '/one'" in constant
    (one,) = problems(kept("[/head/.*, .*head/Conv]"))  # the other is sound
    assert one == (
        "4:108: `keep_fp32`: model.onnx: no node's whole name matches '.*head/Conv' "
        "(names are like /head/Relu, /stem/Relu, /stem/Mul)"
    )
    assert len(load(kept('"/head/.*"')).cases) == 2
    assert len(load(kept("Tanh_3")).cases) == 2  # as the rewritten file calls what has no name
    freed = ", batch: 2"  # before, the file is rewritten for another batch, and names come from outputs
    assert len(load(kept("node_of_c", more=freed)).cases) == 2
    assert problems(kept("Tanh_3", more=freed)) != []


def test_names_that_functions_hide_are_for_the_run_to_match(tmp_path: Path, load: Load) -> None:
    write("local-function", tmp_path)
    assert len(load(kept("nothing")).cases) == 2


def test_a_quantised_file_is_taken_as_it_is_and_keeps_nothing(tmp_path: Path, load: Load) -> None:
    write("quantised-to-qdq", tmp_path)
    assert len(load(kept("nothing", "int8")).cases) == 1


def test_no_nodes_are_searched_in_a_quantised_file(tmp_path: Path, problems: Problems) -> None:
    write("quantised-to-qdq", tmp_path)
    entry = "{workload: infer, model: model.onnx, runtime: onnxruntime, precision: int8, keep_error_max: 0.1}"
    (found,) = problems(f"  - {entry}\n")
    assert found == (
        "4:97: `keep_error_max`: model.onnx: it is quantised already, and nodes to keep in FP32 are searched while a "
        "file in FP32 is quantised (name the model's file in FP32)"
    )


def shaped(shapes: str, model: str = "model.onnx") -> str:
    return f"  - {{workload: infer, model: {model}, runtime: onnxruntime, batch: 2, shapes: {shapes}}}\n"


def test_free_dimensions_are_factors(tmp_path: Path, load: Load) -> None:
    write("free-height-and-width", tmp_path)
    names = [str(size) for size in read_model(tmp_path / "model.onnx").graph.fed[0].shape or ()][2:]
    cases = load(shaped(f"{{x: {{{names[0]}: [16, 32], {names[1]}: 16}}}}")).cases
    assert [case.shapes for case in cases] == [f"x.{names[0]}={size},x.{names[1]}=16" for size in (16, 32)]
    assert load(shaped(f'"x.{names[1]}=16,x.{names[0]}=16"')).cases[0] == cases[0]
    by_position = load(shaped('{x: {"2": 16, "3": 16}}')).cases[0]
    assert by_position.shapes == "x.2=16,x.3=16"


@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        ('{x: {"0": 4}}', "`shapes`: model.onnx: x.0 is what `batch` sets (leave it out, and write batch: 4)"),
        ('{y: {"0": 4}}', "`shapes`: model.onnx: y.0 names no input of the model (its inputs are x)"),
        ('{x: {"1": 5}}', "`shapes`: model.onnx: x.1 is 12 in the file, and 5 is asked for (leave it out)"),
        ("{x: 4}", "`shapes`: x takes a mapping of dimensions (as in {height: 224})"),
        ('{x: {"1": no}}', "`shapes`: 'x.1=no' is not of the form INPUT.DIM=N (as in {image: {height: 224}}"),
        ("{}", "`shapes` names no input (remove the key, or write {image: {height: 224}})"),
        ("4", "`shapes` takes sizes of dimensions; not 4 (as in {image: {height: 224}}"),
    ],
)
def test_a_size_that_cannot_be_is_a_problem(tmp_path: Path, problems: Problems, shapes: str, said: str) -> None:
    write("plain", tmp_path)
    found = "\n".join(problems(shaped(shapes)))
    assert said in found


@pytest.mark.parametrize("shapes", ["{x: {height: 0, width: 8}}", "{x: 8}", "5"])
def test_sizes_that_cannot_be_read_are_not_missing_too(tmp_path: Path, problems: Problems, shapes: str) -> None:
    write("free-height-and-width", tmp_path)
    (only,) = problems(shaped(shapes))
    assert "`shapes`" in only


def test_shapes_are_for_files(problems: Problems) -> None:
    found = "\n".join(problems(shaped('{x: {"0": 4}}', "mobilenet-v2")))
    assert "`shapes` has no meaning for mobilenet-v2: its inputs have fixed sizes" in found


def test_a_file_without_a_matrix_product_has_no_weights_to_store(tmp_path: Path, problems: Problems) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"], name="relu")]
    ends = [("x", TensorProto.FLOAT, ("n", 4))], [("y", TensorProto.FLOAT, ("n", 4))]
    onnx.save(model(nodes, *ends), tmp_path / "model.onnx")
    (said,) = problems(entry(precision="int4", batch="1").rstrip() + "\n    quantiser: weight-only\n")
    assert said == (
        "9:16: `quantiser`: model.onnx: it has no matrix product, and weight-only stores the weights of nothing else "
        "(use another quantiser)"
    )
