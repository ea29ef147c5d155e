# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pybench.errors import InputError
from pybench.onnx_file.graph import Value
from pybench.onnx_file.ranges import IntegerRange
from pybench.onnx_file.stored_arrays import StoredArray, misfit_of_arrays, read_headers

INPUTS = (Value("x", "tensor", "float32", ("n", 3)), Value("ids", "tensor", "int64", ("n", 2)))
SHAPES = {"x": (2, 3), "ids": (2, 2)}
RANGES = {"ids": IntegerRange(0, 7, "embed (Gather)", wraps=True)}
GOOD = {"x": np.zeros((2, 3), np.float32), "ids": np.full((2, 2), 6)}


def said(path: Path, **arrays: Any) -> str:
    np.savez(path, **arrays)
    found = misfit_of_arrays(path, INPUTS, SHAPES, RANGES)
    return "" if found is None else f"{found.what} ({found.hint})"


def test_headers_are_those_of_numpy(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, scalar=np.float16(1), **{"a/b": np.zeros((0, 2), bool)})
    assert read_headers(path) == {"scalar": StoredArray("float16", ()), "a/b": StoredArray("bool", (0, 2))}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, ""),
        ({"ids": None}, "it has no array ids (the model's inputs are x, ids)"),
        ({"y": np.zeros(1)}, "the model has no input y (its inputs are x, ids)"),
        (
            {"x": np.zeros((2, 3))},
            'x is float64, the model takes float32 (store it as that: array.astype("float32"))',
        ),
        (
            {"x": np.zeros((4, 3), np.float32)},
            "x is [4, 3], this case feeds [2, 3] (set batch: 4, or store 2 samples)",
        ),
        (
            {"x": np.zeros((2, 4), np.float32)},
            "x is [2, 4], this case feeds [2, 3] (store an array of that shape, or set batch, seq_len and shapes to",
        ),
        (
            {"ids": np.full((2, 2), 7)},
            "ids has numbers from 7 to 7, and embed (Gather) accepts -7 to 6 (store numbers that it accepts)",
        ),
        ({"ids": np.full((2, 2), -7)}, ""),  # from the end of the table
        ({"x": np.array([None])}, "x is object, the model takes float32"),
    ],
)
def test_what_does_not_fit_is_said(tmp_path: Path, change: dict[str, Any], expected: str) -> None:
    arrays = {name: array for name, array in (GOOD | change).items() if array is not None}
    found = said(tmp_path / "a.npz", **arrays)
    assert found.startswith(expected) if expected else found == ""


