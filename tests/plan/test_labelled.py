# SPDX-License-Identifier: Apache-2.0
"""Labelled arrays in a plan: what follows from the file, and one problem for each thing that does not fit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from pybench.campaign.recipe import recipes_of
from pybench.plan import Plan
from tests.support.labelled import SIDE, TOKENS, Arrays, write_regressor, write_segmenter, write_text_classifier
from tests.support.onnx_models import model, node

Load = Callable[..., Plan]
Problems = Callable[..., list[str]]

TEXT = "task: classification, output: logits"
SEGMENTS = "task: segmentation"
WRITE = {"text": write_text_classifier, "segmenter": write_segmenter, "regressor": write_regressor}


def entry(name: str, more: str = "", workload: str = "accuracy", precision: str = "int8") -> str:
    rest = f"data: {name}.npz, {more}" if more else f"data: {name}.npz"
    return f"  - {{workload: {workload}, model: {name}.onnx, runtime: onnxruntime, precision: {precision}, {rest}}}\n"


def test_what_the_file_tells_is_in_the_case(load: Load, tmp_path: Path) -> None:
    for write in WRITE.values():
        write(tmp_path)
    plan = load(entry("text", TEXT) + entry("segmenter", SEGMENTS) + entry("regressor"))
    assert [case.task for case in plan.cases] == ["classification", "segmentation", "regression"]
    assert [case.headline for case in plan.cases] == ["top1_percent", "dice_percent", "l1_error"]
    assert plan.cases[0].seq_len == TOKENS
    assert all(dict(case.sources).keys() == {"model", "data"} for case in plan.cases)


def test_labels_in_fortran_order_are_read_as_such(load: Load, tmp_path: Path) -> None:
    """All samples have one pixel of class 1, which in that order lie together."""
    arrays = write_segmenter(tmp_path)
    labels = np.zeros((20, SIDE, SIDE), np.int16)
    labels[:, 0, 0] = 1
    np.savez(tmp_path / "segmenter.npz", **arrays | {"labels": np.asfortranarray(labels)})
    assert load(entry("segmenter", SEGMENTS)).cases


def test_an_input_of_bfloat16_is_refused_with_a_hint_that_can_be_followed(problems: Problems, tmp_path: Path) -> None:
    arrays = write_regressor(tmp_path)
    own = onnx.load(tmp_path / "regressor.onnx")
    own.graph.input[0].type.tensor_type.elem_type = TensorProto.BFLOAT16
    onnx.save(own, tmp_path / "regressor.onnx")
    np.savez(tmp_path / "regressor.npz", **arrays)
    (found,) = problems(entry("regressor", precision="fp32"))
    assert "the input x is bfloat16, which numpy stores no arrays of (export the model with a float32 input)" in found


def test_classes_are_bounded_where_the_model_does_not_say_how_many_it_has(problems: Problems, tmp_path: Path) -> None:
    arrays = write_text_classifier(tmp_path)
    own = onnx.load(tmp_path / "text.onnx")
    own.graph.output[1].type.tensor_type.shape.dim[1].dim_param = "classes"
    onnx.save(own, tmp_path / "text.onnx")
    np.savez(tmp_path / "text.npz", **arrays | {"labels": arrays["labels"] + 10**9})
    assert "labels reach 1000000002, and at most 1048576 classes can be told apart" in problems(entry("text", TEXT))[0]


def test_arrays_that_train_leave_two_groups_to_judge(load: Load, tmp_path: Path) -> None:
    arrays = write_segmenter(tmp_path)
    np.savez(tmp_path / "segmenter.npz", **arrays | {"groups": np.arange(20) % 2})
    assert load(entry("segmenter", SEGMENTS)).cases


def test_a_model_of_sequences_of_one_length_sets_it(load: Load, problems: Problems, tmp_path: Path) -> None:
    arrays = write_text_classifier(tmp_path, TOKENS)
    assert load(entry("text", TEXT)).cases[0].seq_len == TOKENS
    np.savez(tmp_path / "text.npz", **arrays | {name: arrays[name][:, 1:] for name in ("ids", "mask")})
    assert "ids is [200, 11], and [200, 12] is needed" in problems(entry("text", TEXT))[0]


def test_other_samples_are_another_case_and_another_calibration(load: Load, tmp_path: Path) -> None:
    arrays = write_regressor(tmp_path)
    one = load(entry("regressor")).cases[0]
    np.savez(tmp_path / "regressor.npz", **arrays | {"labels": arrays["labels"] + 1})
    other = load(entry("regressor")).cases[0]
    assert one.id != other.id
    assert recipes_of(one)["model"].digest != recipes_of(other)["model"].digest
    assert dict(recipes_of(other)["model"].files)["data"] == "regressor.npz"


def test_inference_is_calibrated_on_the_samples_and_ignores_them_in_fp32(
    load: Load, problems: Problems, tmp_path: Path
) -> None:
    write_text_classifier(tmp_path)
    speed, accuracy = load(entry("text", "seq_len: 64", "infer") + entry("text", TEXT)).cases
    assert recipes_of(speed)["model"].digest == recipes_of(accuracy)["model"].digest
    assert "`data` changes nothing" in problems(entry("text", workload="infer", precision="fp32"))[0]
    assert load(entry("text", workload="infer", precision="[fp32, int8]")).cases[0].data is None


def test_data_as_a_mapping_is_still_images_and_text(load: Load) -> None:
    text = "  - {workload: accuracy, model: digits-cnn, runtime: torch, data: {images: digits}}\n"
    case = load(text).cases[0]
    assert (case.images, case.data) == ("digits", None)


def without(name: str) -> Callable[[Arrays], Arrays]:
    return lambda arrays: {each: array for each, array in arrays.items() if each != name}


def changed(name: str, change: Callable[[Any], Any]) -> Callable[[Arrays], Arrays]:
    return lambda arrays: arrays | {name: change(arrays[name])}


def added(name: str, array: Any) -> Callable[[Arrays], Arrays]:
    return lambda arrays: arrays | {name: np.asarray(array)}


def doubled(labels: Any) -> Any:
    return labels.repeat(2).reshape(-1, 2)


def counted(labels: Any) -> Any:
    return abs(labels).astype(np.int64)


def lower(labels: Any) -> Any:
    return np.append(labels[:-1], -np.inf)


def emptied(labels: Any) -> Any:
    """The first sample is background, and the file has the numbers in Fortran's order."""
    return np.asfortranarray(labels * (np.arange(len(labels)) > 0)[:, None, None])


