# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from pybench.measurement import outputs
from pybench.measurement.outputs import look_at_outputs, not_finite
from pybench.measurement.result import Result
from pybench.runtimes import onnxruntime
from tests.support.making import write_classifier


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_each_kind_of_number_is_counted_in_every_floating_type(kind: type) -> None:
    values = np.array([[1, np.nan, np.inf], [np.inf, -np.inf, 0]], kind)
    assert not_finite("scores", values) == "scores: 1 NaN, 2 inf, 1 -inf of 6 numbers"
    assert not_finite("scores", np.array([[1, 2]], kind)) is None


def test_integers_and_outputs_without_numbers_are_finite() -> None:
    assert not_finite("classes", np.array([1, 2])) is None
    assert not_finite("boxes", np.zeros((0, 4), np.float32)) is None


def test_a_pass_that_fails_costs_no_run_and_the_label_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_classifier(tmp_path / "mine.onnx", batch=2)
    session = onnxruntime.open_session(path, precision="fp32", threads=1, device="cpu")
    result = Result()
    look_at_outputs(result, session, {"pictures": np.zeros((3, 1, 8, 8), np.float32)})
    assert result.labels["outputs"].startswith("not known: one more pass failed (")
    assert "mine.onnx" in result.labels["outputs"]
    assert not result.cautions
    assert "Traceback" in capsys.readouterr().err


def test_a_large_output_is_counted_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "_AT_ONCE", 4)
    values = np.zeros((3, 5), np.float32)
    values[0, 3:] = values[2, 4] = np.nan
    values[1] = -np.inf
    assert not_finite("scores", values) == "scores: 3 NaN, 5 -inf of 15 numbers"


def test_what_cannot_be_counted_costs_no_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def without_memory(name: str, values: object) -> None:
        raise MemoryError("no room for a mask")

    monkeypatch.setattr(outputs, "not_finite", without_memory)
    session = onnxruntime.open_session(
        write_classifier(tmp_path / "mine.onnx", batch=2), precision="fp32", threads=1, device="cpu"
    )
    result = Result()
    look_at_outputs(result, session, {"pictures": np.zeros((2, 1, 8, 8), np.float32)})
    assert result.labels["outputs"] == "not known: one more pass failed (no room for a mask)"
