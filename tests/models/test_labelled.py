# SPDX-License-Identifier: Apache-2.0
"""Which samples of a user's file judge, which calibrate, and what a file without its arrays is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pybench.catalogue.tasks import TASKS
from pybench.errors import InputError
from pybench.models.labelled import calibrating, open_arrays

CLASSES, VALUES = TASKS["classification"], TASKS["regression"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "mine.npz"


def stored(path: Path, samples: int = 20, **more: Any) -> np.ndarray:
    x = np.arange(2 * samples, dtype=np.float32).reshape(samples, 2)
    np.savez(path, **{"x": x, "labels": np.arange(samples) % 3} | more)
    return x


def test_a_fifth_calibrates_and_the_rest_judges(path: Path) -> None:
    x = stored(path)
    judging, training = (open_arrays(path, split, ["x"], CLASSES) for split in ("validation", "train"))
    assert (len(judging), len(training)) == (16, 4)
    assert set(judging.ids).isdisjoint(training.ids)
    both = np.concatenate([each.load(np.arange(len(each))) for each in (judging, training)])
    assert sorted(both.tolist()) == x.tolist()
    rows = [int(name) for name in judging.ids]
    assert rows == sorted(rows)
    assert judging.all_truth().tolist() == [row % 3 for row in rows]
    assert judging.classes == ("0", "1", "2")


def test_groups_are_never_parted(path: Path) -> None:
    groups = np.array([f"patient {i % 6}" for i in range(20)])
    stored(path, groups=groups)
    judging, training = (open_arrays(path, split, ["x"]) for split in ("validation", "train"))
    assert set(judging.groups or ()).isdisjoint(training.groups or ())
    assert len(set(training.groups or ())) == 1
    assert {*(judging.groups or ()), *(training.groups or ())} == set(groups)


def test_the_choice_follows_ids_and_no_order(path: Path) -> None:
    """Labels that repeat with a period of five lose no class to the fifth that calibrates."""
    ids = np.array([f"text-{i}" for i in range(50)])
    chosen = set(ids[calibrating(list(ids))])
    backwards = ids[::-1]
    assert set(backwards[calibrating(list(backwards))]) == chosen
    assert len(chosen) == 10
    assert len({int(name.removeprefix("text-")) % 5 for name in chosen}) > 1


def test_arrays_that_train_calibrate_and_every_sample_judges(path: Path) -> None:
    x = stored(path, train_x=np.ones((7, 2), np.float32), groups=np.arange(20) // 2)
    judging, training = (open_arrays(path, split, ["x"]) for split in ("validation", "train"))
    assert np.array_equal(judging.load(np.arange(20)), x)
    assert training.load(np.arange(7)).tolist() == np.ones((7, 2)).tolist()
    assert len(training) == 7
    assert training.groups is None


def test_several_inputs_are_fed_by_name_and_the_last_batch_repeats_its_last_sample(path: Path) -> None:
    x = stored(path, train_x=np.ones((1, 2), np.float32), y=np.arange(20), train_y=np.ones(1, int))
    fed = list(open_arrays(path, "validation", ["x", "y"]).feeds("x", 8))
    assert [chosen for chosen, _ in fed] == [slice(0, 8), slice(8, 16), slice(16, 20)]
    assert fed[2][1]["y"].tolist() == [16, 17, 18, 19, 19, 19, 19, 19]
    assert np.array_equal(fed[1][1]["x"], x[8:16])


def test_a_limit_keeps_inputs_truth_and_groups_together(path: Path) -> None:
    stored(path, train_x=np.ones((1, 2), np.float32), groups=np.arange(20), ids=np.arange(100, 120))
    some = open_arrays(path, "validation", ["x"], VALUES).limited(5)
    assert some.ids == ("100", "104", "108", "112", "116")
    assert some.groups == ("0", "4", "8", "12", "16")
    assert some.fed("x", np.arange(5))["x"][:, 0].tolist() == [0, 8, 16, 24, 32]
    assert some.all_truth().tolist() == [0.0, 1.0, 2.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("more", "inputs", "said"),
    [
        ({}, ["x", "y"], "has no array y"),
        ({"y": np.zeros(20), "train_y": np.zeros(3)}, ["x", "y"], "has no array train_x"),
        ({"ids": np.zeros(20, int)}, ["x"], "repeat"),
        ({"groups": np.zeros(19, int)}, ["x"], "are not one a sample"),
        ({"groups": np.zeros(20, int)}, ["x"], "has one group, which cannot both calibrate and judge"),
        ({"labels": np.zeros(30)}, ["x"], r"different numbers of rows \(labels: 30, x: 20\)"),
        ({"labels": np.zeros(10)}, ["x"], r"different numbers of rows \(labels: 10, x: 20\)"),
        ({"labels": np.zeros(())}, ["x"], r"no or different numbers of rows \(labels: 0\)"),
        ({"ids": np.array([b"\xff", b"a"] * 10)}, ["x"], "contains no readable arrays"),
        ({"x": np.array([None])}, ["x"], "contains no readable arrays"),
    ],
)
def test_a_file_that_lacks_something_says_so(path: Path, more: dict[str, Any], inputs: list[str], said: str) -> None:
    stored(path, **more)
    with pytest.raises(InputError, match=said):
        open_arrays(path, "validation", inputs)


@pytest.mark.parametrize(("x", "y"), [(3, 4), (0, 0)])
def test_arrays_that_train_have_equally_many_rows(path: Path, x: int, y: int) -> None:
    stored(path, y=np.zeros(20), train_x=np.zeros((x, 2)), train_y=np.zeros(y))
    assert len(open_arrays(path, "validation", ["x", "y"])) == 20
    with pytest.raises(InputError, match=f"train_x: {x}, train_y: {y}"):
        open_arrays(path, "train", ["x", "y"])


def test_ids_of_bytes_are_text(path: Path) -> None:
    ids = [f"p\u00e4tient {i}" for i in range(20)]
    stored(path, ids=np.array([name.encode() for name in ids]), train_x=np.ones((1, 2)))
    assert open_arrays(path, "validation", ["x"]).ids == tuple(ids)


def test_labels_of_text_calibrate(path: Path) -> None:
    stored(path, labels=np.array(["a", "b"] * 10))
    assert len(open_arrays(path, "train", ["x"])) == 4


def test_an_input_may_be_called_ids(path: Path) -> None:
    stored(path, ids=np.zeros((20, 4), int))
    assert len(set(open_arrays(path, "validation", ["ids"]).ids)) == 16