WRONG: dict[str, tuple[str, str, Callable[[Arrays], Arrays], str]] = {
    "no labels": ("text", TEXT, without("labels"), "it has no array labels"),
    "no input": ("text", TEXT, without("mask"), "it has no array mask (the model's inputs are ids, mask)"),
    "another input": ("text", TEXT, added("token_types", [0]), "the model has no input token_types"),
    "one of two trains": ("text", TEXT, added("train_ids", np.zeros((5, TOKENS), int)), "it has no array train_mask"),
    "another type": ("text", TEXT, changed("mask", np.float32), "mask is float32, the model takes int64"),
    "another rank": ("segmenter", SEGMENTS, changed("x", lambda x: x[:, 0]), "x is [20, 16, 16], and [20, 1, 16, 16]"),
    "another size": ("regressor", "", changed("x", lambda x: x[:, 1:]), "x is [100, 7], and [100, 8] is needed"),
    "fewer samples": ("regressor", "", changed("x", lambda x: x[1:]), "x is [99, 8], and [100, 8] is needed"),
    "lengths differ": ("text", TEXT, changed("mask", lambda x: x[:, 1:]), "mask is [200, 11], and [200, 12]"),
    "ids out of range": ("text", TEXT, changed("ids", lambda x: x + 1), "ids has numbers from 1 to 50, and gather_"),
    "an input of NaN": ("regressor", "", changed("x", lambda x: x * np.nan), "x is not finite"),
    "a label of NaN": ("regressor", "", changed("labels", lambda x: x * np.nan), "labels is not finite"),
    "a label of text": ("regressor", "", changed("labels", lambda x: x.astype(str)), "labels are text, not integers"),
    "no task": ("text", "output: logits", without(""), "labels are int64, which tells no task (set `task`"),
    "floats as classes": ("text", TEXT, changed("labels", np.float32), "and classification takes integers"),
    "labels too deep": ("text", TEXT, changed("labels", lambda x: x[:, None]), "classification takes [batch]"),
    "labels too flat": ("segmenter", SEGMENTS, changed("labels", lambda x: x[:, 0, 0]), "takes [batch, size, ...]"),
    "labels of another size": (
        "segmenter", SEGMENTS, changed("labels", lambda x: x[:, 1:]), "labels are [20, 15, 16], and y, which"
    ),
    "values of another size": ("regressor", "", changed("labels", doubled), "labels are [100, 2]"),
    "a class too many": ("text", TEXT, changed("labels", lambda x: x + 1), "labels reach 3, and logits is of 3"),
    "a class below 0": ("text", TEXT, changed("labels", lambda x: x - 1), "the smallest is -1"),
    "background alone": ("segmenter", SEGMENTS, changed("labels", lambda x: x * 0), "20 of 20 samples are of class 0"),
    "two samples": ("regressor", "", lambda arrays: {name: x[:2] for name, x in arrays.items()}, "at least 3 samples"),
    "one group": ("text", TEXT, changed("groups", lambda x: x * 0), "groups has 1 different values, and at least 3"),
    "two groups": ("text", TEXT, changed("groups", lambda x: x % 2), "groups has 2 different values, and at least 3"),
    "nothing trains": ("segmenter", SEGMENTS, changed("train_x", lambda x: x[:0]), "the arrays train_... have no rows"),
    "a label of -inf": ("regressor", "", changed("labels", lower), "numbers are 1 -inf (store finite numbers)"),
    "one sample is background": ("segmenter", SEGMENTS, changed("labels", emptied), "1 of 20 samples are of class 0"),
    "groups of floats": ("text", TEXT, changed("groups", np.float32), "groups is float32 [200], not integers or text"),
    "ids of samples repeat": ("regressor", "", added("ids", ["a"] * 100), "ids has 1 different values for 100 samples"),
    "several outputs": ("text", "task: classification", without(""), "set `output`: its outputs are pooled, logits"),
    "no such output": ("text", f"{TEXT[:-6]}logit", without(""), "the model has no output logit (its outputs are"),
    "another output": ("text", f"{TEXT[:-6]}pooled", changed("labels", lambda x: x + 90), "reach 92, and pooled"),
    "another task": ("segmenter", "task: classification", without(""), "labels are [20, 16, 16], and classification"),
    "a task of other outputs": ("regressor", "task: language", changed("labels", counted), "and y is of 1 vocabulary"),
    "images, too": ("regressor", "images: synthetic-100", without(""), "`images` are samples, too"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_what_does_not_fit_is_one_problem_at_its_place(problems: Problems, tmp_path: Path, wrong: str) -> None:
    name, more, change, said = WRONG[wrong]
    np.savez(tmp_path / f"{name}.npz", **change(WRITE[name](tmp_path)))
    found = problems(entry(name, more))
    assert len(found) == 1
    assert said in found[0]
    place = int(found[0].split(":")[1])
    at = entry(name, more)[place - 1 :]
    assert at.startswith((f"{name}.npz", "logit", "pooled", "classification", "language"))


def test_a_task_that_cannot_be_read_is_not_missing_too(problems: Problems, tmp_path: Path) -> None:
    write_segmenter(tmp_path)
    (found,) = problems(entry("segmenter", "task: segmentaton"))
    assert "did you mean `segmentation`?" in found


def test_a_file_that_is_no_npz_is_a_problem(problems: Problems, tmp_path: Path) -> None:
    write_regressor(tmp_path)
    (tmp_path / "regressor.npz").write_bytes(b"PK nothing")
    assert "it is no .npz of numpy" in problems(entry("regressor"))[0]
    text = entry("regressor").replace("regressor.npz", "{}")
    assert "`data`: regressor.onnx is no .npz" in problems(text.replace("{}", "regressor.onnx"))[0]
    assert "`data`: no such file: other.npz" in problems(text.replace("{}", "other.npz"))[0]


def test_task_and_output_are_about_labelled_arrays(problems: Problems) -> None:
    text = "  - {workload: accuracy, model: digits-cnn, runtime: torch, task: regression}\n"
    assert "`task` changes nothing in this entry" in problems(text)[0]
    assert "`task` has no meaning for workload infer" in problems(text.replace("accuracy", "infer"))[0]


def test_an_input_called_labels_is_a_problem(problems: Problems, tmp_path: Path) -> None:
    shape = ("batch", 2)
    onnx.save(
        model(
            [node("Identity", "labels", "y")], [("labels", TensorProto.FLOAT, shape)], [("y", TensorProto.FLOAT, shape)]
        ),
        tmp_path / "odd.onnx",
    )
    np.savez(tmp_path / "odd.npz", labels=np.zeros((4, 2), np.float32))
    assert "the model has an input called labels" in problems(entry("odd"))[0]


def test_a_free_dimension_has_the_size_that_the_case_states(load: Load, problems: Problems, tmp_path: Path) -> None:
    x = ("batch", "steps")
    nodes = [node("ReduceMean", "x axis", "y", keepdims=1)]
    values = [("x", TensorProto.FLOAT, x)], [("y", TensorProto.FLOAT, ("batch", 1))]
    onnx.save(model(nodes, *values, {"axis": np.array([1])}), tmp_path / "series.onnx")
    np.savez(tmp_path / "series.npz", x=np.zeros((4, 7), np.float32), labels=np.zeros(4))
    text = entry("series", precision="fp32")
    assert "set its size, as in `shapes: {x: {steps: 224}}`" in problems(text)[0]
    assert load(text.replace("npz", "npz, shapes: {x: {steps: 7}}")).cases[0].task == "regression"
    assert "x is [4, 7], and [4, 8] is needed" in problems(text.replace("npz", "npz, shapes: {x: {steps: 8}}"))[0]


def test_an_engine_is_built_for_the_sequences_that_it_is_compared_on(
    problems: Problems, load: Load, tmp_path: Path
) -> None:
    write_text_classifier(tmp_path)
    text = entry("text", workload="infer").replace("onnxruntime", "tensorrt")
    assert "its sequences have 12 ids, and the case has seq_len 128 (set seq_len: 12)" in problems(text)[0]
    assert load(text.replace("npz", "npz, seq_len: 12")).cases[0].data == "text.npz"
    assert load(entry("text", TEXT).replace("onnxruntime", "tensorrt")).cases[0].seq_len == TOKENS


def test_samples_can_be_what_inference_is_fed_with(load: Load, problems: Problems, tmp_path: Path) -> None:
    write_text_classifier(tmp_path)
    text = entry("text", "inputs: data", "infer", "fp32")
    assert "its sequences have 12 ids, and the case has seq_len 128" in problems(text)[0]
    assert load(text.replace("npz", "npz, seq_len: 12")).cases[0].data == "text.npz"


def test_samples_that_are_used_for_nothing_are_not_looked_at(load: Load, tmp_path: Path) -> None:
    write_text_classifier(tmp_path)
    write_regressor(tmp_path)
    other = "  - {workload: infer, model: regressor.onnx, runtime: onnxruntime}\n"
    whole = f"schema_version: 1\nname: test\ndefaults: {{data: text.npz}}\nmatrix:\n{other}{entry('text', TEXT)}"
    assert [case.data for case in load(whole, whole=True).cases] == [None, "text.npz"]
