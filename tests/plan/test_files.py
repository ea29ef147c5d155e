# SPDX-License-Identifier: Apache-2.0
"""The user's files: found beside the plan, told apart by content, refused with a reason."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pybench.errors import InputError
from pybench.plan import Plan, files, resolve
from pybench.plan.files import FileProblem, UserFiles, refuse_changed
from tests.support.making import write_classifier
from tests.support.onnx_files import write

Load = Callable[..., Plan]
OWN = "  - {workload: infer, model: MODEL, runtime: onnxruntime}\n"


PICTURES = {"cat/1.png": b"P5 1 1 255\nc", "dog/1.png": b"P5 1 1 255\nd"}  # a grey pixel, whatever the ending says


def images(folder: Path) -> Path:
    for name in ("cat/1.png", "dog/1.png"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(PICTURES[name])
    return folder


def test_an_edited_file_is_another_case(load: Load, tmp_path: Path) -> None:
    content = write_classifier(tmp_path / "own.onnx").read_bytes()
    before = load(OWN.replace("MODEL", "own.onnx")).cases[0]
    write_classifier(tmp_path / "own.onnx", classes=4)
    after = load(OWN.replace("MODEL", "own.onnx")).cases[0]
    assert before.id != after.id
    assert dict(before.sources) == {"model": hashlib.sha256(content).hexdigest()}


def test_weights_beside_a_model_are_part_of_its_case(load: Load, tmp_path: Path) -> None:
    model = write("external-data", tmp_path).name
    weights = tmp_path / "weights.bin"
    content = weights.read_bytes()
    other = bytes(reversed(content))
    assert other != content
    before = load(OWN.replace("MODEL", model)).cases[0]
    weights.write_bytes(other)
    assert load(OWN.replace("MODEL", model)).cases[0].id != before.id
    weights.write_bytes(content)
    assert load(OWN.replace("MODEL", model)).cases[0] == before


def test_two_ways_to_write_a_path_give_one_case(load: Load, tmp_path: Path) -> None:
    write_classifier(tmp_path / "own.onnx")
    assert len(load(OWN.replace("MODEL", "[own.onnx, ./own.onnx, models/../own.onnx]")).cases) == 1


def test_the_resolved_plan_says_where_each_file_is_and_what_was_in_it(load: Load, tmp_path: Path) -> None:
    content = write_classifier(tmp_path / "own.onnx").read_bytes()
    images(tmp_path / "images")
    plan = load(
        "  - {workload: accuracy, model: own.onnx, runtime: onnxruntime, data: {images: images}}\n"
        "  - {workload: noop}\n"
    )
    stored = resolve(plan, plan.cases)["files"]
    assert stored["own.onnx"] == {
        "path": str(tmp_path / "own.onnx"),
        "sha256": hashlib.sha256(content).hexdigest(),
        "bytes": len(content),
        "covers": "content",
    }
    assert stored["images"]["covers"] == "content"
    assert resolve(plan, plan.cases[1:])["files"] == {}


def test_text_means_nothing_for_ones_own_onnx_file(tmp_path: Path, problems: Callable[..., list[str]]) -> None:
    write_classifier(tmp_path / "own.onnx")
    found = problems("  - {workload: infer, model: own.onnx, runtime: onnxruntime, path: rust, seq_len: 8}\n")
    assert [said[:53] for said in found] == ["4:62: `path` has no meaning for an ONNX file of your w"[:53]]


def test_images_that_change_nothing_are_no_part_of_a_case(load: Load, tmp_path: Path) -> None:
    images(tmp_path / "images")
    entry = "  - {workload: infer, model: resnet50, runtime: onnxruntime, precision: [fp32, int8], images: images}\n"
    fp32, int8 = load(entry).cases
    assert (fp32.images, fp32.sources) == (None, ())
    assert int8.images == "images"


def test_a_folders_digest_changes_with_names_and_content(tmp_path: Path) -> None:
    folder = images(tmp_path / "images")
    first = UserFiles(tmp_path).find("images", "images").sha256
    assert first == UserFiles(tmp_path).find("images", "images").sha256
    (folder / "cat/1.png").write_bytes(b"P5 1 1 255\nC")
    second = UserFiles(tmp_path).find("images", "images").sha256
    (folder / "cat/1.png").rename(folder / "cat/2.png")
    third = UserFiles(tmp_path).find("images", "images").sha256
    assert len({first, second, third}) == 3


def test_a_folders_digest_by_hand(tmp_path: Path) -> None:
    images(tmp_path / "images")
    lines = [f"{name}\0{12}\0{hashlib.sha256(content).hexdigest()}\n" for name, content in PICTURES.items()]
    found = UserFiles(tmp_path).find("images", "images")
    assert found.sha256 == hashlib.sha256("".join(lines).encode()).hexdigest()
    assert found.bytes == 24


def test_the_digest_of_a_usual_folder_stays_what_it_was(tmp_path: Path) -> None:
    """It is part of the ids of cases in campaigns that are there already."""
    parts = {"train/cat/1.png": b"a", "train/dog/deep/1.png": b"b", "val/cat/1.png": b"c", "val/dog/1.png": b"d"}
    usual = {name: b"P5 1 1 255\n" + pixel for name, pixel in parts.items()}
    for name, content in (usual | {"val/dog/notes.txt": b"notes\n", "README.md": b"read me\n"}).items():
        (tmp_path / "images" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "images" / name).write_bytes(content)
    found = UserFiles(tmp_path).find("images", "images")
    assert found.sha256 == "ad7d758871420058dd0d82f4db8e61c3f6c8ae7af81d4f053cdaeda9350f2fb7"


@pytest.mark.parametrize(("empty", "is_other"), [("train/bee", True), ("val/cat", False)])
def test_an_empty_folder_that_numbers_classes_belongs_to_the_digest(tmp_path: Path, empty: str, is_other: bool) -> None:
    folder = tmp_path / "images"
    images(folder / "train")
    shutil.rmtree(images(folder / "val") / "cat")
    before = UserFiles(tmp_path).find("images", "images").sha256
    (folder / empty).mkdir()
    assert (UserFiles(tmp_path).find("images", "images").sha256 != before) == is_other
    (folder / "classes.txt").write_text("bee\ncat\ndog\n")
    listed = UserFiles(tmp_path).find("images", "images").sha256
    (folder / empty).rmdir()
    assert UserFiles(tmp_path).find("images", "images").sha256 == listed


def test_an_empty_class_folder_without_splits_belongs_to_the_digest(tmp_path: Path) -> None:
    before = UserFiles(tmp_path).find("images", images(tmp_path / "images").name)
    (tmp_path / "images/bee").mkdir()
    assert UserFiles(tmp_path).find("images", "images").sha256 != before.sha256


def test_hidden_folders_are_no_images(tmp_path: Path) -> None:
    plain = UserFiles(tmp_path).find("images", images(tmp_path / "images").name)
    (tmp_path / "images/cat/.ipynb_checkpoints").mkdir()
    (tmp_path / "images/cat/.ipynb_checkpoints/1-checkpoint.png").write_bytes(PICTURES["cat/1.png"])
    assert UserFiles(tmp_path).find("images", "images") == plain


@pytest.mark.parametrize("link", ["images/val/dog", "images/val"])
def test_pictures_behind_a_link_are_digested_as_the_same_pictures_without(tmp_path: Path, link: str) -> None:
    for split in ("train", "val"):
        images(tmp_path / "images" / split)
    plain = UserFiles(tmp_path).find("images", "images")
    (tmp_path / link).rename(tmp_path / "store")
    (tmp_path / link).symlink_to(tmp_path / "store")
    assert UserFiles(tmp_path).find("images", "images") == plain
    changed = next((tmp_path / "store").rglob("1.png"))
    changed.write_bytes(b"P5 1 1 255\nC")
    assert UserFiles(tmp_path).find("images", "images").sha256 != plain.sha256


def test_a_folder_whose_splits_are_links_has_its_files(tmp_path: Path) -> None:
    for split in ("train", "val"):
        images(tmp_path / "store" / split)
    (tmp_path / "images").mkdir()
    for split in ("train", "val"):
        (tmp_path / "images" / split).symlink_to(f"../store/{split}")
    assert UserFiles(tmp_path).find("images", "images") == replace(
        UserFiles(tmp_path).find("images", "store"), path=tmp_path / "images"
    )


def test_a_link_to_a_folder_that_contains_it_is_named(tmp_path: Path) -> None:
    """Also where two folders contain links to each other."""
    folder = images(tmp_path / "images")
    (folder / "cat/up").symlink_to("..")
    assert refusal(tmp_path, "images", "images") == f"`images`: {folder}/cat/up is a link to a folder that contains it"
    (folder / "cat/up").unlink()
    (folder / "cat/other").symlink_to("../dog")
    assert UserFiles(tmp_path).find("images", "images").bytes == 36
    (folder / "dog/other").symlink_to("../cat")
    assert "other/other is a link to a folder that contains it" in refusal(tmp_path, "images", "images")


def test_a_link_among_texts_is_no_text_and_may_lead_anywhere(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts/a.txt").write_text("text")
    plain = UserFiles(tmp_path).find("corpus", "texts")
    (tmp_path / "texts/up").symlink_to("..")
    assert UserFiles(tmp_path).find("corpus", "texts") == plain


def test_pictures_that_no_run_could_use_are_told_with_the_plan(
    problems: Callable[..., list[str]], tmp_path: Path
) -> None:
    folder = images(tmp_path / "images")
    entry = "  - {workload: accuracy, model: resnet50, runtime: onnxruntime, images: images}\n"
    (folder / "dog/1.png").write_bytes(b"P5 1 1 65535\ndd")
    [said] = problems(entry)
    assert said.startswith("4:73: `images`: ")
    assert "dog/1.png has more than 8 bits a channel (store it again with 8 bits a channel)" in said
    shutil.rmtree(folder / "dog")
    [said] = problems(entry)
    assert "has one class folder, cat, and images are told apart by two classes or more (lay images out as" in said


def test_headers_of_a_large_folder_are_left_to_the_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "WHOLE_BYTES", 24)
    folder = images(tmp_path / "images")
    (folder / "dog/1.png").write_bytes(b"no image at all")
    assert UserFiles(tmp_path).find("images", "images").covers == "names and sizes"


def test_a_large_folder_is_told_apart_by_names_and_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "WHOLE_BYTES", 24)
    folder = images(tmp_path / "images")
    before = UserFiles(tmp_path).find("images", "images")
    (folder / "cat/1.png").write_bytes(b"P5 1 1 255\nC")
    assert before.covers == "names and sizes"
    assert UserFiles(tmp_path).find("images", "images").sha256 == before.sha256
    (folder / "cat/1.png").write_bytes(b"P5 1 2 255\nCC")
    assert UserFiles(tmp_path).find("images", "images").sha256 != before.sha256


@pytest.mark.parametrize("files_beside", [("images.npy", "labels.npy"), ("test_batch.bin",), ("data_batch_1",)])
def test_a_picture_next_to_arrays_or_batches_is_no_image_of_the_set(
    tmp_path: Path, files_beside: tuple[str, ...]
) -> None:
    (tmp_path / "set").mkdir()
    for name in (*files_beside, "preview.png"):
        (tmp_path / "set" / name).write_bytes(b"content")
    assert UserFiles(tmp_path).find("images", "set").covers == "content"


def test_weights_are_read_whole_however_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two trainings of one model have the same names and sizes."""
    monkeypatch.setattr(files, "WHOLE_BYTES", 4)
    (tmp_path / "weights").mkdir()
    found = []
    for content in (b"first training", b"other training"):
        (tmp_path / "weights/model.safetensors").write_bytes(content)
        found.append(UserFiles(tmp_path).find("checkpoint", "weights"))
    assert found[0].sha256 != found[1].sha256
    assert [one.covers for one in found] == ["content", "content"]


