# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import sys

import numpy as np
import pytest

from pybench.models.images.digits import read_digits


def test_the_digits_are_those_of_scikit_learn() -> None:
    from sklearn.datasets import load_digits

    judge = load_digits()
    both = [read_digits("train"), read_digits("validation")]
    assert [len(part) for part in both] == [1347, 450]
    for part in both:
        numbers = [int(name) for name in part.ids]
        assert np.array_equal(part.labels, judge.target[numbers])
        assert np.array_equal(part.load_all()[:, 0] * 16, judge.images[numbers])
    assert not set(both[0].ids) & set(both[1].ids)


@pytest.mark.process
def test_reading_the_digits_does_not_import_scikit_learn() -> None:
    import subprocess

    code = (
        "import sys; from pybench.models.images.digits import read_digits; read_digits('train'); "
        "sys.exit('sklearn' in sys.modules or 'torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_every_class_of_the_digits_judges_about_as_often() -> None:
    counts = np.bincount(read_digits("validation").labels)
    assert len(counts) == 10
    assert counts.min() >= 35
