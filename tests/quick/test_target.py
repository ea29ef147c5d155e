# SPDX-License-Identifier: Apache-2.0
"""What is measured: a name or a file, with a size for each free dimension."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pybench.errors import InputError, UsageError
from pybench.onnx_file.graph import read_model
from pybench.quick.target import IMAGE_SIDE, SEQUENCE, find_target
from tests.support.onnx_files import write
from tests.support.onnx_models import model, save_lengths, save_positions


def test_a_built_in_name_is_itself(tmp_path: Path) -> None:
    target = find_target("resnet50", tmp_path, {})
    assert (target.model, target.file, target.name) == ("resnet50", None, "resnet50")
    with pytest.raises(UsageError, match="--shape: resnet50 is a built-in model"):
        find_target("resnet50", tmp_path, {"image.height": 2})


def test_a_file_is_named_from_the_folder_of_the_plan(tmp_path: Path) -> None:
    path = write("plain", tmp_path / "my models")
    target = find_target(str(path), tmp_path, {})
    assert (target.model, target.name) == ("my models/model.onnx", "model")
    assert target.fed(2) == {"x": (2, 12)}
    assert (target.sizes, target.only_batch) == ({}, None)


def test_a_file_in_a_folder_that_is_called_like_a_library_stays_a_file(tmp_path: Path) -> None:
    assert find_target(str(write("plain", tmp_path / "timm")), tmp_path, {}).model == "./timm/model.onnx"


def test_a_model_of_a_library_is_named_or_is_a_folder_with_its_configuration(tmp_path: Path) -> None:
    named = find_target("timm/resnet50", tmp_path, {})
    assert (named.model, named.name, named.is_of_library, named.config) == (
        "timm/resnet50",
        "timm-resnet50",
        True,
        None,
    )
    (tmp_path / "mine").mkdir()
    config = tmp_path / "mine" / "config.json"
    config.write_text("{}")
    for given in (config.parent, config):
        target = find_target(str(given), tmp_path, {})
        assert (target.model, target.name, target.config) == ("mine/config.json", "mine", config)
        assert target.is_of_library
    assert not find_target("resnet50", tmp_path, {}).is_of_library


def test_a_model_of_a_library_is_fed_by_quick_alone(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--shape: timm/resnet50 is a model of a library"):
        find_target("timm/resnet50", tmp_path, {"x.2": 8})
    with pytest.raises(UsageError, match="--input: timm/resnet50 is a model of a library"):
        find_target("timm/resnet50", tmp_path, {}, tmp_path / "x.npz")


def test_free_sizes_are_guessed_and_said(tmp_path: Path) -> None:
    path = write("free-height-and-width", tmp_path)
    target = find_target(str(path), tmp_path, {})
    assert target.guessed == ("x.height", "x.width")
    assert target.fed(2)["x"][2:] == (IMAGE_SIDE, IMAGE_SIDE)
    stated = find_target(str(path), tmp_path, {"x.height": 16})
    assert stated.guessed == ("x.width",)
    assert stated.fed(1)["x"][2:] == (16, IMAGE_SIDE)
    by_position = find_target(str(path), tmp_path, {"x.2": 16, "x.3": 24})
    assert by_position.guessed == ()
    assert by_position.fed(1)["x"][2:] == (16, 24)


def test_the_sequence_of_ids_is_a_factor_of_its_own(tmp_path: Path) -> None:
    path = write("token-ids", tmp_path)
    name, shape = "", ()
    target = find_target(str(path), tmp_path, {})
    assert target.seq_len == SEQUENCE
    assert target.facts is not None
    name, shape = target.facts.inputs[0].name, target.facts.inputs[0].shape or ()
    stated = find_target(str(path), tmp_path, {f"{name}.{shape[1]}": 32})
    assert (stated.seq_len, stated.sizes) == (32, {})
    with pytest.raises(UsageError, match="is the batch"):
        find_target(str(path), tmp_path, {f"{name}.0": 4})


def test_a_fixed_batch_is_the_only_one(tmp_path: Path) -> None:
    assert find_target(str(write("fixed-batch", tmp_path)), tmp_path, {}).only_batch == 1


def test_arrays_state_batch_sequence_and_sizes(tmp_path: Path) -> None:
    path = write("free-height-and-width", tmp_path)
    channels = int((read_model(path).graph.fed[0].shape or ())[1] or 0)
    np.savez(tmp_path / "a.npz", x=np.zeros((3, channels, 16, 24), np.float32))
    target = find_target(str(path), tmp_path, {}, tmp_path / "a.npz")
    assert target.given is not None
    assert (target.given.named, target.given.batch, target.first_batch) == ("a.npz", 3, 3)
    assert (target.sizes, target.guessed) == ({"x.height": 16, "x.width": 24}, ())
    ids = write("token-ids", tmp_path / "ids")
    (value,) = read_model(ids).graph.fed
    np.savez(tmp_path / "ids.npz", **{value.name: np.zeros((2, 7), np.int64)})
    target = find_target(str(ids), tmp_path, {}, tmp_path / "ids.npz")
    assert (target.seq_len, target.sizes) == (7, {})


def test_arrays_that_are_none_are_told(tmp_path: Path) -> None:
    path = write("plain", tmp_path)
    with pytest.raises(InputError, match=r"--input .*absent.npz: no such file"):
        find_target(str(path), tmp_path, {}, tmp_path / "absent.npz")
    with pytest.raises(InputError, match=r"--input .*model.onnx: it is no \.npz"):
        find_target(str(path), tmp_path, {}, path)
    np.savez(tmp_path / "none.npz", x=np.zeros((0, 3, 8, 8), np.float32))
    with pytest.raises(
        InputError, match=r"--input .*none.npz: its array `x` has no values, but the shape \(0, 3, 8, 8\)"
    ):
        find_target(str(path), tmp_path, {}, tmp_path / "none.npz")


def test_a_name_is_guessed_once_for_all_inputs(tmp_path: Path) -> None:
    import onnx

    node = onnx.helper.make_node("Add", ["a", "b"], ["y"])
    path = tmp_path / "two.onnx"
    inputs = [(name, 1, ["n", "steps", 4]) for name in "ab"]
    onnx.save(model([node], inputs, [("y", 1, ["n", "steps", 4])]), path)
    assert find_target(str(path), tmp_path, {}).sizes == {"a.steps": SEQUENCE}
    assert find_target(str(path), tmp_path, {"b.steps": 7}).fed(2) == {"a": (2, 7, 4), "b": (2, 7, 4)}


def test_fixed_lengths_that_differ_stay(tmp_path: Path) -> None:
    path = save_lengths(tmp_path / "lengths.onnx", 50, 1)
    np.savez(tmp_path / "a.npz", first=np.zeros((3, 50), np.int64), second=np.zeros((3, 1), np.int64))
    for target in (find_target(str(path), tmp_path, {}), find_target(str(path), tmp_path, {}, tmp_path / "a.npz")):
        assert (target.sizes, target.fed(2)) == ({}, {"first": (2, 50), "second": (2, 1)})
        assert target.given is None or target.given.seq_len is None
    mixed = find_target(str(save_lengths(tmp_path / "mixed.onnx", 1, "steps")), tmp_path, {})
    assert mixed.fed(2) == {"first": (2, 1), "second": (2, SEQUENCE)}


def test_a_name_of_batch_or_sequence_is_not_guessed(tmp_path: Path) -> None:
    path = save_positions(tmp_path / "positions.onnx")
    target = find_target(str(path), tmp_path, {})
    assert (target.sizes, target.seq_len) == ({}, SEQUENCE)
    stated = find_target(str(path), tmp_path, {"positions.steps": 7})
    assert (stated.sizes, stated.fed(2)) == ({}, {"positions": (2, 7, 1), "ids": (2, 7)})
    np.savez(tmp_path / "a.npz", positions=np.zeros((3, 7, 1), np.float32), ids=np.zeros((3, 7), np.int64))
    given = find_target(str(path), tmp_path, {}, tmp_path / "a.npz")
    assert (given.sizes, given.seq_len) == ({}, 7)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("empty", "it is empty"),
        ("git-lfs-pointer", "a pointer of Git LFS"),
        ("no-inputs", "it has no input"),
        ("zero-size-input", "has size 0"),
        ("string-input", "the input x is string"),
        ("unranked-input", "states no number of dimensions"),
    ],
)
def test_what_cannot_be_fed_is_one_error(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(InputError) as raised:
        find_target(str(write(name, tmp_path)), tmp_path, {})
    assert said in raised.value.message
    assert raised.value.hint


def test_what_is_neither_a_file_nor_a_name_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file") as raised:
        find_target("resnet51", tmp_path, {})
    assert raised.value.hint == "did you mean `resnet50`?"
    with pytest.raises(InputError, match="no such file") as raised:
        find_target("something", tmp_path, {})
    assert "resnet50, vgg16" in str(raised.value.hint)
