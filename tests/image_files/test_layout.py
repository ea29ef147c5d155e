# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from pybench.image_files.layout import array_splits, layout_of


@pytest.mark.parametrize(
    ("files", "layout"),
    [
        (["images.npy", "labels.npy", "preview.png"], "arrays"),
        (["val/images.npy", "val/labels.npy", "preview.png"], "arrays"),
        (["data_batch_1.bin", "cat/1.png", "dog/1.png"], "cifar"),
        (["test_batch", "preview.png"], "cifar"),
        (["cat/1.png", "dog/1.png", "preview.png"], "tree"),
        (["notes.txt"], "tree"),
    ],
)
def test_arrays_and_batches_come_before_pictures(tmp_path: Path, files: list[str], layout: str) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert layout_of(tmp_path) == layout


def test_a_npz_is_arrays_and_has_no_splits() -> None:
    assert layout_of(Path("images.npz")) == "arrays"
    assert array_splits(Path("images.npz")) == {}
