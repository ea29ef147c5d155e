# SPDX-License-Identifier: Apache-2.0
"""Batches are written here opcode by opcode, as Python 2 wrote those of CIFAR-10."""

from __future__ import annotations

import pickle
import struct
from pathlib import Path

import numpy as np
import pytest

from pybench.errors import InputError
from pybench.models.images import has_splits, open_images
from pybench.models.images.cifar import IMAGE_BYTES, SHAPE
from tests.models.images.test_cifar import write_batch


def text(value: bytes) -> bytes:
    """A string of Python 2: SHORT_BINSTRING or BINSTRING."""
    return (b"U" + bytes([len(value)]) if len(value) < 256 else b"T" + struct.pack("<i", len(value))) + value


def array(content: bytes, shape: tuple[int, int], code: bytes = b"u1") -> bytes:
    """numpy's reduction: an empty array of a type, then its state."""
    empty = b"cnumpy.core.multiarray\n_reconstruct\n" + b"cnumpy\nndarray\n" + b"K\x00\x85" + text(b"b") + b"\x87R"
    kind = b"cnumpy\ndtype\n" + text(code) + b"K\x00K\x01\x87R"
    kind += b"(K\x03" + text(b"|") + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    size = b"".join(b"J" + struct.pack("<i", side) for side in shape) + b"\x86"
    return empty + b"(K\x01" + size + kind + b"\x89" + text(content) + b"tb"


def python_batch(pixels: np.ndarray, labels: list[int], code: bytes = b"u1") -> bytes:
    listed = b"](" + b"".join(b"J" + struct.pack("<i", label) for label in labels) + b"e"
    items = text(b"data") + array(pixels.tobytes(), pixels.shape, code) + text(b"labels") + listed
    return b"\x80\x02}(" + items + text(b"batch_label") + text(b"testing batch 1 of 1") + b"u."


@pytest.fixture
def pixels() -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, (3, IMAGE_BYTES), np.uint8)


def test_both_versions_of_the_same_images_are_the_same_images(tmp_path: Path) -> None:
    binary, pickled = tmp_path / "bin", tmp_path / "py"
    binary.mkdir()
    pickled.mkdir()
    for stem, labels, seed in (("data_batch_1", [3, 9], 1), ("test_batch", [0], 2)):
        stored = write_batch(binary / f"{stem}.bin", labels, seed).reshape(-1, IMAGE_BYTES)
        (pickled / stem).write_bytes(python_batch(stored, labels))
    (binary / "batches.meta.txt").write_text("cat\ndog\n" + "\n".join("cdefghij") + "\n")
    names = b"".join(text(name) for name in [b"cat", b"dog", *(bytes([each]) for each in b"cdefghij")])
    (pickled / "batches.meta").write_bytes(b"\x80\x02}(" + text(b"label_names") + b"](" + names + b"eu.")
    assert has_splits(pickled)
    for split in ("train", "validation"):
        one, other = (open_images(root, split, (3, 40, 40)) for root in (binary, pickled))
        assert one.ids == other.ids
        assert one.classes == other.classes
        assert one.labels.tolist() == other.labels.tolist()
        assert np.array_equal(one.load_all(), other.load_all())


def test_what_python_3_pickled_is_read_too(tmp_path: Path, pixels: np.ndarray) -> None:
    stored = {"data": pixels, "labels": [1, 2, 3]}
    (tmp_path / "test_batch").write_bytes(pickle.dumps(stored, protocol=4))
    assert open_images(tmp_path, "validation", SHAPE).labels.tolist() == [1, 2, 3]


class _Hostile:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> object:
        return Path.touch, (self.path,)


def test_a_pickle_that_asks_for_code_is_refused_and_runs_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    (tmp_path / "test_batch").write_bytes(pickle.dumps({"data": _Hostile(mark), "labels": [1]}))
    with pytest.raises(InputError, match=r"test_batch is not a readable batch of CIFAR-10 \(it asks for ") as raised:
        open_images(tmp_path, "validation", SHAPE)
    assert raised.value.hint is not None
    assert not mark.exists()


@pytest.mark.parametrize("cut", [0, 1, 40, 200, -1])
def test_a_cut_file_is_named(tmp_path: Path, pixels: np.ndarray, cut: int) -> None:
    (tmp_path / "test_batch").write_bytes(python_batch(pixels, [1, 2, 3])[:cut])
    with pytest.raises(InputError, match="test_batch is not a readable batch"):
        open_images(tmp_path, "validation", SHAPE)


def test_other_arrays_and_other_numbers_of_labels_are_refused(tmp_path: Path, pixels: np.ndarray) -> None:
    path = tmp_path / "test_batch"
    for content, message in (
        (python_batch(pixels, [1, 2]), r"`data` is \[3, 3072\] and `labels` \[2\]"),
        (python_batch(pixels[:, :100], [1, 2, 3]), r"`data` is \[3, 100\]"),
        (python_batch(pixels, [1, 2, 3], code=b"f4"), "no array of uint8"),
        (python_batch(pixels, [1, 2, -3]), "labels image 2 with -3"),
        (pickle.dumps([1, 2]), "not a readable batch"),
        (pickle.dumps({"data": 1, "labels": 2}), "no batch of CIFAR-10"),
    ):
        path.write_bytes(content)
        with pytest.raises(InputError, match=message):
            open_images(tmp_path, "validation", SHAPE)
