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
    assert [call.name for call in found] == ["conv2d", "relu", "flatten"]
    assert all(call.time_ms >= 0 for call in found)
    profile = profile_of_operators(found)
    assert [kernel.work for kernel in profile.kernels] == ["multiplying", "other", "nothing"]
    assert len(profile.running) == 2


def test_an_operator_that_has_to_copy_moves_and_one_that_gives_a_view_does_nothing() -> None:
    images = torch.ones(2, 4, 8, 8)
    turned = images.permute(0, 2, 3, 1)

    def call() -> None:
        for given in (images, turned):
            given.reshape(2, -1)
            given.flatten(1)
            given.contiguous()
        images.to(torch.float32)
        images.to(torch.float64)

    works = [kernel.work for kernel in profile_of_operators(operators_of(call)).kernels]
    assert works == ["nothing"] * 2 + ["moving"] * 3 + ["nothing", "moving"]


def test_interpolation_is_no_product_and_a_layer_of_products_is() -> None:
    images = torch.ones(1, 2, 4, 4)

    def call() -> None:
        torch.nn.functional.interpolate(images, scale_factor=2, mode="bilinear")
        torch.nn.functional.linear(images, images[0, 0])
        torch.mm(images[0, 0], images[0, 0])

    works = {call.kernel: call.work for call in profile_of_operators(operators_of(call)).kernels}
    assert works["upsample_bilinear2d"] == "other"
    assert works["linear"] == works["mm"] == "multiplying"


def test_time_in_which_kernels_overlap_counts_once() -> None:
    assert covered([(0, 4), (1, 2), (3, 6), (8, 9)]) == 7
    assert covered([]) == 0
