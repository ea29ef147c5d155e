# SPDX-License-Identifier: Apache-2.0
"""What an ONNX file tells is a problem of the plan, with the place in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pybench.plan import Plan
from tests.support.making import write_classifier
from tests.support.onnx_files import write

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


def test_a_fixed_batch_is_a_problem_of_each_other_batch(tmp_path: Path, problems: Problems, load: Load) -> None:
    write("fixed-batch", tmp_path)
    assert problems(entry(batch="[1, 2, 4]")) == [
        f"8:{column}: `batch`: model.onnx: the input x has 1 as its batch, the case {batch} "
        "(set batch: 1, or export the model with that dimension free)"
        for column, batch in ((16, 2), (19, 4))
    ]
    assert len(load(entry(batch="1")).cases) == 1


def test_a_batch_by_default_is_told_at_the_model(tmp_path: Path, problems: Problems) -> None:
    write_classifier(tmp_path / "model.onnx", batch=3)
    (said,) = problems("  - {workload: infer, model: model.onnx, runtime: onnxruntime}\n")
    assert said.startswith("4:30: `model`: model.onnx: the input pictures has 3 as its batch, the case 1")


@pytest.mark.parametrize("name", ["free-height-and-width", "string-input", "no-inputs", "unranked-input"])
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


def test_torch_takes_no_file_so_its_sizes_are_not_judged(tmp_path: Path, load: Load) -> None:
    write("fixed-batch", tmp_path)
    assert len(load(entry(runtime="torch")).cases) == 2


def test_accuracy_takes_models_of_images(tmp_path: Path, problems: Problems) -> None:
    write("plain", tmp_path)
    said = problems("  - {workload: accuracy, model: model.onnx, runtime: onnxruntime, images: digits}\n")
    assert "it takes x ['batch', 12] float32, not images" in said[0]
