# SPDX-License-Identifier: Apache-2.0
"""A user's models on a user's labelled arrays: what onnxruntime gives is judged as by hand, in FP32 and in INT8."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from pybench.case import Case
from pybench.errors import InputError
from pybench.measurement.result import Result
from pybench.models.labelled import calibrating
from tests.support.labelled import IN_A_GROUP, TOKENS, sources, write_regressor, write_segmenter, write_text_classifier
from tests.support.making import artefacts_of, run


def judged(folder: Path, name: str, **factors: Any) -> Result:
    given: dict[str, Any] = {
        "workload": "accuracy",
        "runtime": "onnxruntime",
        "batch": 16,
        "threads": 1,
        "device": "cpu",
    }
    return run(
        Case(**given | (sources(folder, name) if "sources" not in factors else {}) | factors), files_of(folder, name)
    )


def files_of(folder: Path, name: str) -> dict[str, Path]:
    return {"model": folder / f"{name}.onnx", "data": folder / f"{name}.npz"}


def outputs_of(folder: Path, name: str, output: str, **inputs: Any) -> Any:
    session = onnxruntime.InferenceSession(str(folder / f"{name}.onnx"), providers=["CPUExecutionProvider"])
    return session.run([output], inputs)[0]


def test_a_text_classifier_with_two_inputs_is_judged_by_its_second_output(tmp_path: Path) -> None:
    arrays = write_text_classifier(tmp_path)
    factors = {"task": "classification", "output": "logits"}
    result = judged(tmp_path, "text", **factors)
    table = result.tables["predictions"]
    judges = ~calibrating(list(map(str, arrays["groups"])))
    scores = outputs_of(tmp_path, "text", "logits", ids=arrays["ids"], mask=arrays["mask"])
    assert table["unit_id"].tolist() == [f"{row:06d}" for row in np.flatnonzero(judges)]
    assert table["top1"].tolist() == scores.argmax(1)[judges].tolist()
    assert table["group"].tolist() == list(map(str, arrays["groups"][judges]))
    share = (scores.argmax(1) == arrays["labels"])[judges].mean()
    assert result.metrics["top1_percent"].value == pytest.approx(100 * share)
    assert result.labels["data"] == "text.npz"
    assert result.valid["accuracy"].value is True
    lowered = judged(tmp_path, "text", precision="int8", **factors)
    assert lowered.tables["predictions"]["unit_id"].tolist() == table["unit_id"].tolist()
    assert lowered.metrics["top1_percent"].value == pytest.approx(100 * share, abs=10)
    assert lowered.valid["precision"].value is True


def test_int8_is_calibrated_on_the_samples_that_do_not_judge(tmp_path: Path) -> None:
    arrays = write_text_classifier(tmp_path)
    case = Case(workload="accuracy", runtime="onnxruntime", precision="int8", **sources(tmp_path, "text"))
    path = artefacts_of(case, files_of(tmp_path, "text"))["model"]
    metadata = onnxruntime.InferenceSession(str(path)).get_modelmeta().custom_metadata_map
    found = json.loads(metadata["pybench.calibration"])
    count = int(calibrating(list(map(str, arrays["groups"]))).sum())
    assert (found["samples"], count % IN_A_GROUP) == (count, 0)
    assert (found["source"], found["held_out"]) == ("text.npz", True)
    assert found["identity"] == dict(case.sources)["data"]


def test_a_segmentation_net_in_int8_loses_some_of_its_dice(tmp_path: Path) -> None:
    write_segmenter(tmp_path)
    exact, lowered = (judged(tmp_path, "segmenter", task="segmentation", precision=p) for p in ("fp32", "int8"))
    assert exact.metrics["dice_percent"].value == 100.0
    assert exact.metrics["dice_percent"].samples == 20  # arrays that train are there, so that every sample judges
    assert 90 < lowered.metrics["dice_percent"].value < 100
    assert "group" not in exact.tables["predictions"]


def test_a_regressor_is_as_wrong_as_its_outputs_are(tmp_path: Path) -> None:
    arrays = write_regressor(tmp_path)
    exact, lowered = (judged(tmp_path, "regressor", task="regression", precision=p) for p in ("fp32", "int8"))
    judges = ~calibrating([f"{i:06d}" for i in range(100)])
    outputs = outputs_of(tmp_path, "regressor", "y", x=arrays["x"])[:, 0]
    expected = np.abs(outputs.astype(np.float64) - arrays["labels"])[judges].mean()
    assert exact.metrics["l1_error"].value == pytest.approx(expected, rel=1e-5)
    assert lowered.metrics["l1_error"].value > expected


def test_samples_that_changed_after_the_plan_was_read_are_refused(tmp_path: Path) -> None:
    arrays = write_regressor(tmp_path)
    known = sources(tmp_path, "regressor")
    for change in (lambda: np.savez(tmp_path / "regressor.npz", **arrays | {"labels": -arrays["labels"]}), None):
        (change or (tmp_path / "regressor.npz").unlink)()
        for precision in ("fp32", "int8"):
            with pytest.raises(InputError, match=r"regressor.npz (has changed|is gone) since the plan was read"):
                judged(tmp_path, "regressor", task="regression", precision=precision, **known)


def test_a_built_in_model_takes_arrays_by_the_name_of_its_input(tmp_path: Path) -> None:
    """The run checks what a plan has checked before, as a plan does not know every model."""
    from pybench.campaign.storage import sha256_of

    path = tmp_path / "mine.npz"
    for inputs, said in (
        ({"images": np.zeros((5, 1, 9, 9), np.float32)}, r"is of \[n, 1, 9, 9\]"),
        ({}, "has no array image"),
    ):
        np.savez(path, labels=np.arange(5), **inputs)
        case = Case(
            workload="accuracy",
            model="digits-cnn",
            runtime="onnxruntime",
            data="mine.npz",
            task="classification",
            sources=(("data", sha256_of(path)),),
        )
        with pytest.raises(InputError, match=said):
            run(case, {"data": path})


def test_inference_can_be_fed_with_samples(tmp_path: Path) -> None:
    write_text_classifier(tmp_path)
    factors = {"workload": "infer", "inputs": "data", "iterations": 2, "seq_len": TOKENS, "idle_window_s": 0.0}
    assert judged(tmp_path, "text", **factors).labels["inputs"] == "16 samples of text.npz"
    with pytest.raises(InputError, match=r"ids of text.npz is \[16, 12\], this case feeds \[16, 11\]"):
        judged(tmp_path, "text", **factors | {"seq_len": TOKENS - 1})
