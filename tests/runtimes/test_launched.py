# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch

from pybench.runtimes.launched import kernels_of


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_nothing_is_recorded_and_nothing_called_without_a_gpu() -> None:
    calls: list[int] = []
    assert kernels_of(lambda: calls.append(1)) == []
    assert calls == []
