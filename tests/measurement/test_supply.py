# SPDX-License-Identifier: Apache-2.0
"""What is fed is what `inputs` says, in every runtime that is here."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from pybench.case import Case
from pybench.errors import InputError
from pybench.measurement.model import open_model
from pybench.measurement.result import Result
from pybench.measurement.supply import RANDOM, Supply, supply, takes_text_ids, text_ids
from tests.support.making import artefacts_of, request_of, run, write_classifier
from tests.support.onnx_models import model

DIGITS = Case(workload="infer", model="digits-cnn", runtime="onnxruntime", batch=3, threads=1, iterations=2,
              warmup_iterations=1, device="cpu")  # fmt: skip
TEXT = DIGITS.with_factors(model="tinylm-small", seq_len=8, batch=2, runtime="torch", corpus_limit_bytes=9000)


def supplied(case: Case, files: dict[str, Path] | None = None, seed: int = 1) -> Supply:
    request = request_of(case, files, seed)
    ids = text_ids(request) if takes_text_ids(case) else None
    return supply(request, open_model(request), ids)


def ran(case: Case, **files: Path) -> Result:
    return run(case, files)


@pytest.mark.parametrize("runtime", ["onnxruntime", "torch"])
def test_each_value_is_fed_and_stated(tmp_path: Path, runtime: str) -> None:
    path = tmp_path / "mine.npz"
    np.savez(path, images=np.full((3, 1, 8, 8), 0.5, np.float32))
    case = DIGITS.with_factors(runtime=runtime)
    labels = [
        ran(case.with_factors(inputs=inputs), inputs=path).labels["inputs"]
        for inputs in ("normal", "zeros", "data", "mine.npz")
    ]
    assert labels == [RANDOM, "zeros", "3 validation images of digits", "the arrays of mine.npz"]


def test_zeros_and_arrays_are_what_they_say(tmp_path: Path) -> None:
    assert not supplied(DIGITS.with_factors(inputs="zeros")).arrays["images"].any()
    expected = np.random.default_rng(0).standard_normal((3, 1, 8, 8), np.float32)
    np.savez(tmp_path / "mine.npz", images=expected)
    files = {"inputs": tmp_path / "mine.npz"}
    np.testing.assert_array_equal(supplied(DIGITS.with_factors(inputs="mine.npz"), files).arrays["images"], expected)


def test_arrays_that_changed_since_the_plan_was_read_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", images=np.zeros((4, 1, 8, 8), np.float32))
    with pytest.raises(InputError, match=r"has no array images of \[3, 1, 8, 8\]"):
        supplied(DIGITS.with_factors(inputs="mine.npz"), {"inputs": tmp_path / "mine.npz"})


def test_data_are_images_that_judge_and_repeat_where_they_are_few(tmp_path: Path) -> None:
    images = np.random.default_rng(0).random((2, 1, 8, 8), np.float32)
    np.savez(tmp_path / "images.npz", images=images, labels=np.arange(2))
    path = write_classifier(tmp_path / "model.onnx")
    case = DIGITS.with_factors(model="model.onnx", inputs="data", images="images.npz")
    found = supplied(case, {"model": path, "images": tmp_path / "images.npz"})
    np.testing.assert_array_equal(found.arrays["pictures"], images[[0, 1, 0]])


@pytest.mark.slow
def test_data_are_ids_of_the_text_and_other_than_random_ones() -> None:
    found = supplied(TEXT.with_factors(inputs="data"))
    ids = found.arrays["ids"]
    assert (ids.shape, ids.dtype) == ((2, 8), np.int64)
    assert np.array_equal(ids, supplied(TEXT.with_factors(inputs="data"), seed=9).arrays["ids"])
    assert not np.array_equal(ids, supplied(TEXT).arrays["ids"])
    assert ran(TEXT.with_factors(inputs="data")).labels["inputs"].startswith("the first 2 x 8 ids of the corpus")


def test_ids_of_text_are_those_that_a_path_feeds() -> None:
    from pybench.measurement.feed import TokenFeed

    with TokenFeed(request_of(TEXT.with_factors(path="rust"))) as feed:
        expected = feed.next()
    np.testing.assert_array_equal(supplied(TEXT.with_factors(inputs="data")).arrays["ids"], expected)


def embedding(path: Path, rows: int) -> dict[str, Any]:
    nodes = [helper.make_node("Gather", ["table", "ids"], ["y"], name="embed")]
    inputs = [("ids", TensorProto.INT64, ("batch", "tokens"))]
    table = np.zeros((rows, 2), np.float32)
    onnx.save(model(nodes, inputs, [("y", TensorProto.FLOAT, (None, None, 2))], {"table": table}), path)
    return {"model": path.name, "sources": (("model", hashlib.sha256(path.read_bytes()).hexdigest()),)}


def test_ids_of_a_users_file_cover_its_table(tmp_path: Path) -> None:
    case = DIGITS.with_factors(seq_len=400, **embedding(tmp_path / "model.onnx", 5))
    found = supplied(case, {"model": tmp_path / "model.onnx"})
    assert set(np.unique(found.arrays["ids"])) == {0, 1, 2, 3, 4}
    assert found.described == f"{RANDOM}; ids: 0 to 4, by embed (Gather)"


def test_a_table_of_one_row_runs_and_can_be_converted(tmp_path: Path) -> None:
    files = {"model": tmp_path / "model.onnx"}
    case = DIGITS.with_factors(seq_len=4, **embedding(files["model"], 1))
    assert ran(case, **files).metrics["latency_mean_ms"].value is not None
    assert artefacts_of(case.with_factors(precision="bf16"), files)["model"].is_file()
