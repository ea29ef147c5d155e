# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pybench import artefacts
from pybench.campaign.recipe import recipes_of
from pybench.case import Case
from pybench.catalogue.cautions import CautionCode
from pybench.errors import InputError, UnsupportedError
from pybench.measurement.result import Validity
from tests.support.cpu import HAS_VNNI
from tests.support.making import codes, run, write_classifier, write_images
from tests.support.reasons import codes_of, reasons_of

DIGITS = Case(workload="accuracy", model="digits-cnn", runtime="onnxruntime", batch=64, threads=1)
MINE = Case(workload="accuracy", model="mine.onnx", runtime="onnxruntime", batch=4, threads=1, images="pictures")


@pytest.mark.slow
def test_the_trained_network_knows_the_digits_on_both_runtimes_alike() -> None:
    one = run(DIGITS)
    assert one.metrics["top1_percent"].value > 97
    assert one.metrics["top5_percent"].value > 99
    assert one.metrics["top1_percent"].samples == 450
    other = run(DIGITS.with_factors(runtime="torch", batch=7))
    for name in ("image_id", "label", "top1", "top5_hit"):
        assert np.array_equal(one.tables["predictions"][name], other.tables["predictions"][name])
    assert one.valid["accuracy"].value is True
    assert one.valid["timing"].value is None


def test_int8_stays_close_and_is_really_int8() -> None:
    result = run(DIGITS.with_factors(precision="int8"))
    assert result.metrics["top1_percent"].value > 96
    assert result.valid["precision"].value is True
    assert "4 of 4" in result.labels["precision_realised"]
    assert codes(result) == (set() if HAS_VNNI else {"int8_saturates"})


def test_accuracy_of_symmetric_int8_counts_where_its_time_does_not() -> None:
    """onnxruntime's CPU provider has no integer kernels for most of it, and computes the same pairs of Q/DQ in FP32."""
    case = DIGITS.with_factors(precision="int8", quantiser="pybench")
    result = run(case)
    assert result.valid["precision"].value is True
    assert result.metrics["top1_percent"].value > 96
    timed = run(case.with_factors(workload="infer", iterations=2, batch=1, idle_window_s=0.0))
    assert timed.valid["precision"] == Validity(False, reasons_of("no_integer_kernels"))


def test_accuracy_repeats_exactly() -> None:
    one, same = run(DIGITS, seed=1), run(DIGITS, seed=2)
    assert np.array_equal(one.tables["predictions"]["top1"], same.tables["predictions"]["top1"])


def test_the_share_and_its_deviation_follow_from_the_predictions() -> None:
    result = run(DIGITS.with_factors(image_limit=50))
    table = result.tables["predictions"]
    share = float((table["label"] == table["top1"]).mean())
    assert len(table["label"]) == 50
    assert result.metrics["top1_percent"].value == pytest.approx(100 * share)
    assert result.metrics["top1_percent"].u_standard == pytest.approx(100 * (share * (1 - share) / 50) ** 0.5)


def test_a_users_model_is_judged_on_a_folder_of_images(tmp_path: Path) -> None:
    """The classifier weighs a bright image most for its last class and a dark one for none: predictions by hand."""
    files = {
        "model": write_classifier(tmp_path / "mine.onnx", side=16, channels=3),
        "images": write_images(tmp_path / "pictures", {"a": 2, "b": 2, "c": 3}),
    }
    result = run(MINE, files)
    table = result.tables["predictions"]
    assert table["image_id"].tolist() == [
        "a/00.png",
        "a/01.png",
        "b/00.png",
        "b/01.png",
        "c/00.png",
        "c/01.png",
        "c/02.png",
    ]
    assert table["label"].tolist() == [0, 0, 1, 1, 2, 2, 2]
    assert set(table["top1"].tolist()) <= {0, 1, 2}
    assert table["top5_hit"].all()  # three classes: the right one is always among five
    weight = np.linspace(-1, 1, 3 * 16 * 16 * 3, dtype=np.float32).reshape(-1, 3)
    from pybench.models.images.picture import read_picture

    pixels = np.stack([read_picture(tmp_path / "pictures" / name, (3, 16, 16)) for name in table["image_id"]])
    assert table["top1"].tolist() == (pixels.reshape(7, -1) @ weight).argmax(1).tolist()