def test_bfloat16_is_stored_as_its_bits(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    inputs = (Value("x", "tensor", "bfloat16", (2,)),)
    for array in (np.ones(2, ml_dtypes.bfloat16), np.ones(2, np.uint16)):
        np.savez(path, x=array)
        assert misfit_of_arrays(path, inputs, {"x": (2,)}, {}) is None
    np.savez(path, x=np.ones(2, np.float16))
    assert misfit_of_arrays(path, inputs, {"x": (2,)}, {}) is not None


@pytest.mark.parametrize(
    ("taken", "ids", "expected"),
    [
        (IntegerRange(0, 7, "bert", wraps=False), [-1, 3], "numbers from -1 to 3, and bert accepts 0 to 6"),
        (IntegerRange(0, 7, "bert", wraps=False), [0, 6], ""),
        (IntegerRange(0, 7, "table", wraps=True), [-8, 3], "numbers from -8 to 3, and table accepts -7 to 6"),
        (IntegerRange(1, 3, "half", is_bounded=False), [10, -10_000], ""),
        (IntegerRange(1, 3, "half", is_bounded=False), [0, 5], "from 0 to 5, and half accepts every number but 0"),
        (IntegerRange(1, 3, "half", is_bounded=False), [9, 0, -9], "from -9 to 9, also 0, and half accepts every"),
        (IntegerRange(1, 7, "both", wraps=True), [-7, 6], ""),
        (IntegerRange(1, 7, "both", wraps=True), [-7, 0, 6], "also 0, and both accepts -7 to 6 but not 0"),
        (IntegerRange(1, 7, "both", wraps=True), [1, 7], "numbers from 1 to 7, and both accepts -7 to 6 but not 0"),
    ],
)
def test_integers_are_those_that_a_node_accepts(
    tmp_path: Path, taken: IntegerRange, ids: list[int], expected: str
) -> None:
    np.savez(tmp_path / "a.npz", ids=np.array(ids))
    value = Value("ids", "tensor", "int64", (len(ids),))
    found = misfit_of_arrays(tmp_path / "a.npz", (value,), {"ids": (len(ids),)}, {"ids": taken})
    assert expected in found.what if found and expected else (found is None) is (expected == "")


@pytest.mark.parametrize("kind", ["<i8", ">i8", "<i2", "u1"])
def test_integers_of_any_width_and_order_are_judged(tmp_path: Path, kind: str) -> None:
    value = Value("ids", "tensor", np.dtype(kind).name, (300_000,))
    ids = np.random.default_rng(0).integers(0, 7, 300_000).astype(kind)
    for last, fits in ((6, True), (7, False)):
        ids[-1] = last
        np.savez_compressed(tmp_path / "a.npz", ids=ids)
        found = misfit_of_arrays(tmp_path / "a.npz", (value,), {"ids": (300_000,)}, RANGES)
        assert (found is None) is fits


@pytest.mark.parametrize("kind", ["<f2", "<f4", ">f4", "<f8", ">f2", "bfloat16"])
@pytest.mark.parametrize(
    ("odd", "expected"),
    [
        ([], ""),
        ([np.nan, np.nan, np.inf], "x is not finite: of its 600000 numbers are 2 NaN, 1 inf"),
        ([-np.inf], ""),  # a mask
        ([-np.inf, np.inf], "x is not finite: of its 600000 numbers are 1 inf, 1 -inf"),
    ],
)
def test_floats_are_finite_but_for_masks(tmp_path: Path, kind: str, odd: list[float], expected: str) -> None:
    array = np.full(600_000, 2.0, np.float32)
    array[len(array) - len(odd) :] = odd
    element = "bfloat16" if kind == "bfloat16" else np.dtype(kind).name
    np.savez(tmp_path / "a.npz", x=array.astype(ml_dtypes.bfloat16 if kind == "bfloat16" else kind))
    value = Value("x", "tensor", element, array.shape)
    found = misfit_of_arrays(tmp_path / "a.npz", (value,), {"x": array.shape}, {})
    assert ("" if found is None else found.what) == expected


def test_a_mask_of_nothing_is_refused_and_large_finite_numbers_are_not(tmp_path: Path) -> None:
    value = Value("x", "tensor", "float64", (4,))
    for number, is_fed in ((-np.inf, False), (1e308, True)):
        np.savez(tmp_path / "a.npz", x=np.full(4, number))
        assert (misfit_of_arrays(tmp_path / "a.npz", (value,), {"x": (4,)}, {}) is None) is is_fed
        (tmp_path / "a.npz").unlink()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 and no more", b"no archive at all"])
def test_a_file_that_is_none_is_told(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"it is no \.npz of numpy"):
        read_headers(path)
    found = misfit_of_arrays(path, INPUTS, SHAPES, {})
    assert found is not None
    assert "no .npz" in found.what


def test_a_truncated_file_is_told(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **GOOD)
    content = (tmp_path / "a.npz").read_bytes()
    for end in range(0, len(content), 23):
        (tmp_path / "b.npz").write_bytes(content[:end])
        found = misfit_of_arrays(tmp_path / "b.npz", INPUTS, SHAPES, RANGES)
        assert found is not None


def test_a_member_that_is_no_array_is_told(tmp_path: Path) -> None:
    import zipfile

    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.txt", "words")
    with pytest.raises(InputError, match=r"it is no \.npz"):
        read_headers(tmp_path / "a.npz")
