# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
import torch

from pybench.models.images.rendering import render
from pybench.models.images.synthetic import Scenes, draw_scenes


@pytest.mark.parametrize("size", [(8, 8), (32, 32), (40, 72)])
def test_torch_draws_the_same_bytes_as_numpy(size: tuple[int, int]) -> None:
    scenes = draw_scenes("validation", np.arange(60))
    drawn = render(scenes, *size)
    assert drawn.dtype == np.float32
    assert np.array_equal(drawn, np.round(drawn))
    assert 0 <= drawn.min() < 50
    assert 200 < drawn.max() <= 255
    assert np.array_equal(drawn, render(scenes, *size, torch, torch.from_numpy).numpy())


def test_an_outline_has_the_lobes_of_its_class() -> None:
    """The outline of each object, followed around its centre, crosses its mean radius twice a lobe."""
    from pybench.models.images.rendering import _Painter

    scenes: Scenes = draw_scenes("validation", np.arange(100))
    angle = (np.arange(720, dtype=np.float32) + np.float32(0.5)) * np.float32(2 * np.pi / 720)
    radius = _Painter(np, np.asarray).outline(scenes.objects[1], np.cos(angle)[np.newaxis, np.newaxis, :])[:, 0]
    lobes = scenes.objects[1].lobes
    strength = np.abs(np.fft.rfft(radius))[:, 1:]
    assert np.array_equal(strength.argmax(1) + 1, lobes)
    assert radius.min() > 0.2
