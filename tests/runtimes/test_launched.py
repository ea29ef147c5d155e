# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch

from pybench.kernels.launches import profile_of_operators
from pybench.runtimes.launched import covered, launched_by, operators_of


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_nothing_is_recorded_and_nothing_called_without_a_gpu() -> None:
    calls: list[int] = []
    assert launched_by(lambda: calls.append(1)).kernels == ()
    assert calls == []


def test_operators_are_those_that_a_module_calls_and_not_those_that_they_call() -> None:
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten())
    images = torch.ones(1, 3, 8, 8)
    with torch.inference_mode():
        found = operators_of(lambda: module(images))
    assert [name for name, _ in found] == ["conv2d", "relu", "flatten"]
    assert all(time_ms >= 0 for _, time_ms in found)
    profile = profile_of_operators(found)
    assert [kernel.work for kernel in profile.kernels] == ["multiplying", "other", "nothing"]
    assert len(profile.running) == 2


def test_time_in_which_kernels_overlap_counts_once() -> None:
    assert covered([(0, 4), (1, 2), (3, 6), (8, 9)]) == 7
    assert covered([]) == 0
