# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import onnx
import pytest

from pybench import artefacts, workloads
from pybench.campaign.recipe import Recipe, recipes_of
from pybench.case import Case
from pybench.catalogue.cautions import CautionCode
from pybench.errors import InputError
from pybench.measurement.doubts import CALIBRATION_KEY
from tests.support.making import artefacts_of, codes, request_of, write_classifier, write_images
from tests.support.reasons import codes_of

INT8 = Case(workload="infer", model="digits-cnn", runtime="onnxruntime", precision="int8", threads=1, iterations=5)


def only_recipe(case: Case) -> Recipe:
    return recipes_of(case)["model"]


def test_the_int8_file_says_how_it_was_calibrated() -> None:
    stored = onnx.load(artefacts_of(INT8)["model"])
    calibration = json.loads({entry.key: entry.value for entry in stored.metadata_props}[CALIBRATION_KEY])
    assert len(calibration.pop("sha256")) == 64
    assert calibration == {
        "method": "minmax", "samples": 100, "source": "digits", "identity": "digits", "held_out": True,
    }  # fmt: skip


def test_making_int8_says_how_it_agrees_with_fp32(tmp_path: Path) -> None:
    recipe = only_recipe(INT8)
    result = artefacts.make(
        recipe.as_json(), {"onnx": artefacts_of(INT8.with_factors(precision="fp32"))["model"]}, {}, tmp_path
    )
    assert result.labels["against_fp32_cosine"] > 0.99
    assert result.labels["against_fp32_top1_agreement_ratio"] > 0.9
    assert result.valid["precision"].value is True
    assert result.metrics["model_bytes"].value == (tmp_path / recipe.file).stat().st_size
    assert (tmp_path / recipe.file).read_bytes() == artefacts_of(INT8)["model"].read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == [recipe.file]  # nothing half made is left


def test_random_or_few_samples_raise_a_caution_in_every_run(tmp_path: Path) -> None:
    files = {"model": write_classifier(tmp_path / "mine.onnx")}
    case = INT8.with_factors(model="mine.onnx", sources=(("model", "4" * 64),))
    result = artefacts.make(only_recipe(case).as_json(), {}, files, tmp_path)
    assert result.labels["calibration"]["source"] == "random"
    assert codes(result) == {"small_calibration"}
    few = INT8.with_factors(calibration_images=20)
    assert "small_calibration" in codes(workloads.run(request_of(few)))


def test_fewer_samples_than_asked_for_raise_a_caution() -> None:
    """The case would stand in a curve over numbers of samples with a number that it does not have."""
    result = workloads.run(request_of(INT8.with_factors(calibration_images=9999)))
    (told,) = [caution.detail for caution in result.cautions if caution.code is CautionCode.SMALL_CALIBRATION]
    assert re.fullmatch(r"[1-9]\d{2,3} samples of 9999 asked for \(digits\)", told)


def test_a_file_that_is_quantised_already_is_taken_as_it_is(tmp_path: Path) -> None:
    source = tmp_path / "mine.onnx"
    shutil.copyfile(artefacts_of(INT8)["model"], source)
    case = INT8.with_factors(model="mine.onnx", sources=(("model", "5" * 64),))
    result = artefacts.make(only_recipe(case).as_json(), {}, {"model": source}, tmp_path)
    assert (tmp_path / "model.onnx").read_bytes() == source.read_bytes()
    assert result.labels["calibration"] == "in the file"
    assert result.valid["precision"].value is True


def test_an_int8_file_in_which_nothing_is_quantised_is_invalid(tmp_path: Path) -> None:
    """Q/DQ around a flattening and none around the product: the name says int8, the work is FP32."""
    from onnx import TensorProto, helper, numpy_helper

    model = onnx.load(write_classifier(tmp_path / "mine.onnx"))
    scale = numpy_helper.from_array(__import__("numpy").array(0.1, "float32"), "scale")
    zero = helper.make_tensor("zero", TensorProto.INT8, [], [0])
    model.graph.initializer.extend([scale, zero])
    nodes = [
        helper.make_node("QuantizeLinear", ["pictures", "scale", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["pictures_dq"]),
    ]
    model.graph.node[0].input[0] = "pictures_dq"
    kept = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend([*nodes, *kept])
    onnx.save(model, tmp_path / "fake.onnx")
    case = INT8.with_factors(model="fake.onnx", sources=(("model", "6" * 64),))
    files = {"model": tmp_path / "fake.onnx"}
    made = artefacts.make(only_recipe(case).as_json(), {}, files, tmp_path)
    assert codes_of(made.valid["precision"].reasons) == ("not_quantised",)
    assert made.labels["precision_facts"]["left_undeclared"] == ["product"]
    from pybench.measurement.result import RunRequest

    request = RunRequest(
        case=case, block=0, attempt=1, seed=0, artefacts={"model": tmp_path / "model.onnx"}, files=files
    )
    assert codes_of(workloads.run(request).valid["precision"].reasons) == ("not_quantised",)


def test_calibration_images_that_fill_no_fixed_batch_say_so(tmp_path: Path) -> None:
    files = {
        "model": write_classifier(tmp_path / "mine.onnx", side=16, channels=3, batch=8),
        "images": write_images(tmp_path / "pictures", {"a": 2, "b": 1}),
    }
    case = INT8.with_factors(model="mine.onnx", images="pictures", sources=(("images", "7" * 64), ("model", "8" * 64)))
    with pytest.raises(InputError, match="3 calibration images do not fill one batch of 8"):
        artefacts.make(only_recipe(case).as_json(), {}, files, tmp_path)


def test_making_a_model_of_a_truncated_file_is_an_input_error(tmp_path: Path) -> None:
    source = write_classifier(tmp_path / "mine.onnx")
    source.write_bytes(source.read_bytes()[:100])
    case = INT8.with_factors(model="mine.onnx", sources=(("model", "9" * 64),))
    with pytest.raises(InputError, match=r"mine\.onnx"):
        artefacts.make(only_recipe(case).as_json(), {}, {"model": source}, tmp_path)