def test_weights_next_to_a_model_are_read_whole_however_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "WHOLE_BYTES", 4)
    model = write("external-data", tmp_path).name
    before = UserFiles(tmp_path).find("model", model)
    content = (tmp_path / "weights.bin").read_bytes()
    (tmp_path / "weights.bin").write_bytes(bytes(reversed(content)))
    assert UserFiles(tmp_path).find("model", model).sha256 != before.sha256


def refusal(folder: Path, factor: str, value: str) -> str:
    with pytest.raises(FileProblem) as raised:
        UserFiles(folder).find(factor, value)
    return raised.value.what


def test_what_is_no_file_or_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.onnx").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("text")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    assert refusal(tmp_path, "model", "empty.onnx").startswith("`model`: empty.onnx is empty")
    assert refusal(tmp_path, "model", "folder") == "`model`: folder is a folder without config.json"
    assert refusal(tmp_path, "images", "folder") == "`images`: folder contains no files"
    assert refusal(tmp_path, "images", "text") == "`images`: text is a file"
    assert refusal(tmp_path, "corpus", "pipe") == "`corpus`: pipe is not a regular file"
    assert "no such file" in refusal(tmp_path, "tokenizer", "text/tokenizer.json")
    assert "cannot be read" in refusal(tmp_path, "model", "loop")
    assert "cannot be read" in refusal(tmp_path, "model", "x" * 300)