def test_a_fixed_batch_is_filled_up_and_the_filling_is_not_judged(tmp_path: Path) -> None:
    pictures = write_images(tmp_path / "pictures", {"a": 3, "b": 2})
    free = write_classifier(tmp_path / "free.onnx", side=16, channels=3)
    fixed = write_classifier(tmp_path / "fixed.onnx", side=16, channels=3, batch=4)
    one = run(MINE.with_factors(batch=5), {"model": free, "images": pictures})
    other = run(MINE, {"model": fixed, "images": pictures})
    assert len(other.tables["predictions"]["label"]) == 5
    assert np.array_equal(one.tables["predictions"]["top1"], other.tables["predictions"]["top1"])


def test_fewer_folders_than_outputs_raise_a_caution_and_more_are_an_error(tmp_path: Path) -> None:
    pictures = write_images(tmp_path / "pictures", {"a": 1, "b": 1})
    many = write_classifier(tmp_path / "many.onnx", side=16, channels=3, classes=9)
    assert "fewer_classes" in codes(run(MINE, {"model": many, "images": pictures}))
    one = write_classifier(tmp_path / "one.onnx", side=16, channels=3, classes=1)
    with pytest.raises(InputError, match="tells 1 classes apart, the images have 2"):
        run(MINE, {"model": one, "images": pictures})


def test_calibrating_on_the_images_that_judge_raises_a_caution_unless_they_are_split(tmp_path: Path) -> None:
    model = write_classifier(tmp_path / "mine.onnx", side=16, channels=3)
    case = MINE.with_factors(precision="int8", calibration_images=4)
    whole = {"model": model, "images": write_images(tmp_path / "whole", {"a": 3, "b": 3})}
    raised = codes(run(case.with_factors(sources=(("images", "1" * 64), ("model", "2" * 64))), whole))
    assert {"calibrated_on_evaluation", "small_calibration"} <= raised
    write_images(tmp_path / "split" / "train", {"a": 3, "b": 3})
    write_images(tmp_path / "split" / "val", {"a": 1, "b": 1})
    split = {"model": model, "images": tmp_path / "split"}
    raised = codes(run(case.with_factors(sources=(("images", "3" * 64), ("model", "2" * 64))), split))
    assert "calibrated_on_evaluation" not in raised


def test_a_corrupt_image_stops_the_run_and_is_named(tmp_path: Path) -> None:
    pictures = write_images(tmp_path / "pictures", {"a": 2, "b": 1})
    (pictures / "a" / "01.png").write_bytes(b"broken")
    with pytest.raises(InputError, match=r"a/01\.png is not a readable image"):
        run(MINE, {"model": write_classifier(tmp_path / "mine.onnx", side=16, channels=3), "images": pictures})


def test_a_model_without_usual_images_asks_for_some(tmp_path: Path) -> None:
    case = MINE.with_factors(images=None)
    with pytest.raises(InputError, match="needs labelled images"):
        run(case, {"model": write_classifier(tmp_path / "mine.onnx")})


def test_outputs_that_are_no_numbers_make_accuracy_invalid(tmp_path: Path) -> None:
    import onnx
    from onnx import numpy_helper

    model = onnx.load(write_classifier(tmp_path / "mine.onnx", side=16, channels=3))
    weight = numpy_helper.to_array(model.graph.initializer[0]).copy()
    weight[0, 0] = np.nan
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(weight, "weight"))
    onnx.save(model, tmp_path / "nan.onnx")
    pictures = write_images(tmp_path / "pictures", {"a": 1, "b": 1})
    result = run(MINE, {"model": tmp_path / "nan.onnx", "images": pictures})
    assert codes_of(result.valid["accuracy"].reasons) == ("not_finite",)


