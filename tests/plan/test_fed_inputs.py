# SPDX-License-Identifier: Apache-2.0
"""What `inputs` names is judged when the plan is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from pybench.plan import Plan
from tests.support.making import write_classifier
from tests.support.onnx_files import write
from tests.support.onnx_models import model

Load = Callable[..., Plan]
Problems = Callable[..., list[str]]


def entry(inputs: str, model: str = "model.onnx", more: str = "batch: 2") -> str:
    return f"  - {{workload: infer, model: {model}, runtime: onnxruntime, inputs: {inputs}, {more}}}\n"


def stored(path: Path, *shape: int, kind: str = "float32", name: str = "x") -> None:
    np.savez(path, **{name: np.zeros(shape, kind)})


def test_the_default_is_in_no_id(tmp_path: Path, load: Load) -> None:
    write("plain", tmp_path)
    (named,) = load(entry("normal")).cases
    (silent,) = load("  - {workload: infer, model: model.onnx, runtime: onnxruntime, batch: 2}\n").cases
    assert named.id == silent.id


def test_a_list_expands_and_a_file_is_known_by_its_content(tmp_path: Path, load: Load) -> None:
    write("plain", tmp_path)
    for name in ("a.npz", "b.npz"):
        stored(tmp_path / name, 2, 12)
    plan = load(entry("[normal, zeros, a.npz, b.npz]"))
    assert [case.inputs for case in plan.cases] == ["normal", "zeros", "a.npz", "b.npz"]
    assert len({case.id for case in plan.cases}) == 4
    assert [dict(case.sources).get("inputs") is not None for case in plan.cases] == [False, False, True, True]
    before = plan.cases[2].id
    np.savez(tmp_path / "a.npz", x=np.ones((2, 12), np.float32))
    assert load(entry("a.npz")).cases[0].id != before


@pytest.mark.parametrize(
    ("shape", "kind", "name", "said"),
    [
        ((3, 12), "float32", "x", "x is [3, 12], this case feeds [2, 12] (set batch: 3, or store 2 samples)"),
        ((2, 12), "float64", "x", "x is float64, the model takes float32 ("),
        ((2, 12), "float32", "y", "it has no array x (the model's inputs are x)"),
    ],
)
def test_arrays_that_do_not_fit_are_one_problem(
    tmp_path: Path, problems: Problems, shape: tuple[int, ...], kind: str, name: str, said: str
) -> None:
    write("plain", tmp_path)
    stored(tmp_path / "a.npz", *shape, kind=kind, name=name)
    (found,) = problems(entry("a.npz"))
    assert found.startswith(f"4:72: `inputs`: a.npz: {said}")


def test_a_built_in_model_takes_arrays_by_the_name_of_its_input(tmp_path: Path, problems: Problems, load: Load) -> None:
    stored(tmp_path / "a.npz", 2, 1, 8, 8, name="images")
    assert len(load(entry("a.npz", "digits-cnn")).cases) == 1
    for wrong in (32000, -1):  # torch refuses a negative id, too
        np.savez(tmp_path / "a.npz", ids=np.full((2, 16), wrong))
        (found,) = problems(entry("a.npz", "tinylm-small", "batch: 2, seq_len: 16"))
        assert f"{wrong}, and the vocabulary of tinylm-small accepts 0 to 31999" in found


def test_a_divisor_may_be_any_number_but_zero(tmp_path: Path, problems: Problems, load: Load) -> None:
    content = model(
        [helper.make_node("Div", ["x", "n"], ["y"], name="mean")],
        [("x", TensorProto.INT64, ("batch", 2)), ("n", TensorProto.INT64, ("batch", 2))],
        [("y", TensorProto.INT64, ("batch", 2))],
    )
    onnx.save(content, tmp_path / "model.onnx")
    np.savez(tmp_path / "a.npz", x=np.ones((1, 2), int), n=np.array([[10, -3]]))
    assert len(load(entry("a.npz", more="batch: 1, seq_len: 2")).cases) == 1
    np.savez(tmp_path / "a.npz", x=np.ones((1, 2), int), n=np.array([[10, 0]]))
    (found,) = problems(entry("a.npz", more="batch: 1, seq_len: 2"))
    assert "n has numbers from 0 to 10, and mean (Div) accepts every number but 0" in found


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ("zero", "`inputs`: no such file: zero; built-in: normal, zeros, data (did you mean `zeros`?)"),
        ("absent.npz", "`inputs`: no such file: absent.npz; built-in: normal, zeros, data (paths are relative"),
        ("model.onnx", "`inputs`: model.onnx is no .npz (write it with numpy.savez, one array for each input)"),
        ("1", "`inputs` takes normal, zeros, data, or a path; not 1"),
    ],
)
def test_a_value_that_is_none_is_a_problem(tmp_path: Path, problems: Problems, inputs: str, said: str) -> None:
    write("plain", tmp_path)
    assert said in "\n".join(problems(entry(inputs)))


def test_data_are_the_images_of_the_case(tmp_path: Path, problems: Problems, load: Load) -> None:
    (case,) = load(entry("data", "digits-cnn")).cases
    assert case.images is None
    write_classifier(tmp_path / "model.onnx")
    (case,) = load(entry("data", more="batch: 2, images: digits")).cases
    assert case.images == "digits"
    (found,) = problems(entry("data"))
    assert "`inputs`: data: model.onnx comes with no images, and `images` names none (set `images`: digits" in found
    write("plain", tmp_path)
    (found,) = problems(entry("data", more="images: digits"))
    assert "`inputs`: data: it takes x ['batch', 12] float32, not images of [batch, " in found
    assert "(write `inputs: FILE.npz`" in found


def test_data_are_the_text_of_the_case(load: Load, problems: Problems) -> None:
    (case,) = load(entry("data", "tinylm-small", "corpus_limit_bytes: 9000")).cases
    assert (case.inputs, case.corpus_limit_bytes) == ("data", 9000)
    (found,) = problems(entry("data", "distilbert", "batch: 2"))
    assert "`inputs`: data: there is no data for distilbert (write `inputs: FILE.npz`" in found


def test_a_path_feeds_by_itself(load: Load, problems: Problems) -> None:
    (found,) = problems(entry("zeros", "tinylm-small", "path: rust"))
    assert "`inputs` changes nothing in this entry (`path` and `fed` hand their own ids to the model" in found
    cases = load(entry("[zeros, data]", "tinylm-small", "path: [none, rust]")).cases
    assert [(case.path, case.inputs) for case in cases] == [("none", "zeros"), ("rust", "normal"), ("none", "data")]


def test_only_infer_is_fed(problems: Problems) -> None:
    (found,) = problems("  - {workload: accuracy, model: digits-cnn, runtime: onnxruntime, inputs: zeros}\n")
    assert "`inputs` has no meaning for workload accuracy" in found
