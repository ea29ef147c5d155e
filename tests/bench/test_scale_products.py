# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.tensorrt import scale_products


def test_rounding_to_fp16_worked_by_hand() -> None:
    """Below 2^-14 FP16 has the multiples of 2^-24 alone."""
    values = np.array([2.75, 0.75, 1.0]) * 2.0**-24
    assert (scale_products.nearest(values) / 2.0**-24).tolist() == [3, 1, 1]
    assert (scale_products.cut_off(values) / 2.0**-24).tolist() == [2, 0, 1]


def test_cutting_products_off_shrinks_the_outputs_unless_scales_are_raised(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scale_products.main([str(tmp_path), "--model", "mlp"])
    plain, raised = capsys.readouterr().out.strip().split("\n\n")
    gains = []
    for table in (plain, raised):
        lines = {line[:22].strip(): [float(word) for word in line[22:].split()] for line in table.splitlines()[1:]}
        assert lines["the file"][0] == 0
        assert lines["exact"][1] < 0.03
        assert lines["cut off in products"] == lines["cut off everywhere"]  # there are no convolutions
        gains.append(lines["cut off in products"][2] - lines["exact"][2])
    assert gains[0] < -0.005
    assert abs(gains[1]) < abs(gains[0]) / 2  # other codes by chance, no trend
