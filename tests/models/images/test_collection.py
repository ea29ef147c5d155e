# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import numpy as np

from pybench.models.images.digits import read_digits
from pybench.models.images.folder import read_folder, read_image
from tests.making import write_images


def test_a_limit_keeps_all_classes(tmp_path: Path) -> None:
    write_images(tmp_path, {"a": 10, "b": 10})
    limited = read_folder(tmp_path, "validation", (3, 8, 8)).limited(4)
    assert limited.ids == ("a/00.png", "a/05.png", "b/00.png", "b/05.png")
    assert np.array_equal(limited.read(2), read_image(tmp_path / "b/00.png", 3, 8, 8))


def test_the_last_batch_is_filled_up_with_zeros() -> None:
    digits = read_digits("validation").limited(5)
    parts = list(digits.batches(3))
    assert [part.stop - part.start for part, _ in parts] == [3, 2]
    assert parts[1][1].shape == (3, 1, 8, 8)
    assert not parts[1][1][2].any()