def test_weights_trained_on_the_generated_set_are_judged_on_it_and_have_its_classes() -> None:
    """A network for 8x8 digits learns next to nothing of 8x8 miniatures: what counts is that all parts fit together."""
    case = DIGITS.with_factors(checkpoint="synthetic-100", image_limit=200, runtime="torch", threads=None)
    result = run(case)
    table = result.tables["predictions"]
    assert table["image_id"][1] == "validation-00025"
    assert len(np.unique(table["label"])) > 60
    assert result.labels["classes"] == 100
    assert result.labels["data"] == "synthetic-100"
    assert not codes(result) & {"fewer_classes", "untrained_weights"}
    assert result.metrics["top5_percent"].value >= result.metrics["top1_percent"].value


def test_a_model_too_large_for_a_cpu_is_not_trained_there(tmp_path: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("a GPU trains it")
    recipe = recipes_of(Case(workload="infer", model="resnet50", runtime="torch", checkpoint="synthetic-100"))
    with pytest.raises(UnsupportedError, match="training resnet50 on synthetic-100 needs a GPU") as raised:
        artefacts.make(recipe["checkpoint"].as_json(), {}, {}, tmp_path)
    assert raised.value.reason.stored_code == "no_gpu"


def test_more_readers_read_the_same(tmp_path: Path) -> None:
    files = {
        "model": write_classifier(tmp_path / "mine.onnx", side=16, channels=3),
        "images": write_images(tmp_path / "pictures", {"a": 5, "b": 4, "c": 3}),
    }
    one, many = (run(MINE.with_factors(threads=threads), files) for threads in (1, 3))
    assert np.array_equal(one.tables["predictions"]["top1"], many.tables["predictions"]["top1"])


def test_arrays_of_numpy_judge_a_users_model(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).random((5, 3, 16, 16), np.float32)
    np.savez(tmp_path / "set.npz", images=pixels, labels=np.array([0, 1, 2, 0, 1]))
    files = {
        "model": write_classifier(tmp_path / "mine.onnx", side=16, channels=3),
        "images": tmp_path / "set.npz",
    }
    weight = np.linspace(-1, 1, 3 * 16 * 16 * 3, dtype=np.float32).reshape(-1, 3)
    result = run(MINE, files)
    assert result.tables["predictions"]["top1"].tolist() == (pixels.reshape(5, -1) @ weight).argmax(1).tolist()


@pytest.mark.slow
def test_weights_of_another_vocabulary_are_refused_before_they_are_read_beyond_their_end(tmp_path: Path) -> None:
    import torch

    from pybench.models.building import build

    weights = tmp_path / "few.pt"
    torch.save(build("text-encoder", vocabulary=500).state_dict(), weights)
    case = DIGITS.with_factors(model="text-encoder", checkpoint=str(weights), sources=(("checkpoint", "4" * 64),))
    with pytest.raises(InputError, match=r"text-encoder embeds 500 ids, and its data has ids up to 3\d{4}") as found:
        run(case, {"checkpoint": weights})
    assert "leave `checkpoint` out" in (found.value.hint or "")


@pytest.mark.slow
def test_weights_that_are_no_better_than_naive_bayes_have_a_caution(tmp_path: Path) -> None:
    import torch

    from pybench.models.building import build

    weights = tmp_path / "random.pt"
    torch.save(build("text-encoder").state_dict(), weights)
    case = DIGITS.with_factors(
        model="text-encoder", checkpoint=str(weights), sources=(("checkpoint", "5" * 64),), image_limit=64, device="cpu"
    )
    found = [one for one in run(case, {"checkpoint": weights}).cautions if one.metric == "top1_percent"]
    assert [one.code for one in found] == [CautionCode.NO_BETTER_THAN_WITHOUT_A_NETWORK]
    assert found[0].detail.endswith("85.3 % by naive Bayes on counts of ids on stdlib-packages")
