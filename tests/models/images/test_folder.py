# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from pybench.errors import InputError
from pybench.image_files.tree import has_splits
from pybench.models.images.folder import read_folder
from tests.support.making import write_images


def test_classes_are_numbered_by_sorted_name_and_ids_are_relative_paths(tmp_path: Path) -> None:
    write_images(tmp_path, {"zebra": 1, "ant": 2})
    found = read_folder(tmp_path, "validation", (3, 8, 8))
    assert found.classes == ("ant", "zebra")
    assert found.ids == ("ant/00.png", "ant/01.png", "zebra/00.png")
    assert found.labels.tolist() == [0, 0, 1]


def test_a_folder_without_classes_or_without_images_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="contains no class folders"):
        read_folder(tmp_path, "validation", (3, 8, 8))
    (tmp_path / "cat").mkdir()
    (tmp_path / "dog").mkdir()
    with pytest.raises(InputError, match="contains no images"):
        read_folder(tmp_path, "validation", (3, 8, 8))
    with pytest.raises(InputError, match="is not a readable folder"):
        read_folder(tmp_path / "absent", "validation", (3, 8, 8))


def test_train_beside_val_splits_the_images(tmp_path: Path) -> None:
    write_images(tmp_path / "train", {"a": 3, "b": 3})
    write_images(tmp_path / "val", {"a": 1, "b": 2})
    assert has_splits(tmp_path)
    assert len(read_folder(tmp_path, "train", (3, 8, 8))) == 6
    assert len(read_folder(tmp_path, "validation", (3, 8, 8))) == 3


def test_a_split_without_the_other_is_no_class(tmp_path: Path) -> None:
    write_images(tmp_path / "train", {"a": 1, "b": 1})
    write_images(tmp_path / "held_out", {"a": 1, "b": 1})
    missing = r"has train/ but no val/ or validation/ or test/ or valid/"
    with pytest.raises(InputError, match=missing) as raised:
        read_folder(tmp_path, "validation", (3, 8, 8))
    assert f"give {tmp_path}/train instead" in str(raised.value.hint)
    (tmp_path / "train").rename(tmp_path / "test")
    with pytest.raises(InputError, match="has test/ but no train/"):
        read_folder(tmp_path, "train", (3, 8, 8))
    (tmp_path / "held_out").rename(tmp_path / "train")
    assert len(read_folder(tmp_path, "validation", (3, 8, 8))) == 2


def test_a_class_may_have_the_name_of_a_split(tmp_path: Path) -> None:
    write_images(tmp_path, {"bus": 1, "train": 1})
    assert read_folder(tmp_path, "validation", (3, 8, 8)).classes == ("bus", "train")


@pytest.mark.parametrize(("names", "judges"), [(["valid"], "valid"), (["valid", "test"], "test")])
def test_valid_holds_images_out_unless_there_is_a_usual_name(tmp_path: Path, names: list[str], judges: str) -> None:
    for name in ("train", *names):
        write_images(tmp_path / name, {"a": 1, "b": 1 + (name == judges)})
    assert has_splits(tmp_path)
    assert len(read_folder(tmp_path, "validation", (3, 8, 8))) == 3


def test_folders_of_train_number_the_classes_of_val(tmp_path: Path) -> None:
    write_images(tmp_path / "train", {"a": 1, "b": 1, "c": 1})
    write_images(tmp_path / "val", {"a": 1, "c": 2})
    images = read_folder(tmp_path, "validation", (3, 8, 8))
    assert images.classes == read_folder(tmp_path, "train", (3, 8, 8)).classes == ("a", "b", "c")
    assert images.labels.tolist() == [0, 2, 2]


def test_a_class_that_train_lacks_is_refused_unless_it_is_listed(tmp_path: Path) -> None:
    write_images(tmp_path / "train", {"a": 1, "c": 1})
    write_images(tmp_path / "val", {"a": 1, "b": 1, "c": 1})
    with pytest.raises(InputError, match=r"val has the class folder b, which .*/train lacks") as raised:
        read_folder(tmp_path, "validation", (3, 8, 8))
    assert "classes.txt next to train/ and val/" in str(raised.value.hint)
    assert read_folder(tmp_path, "train", (3, 8, 8)).labels.tolist() == [0, 1]
    (tmp_path / "classes.txt").write_text("a\nb\nc\n")
    assert read_folder(tmp_path, "validation", (3, 8, 8)).labels.tolist() == [0, 1, 2]


def test_hidden_folders_are_no_classes_and_contain_no_pictures(tmp_path: Path) -> None:
    write_images(tmp_path, {".ipynb_checkpoints": 1, "ant": 1, "ant/.ipynb_checkpoints": 1, "bee": 1})
    images = read_folder(tmp_path, "validation", (3, 8, 8))
    assert images.classes == ("ant", "bee")
    assert images.ids == ("ant/00.png", "bee/00.png")


@pytest.mark.parametrize("link", ["val/b", "val/a/more"])
def test_a_link_to_a_folder_that_is_not_here_is_named(tmp_path: Path, link: str) -> None:
    """As in a container that is given the folder alone."""
    for split in ("train", "val"):
        write_images(tmp_path / split, {"a": 1, "b": 1})
    (tmp_path / "val/b").rename(tmp_path / "store")
    (tmp_path / "val/.lock").symlink_to("nobody@nowhere")
    (tmp_path / link).symlink_to(tmp_path / "store")
    assert len(read_folder(tmp_path, "validation", (3, 8, 8))) == 2
    (tmp_path / "store").rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=rf"{link} is a link to {tmp_path}/store, which is not here"):
        read_folder(tmp_path, "validation", (3, 8, 8))


def test_a_list_of_all_classes_numbers_the_folders_of_a_part_of_them(tmp_path: Path) -> None:
    root = write_images(tmp_path / "part", {"n03": 1, "n01": 2})
    (root / "classes.txt").write_text("n01\nn02\nn03\nn04\n", encoding="utf-8-sig")  # as Windows writes it
    images = read_folder(root, "validation", (3, 16, 16))
    assert images.classes == ("n01", "n02", "n03", "n04")
    assert images.labels.tolist() == [0, 0, 2]
    (root / "classes.txt").write_text("n01\nn02\n")
    with pytest.raises(InputError, match=r"classes\.txt does not name the folder n03"):
        read_folder(root, "validation", (3, 16, 16))


def test_a_class_that_is_listed_twice_has_no_number(tmp_path: Path) -> None:
    root = write_images(tmp_path / "part", {"crane": 1, "heron": 1})
    (root / "classes.txt").write_text("crane\nheron\ncrane\n")
    with pytest.raises(InputError, match=r"classes\.txt names crane twice"):
        read_folder(root, "validation", (3, 16, 16))


def test_one_class_tells_nothing_apart_unless_it_is_one_of_a_list(tmp_path: Path) -> None:
    root = write_images(tmp_path / "cats", {"cat": 2})
    with pytest.raises(InputError, match="has one class folder, cat") as raised:
        read_folder(root, "validation", (3, 16, 16))
    assert "two classes or more" in str(raised.value)
    assert "folder/<class>/<image>" in str(raised.value.hint)
    (root / "classes.txt").write_text("bird\ncat\n")
    assert read_folder(root, "validation", (3, 16, 16)).labels.tolist() == [1, 1]