def test_a_file_that_this_user_may_not_read_is_told() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        write("unreadable", Path(folder))
        own = os.geteuid()
        os.seteuid(own or 65534)  # root reads everything
        try:
            with pytest.raises(FileProblem) as raised:
                UserFiles(Path(folder)).find("model", "model.onnx")
        finally:
            os.seteuid(own)
    assert raised.value.what == f"`model`: {folder}/model.onnx cannot be read: Permission denied"
    assert raised.value.hint == "let this user read it (chmod)"


def test_files_that_changed_are_refused_and_absent_ones_left_to_the_runs(load: Load, tmp_path: Path) -> None:
    model = write("external-data", tmp_path).name
    images(tmp_path / "pictures")
    (tmp_path / "weights.pt").write_bytes(b"one")
    (tmp_path / "text.txt").write_text("one\n" * 100)
    entries = (
        f"  - {{workload: infer, model: {model}, runtime: onnxruntime}}\n"
        "  - {workload: accuracy, model: digits-cnn, runtime: torch, images: pictures, checkpoint: weights.pt}\n"
        "  - {workload: train, model: tinylm-tiny, runtime: torch, corpus: text.txt, path: rust, seq_len: 32}\n"
    )
    plan = load(entries)
    paths = {value: str(file.path) for value, file in plan.files.items()}
    refuse_changed(plan.cases, paths)
    for content, told in {
        "weights.bin": model,
        "pictures/cat/1.png": "pictures",
        "weights.pt": "weights.pt",
        "text.txt": "text.txt",
    }.items():
        path = tmp_path / content
        before = path.read_bytes()
        path.write_bytes(bytes([*before[:-1], before[-1] ^ 1]))
        with pytest.raises(InputError) as error:
            refuse_changed(plan.cases, paths)
        assert error.value.message == f"{tmp_path / told} has changed since the plan was read"
        path.write_bytes(before)
    (tmp_path / "weights.pt").write_bytes(b"two")
    (tmp_path / "text.txt").write_bytes(b"")
    with pytest.raises(InputError, match=r"text.txt is empty"):
        refuse_changed(plan.cases, paths)
    (tmp_path / "text.txt").write_text("two\n" * 100)
    with pytest.raises(InputError, match=r"text.txt, .*weights.pt have changed"):
        refuse_changed(plan.cases, paths)
    refuse_changed(plan.cases[:1], paths)
    (tmp_path / "weights.pt").unlink()
    (tmp_path / "text.txt").unlink()
    refuse_changed(plan.cases, paths)


def test_a_large_folder_has_not_changed_where_names_and_sizes_are_alike(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "WHOLE_BYTES", 20)
    picture = images(tmp_path / "pictures") / "cat/1.png"
    plan = load("  - {workload: accuracy, model: digits-cnn, runtime: torch, images: pictures}\n")
    paths = {value: str(file.path) for value, file in plan.files.items()}
    picture.write_bytes(b"P5 1 1 255\nx")
    refuse_changed(plan.cases, paths)
    picture.write_bytes(b"P5 1 1 255\nxx")
    with pytest.raises(InputError, match="pictures has changed since the plan was read"):
        refuse_changed(plan.cases, paths)
