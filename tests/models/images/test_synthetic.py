# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import hashlib

import numpy as np
import pytest

from pybench.models.images import synthetic
from pybench.models.images.generated import open_synthetic
from pybench.models.images.rendering import render

SMALL = (3, 32, 32)


def test_labels_are_those_of_the_scenes_and_every_class_judges() -> None:
    numbers = np.arange(synthetic.VALIDATION_IMAGES)
    labels = synthetic.labels_of("validation", numbers)
    assert np.array_equal(labels[:50], synthetic.draw_scenes("validation", numbers[:50]).labels)
    counts = np.bincount(labels, minlength=synthetic.CLASSES)
    assert len(counts) == 100
    assert counts.min() >= 25  # 50 expected, drawn independently


def test_the_splits_have_no_image_in_common() -> None:
    train = synthetic.draw_scenes("train", np.arange(500))
    judges = synthetic.draw_scenes("validation", np.arange(500))
    assert not set(train.noise_key.tolist()) & set(judges.noise_key.tolist())


def test_traits_alone_reach_the_ceiling_and_nothing_beats_it() -> None:
    """Who sees the lobes, the texture's family and both traits decides each trait at the middle of the two centres."""
    scenes = synthetic.draw_scenes("validation", np.arange(20_000))
    main = scenes.objects[1]
    shape = (main.lobes - 2) * 2 + (main.trait > 0)
    surface = main.texture.family * 2 + (main.texture.trait > 0)
    share = float((shape * synthetic.MEMBERS + surface == scenes.labels).mean())
    expected = synthetic.ceiling()
    assert 0.90 < expected < 0.95
    assert abs(share - expected) < 4 * (expected * (1 - expected) / 20_000) ** 0.5


def test_the_ceiling_falls_with_the_difficulty() -> None:
    assert synthetic.ceiling(0.0) == synthetic.ceiling(0.28) == 1.0
    assert synthetic.ceiling(0.4) > synthetic.ceiling(0.5) > synthetic.ceiling(0.57)
    with pytest.raises(ValueError, match="beyond"):
        synthetic.ceiling(0.6)


def test_the_images_that_judge_are_the_same_bytes_everywhere() -> None:
    """A change of these digests is another data set: then its name changes too."""
    digests = {
        size: hashlib.sha256(
            b"".join(
                render(synthetic.draw_scenes("validation", [i]), size, size).astype(np.uint8).tobytes()
                for i in range(20)
            )
        ).hexdigest()
        for size in (32, 224)
    }
    assert digests == {
        32: "848a9937fb33b5657b3dd93ba5c5b623d242dade9ec43960b8fba3cad3603874",
        224: "7e0ae1f0326e2d060802fbad9946e7fd8fe2df1e5038b716dc8a9a7d43d159c9",
    }


def test_an_image_is_the_same_alone_and_among_others() -> None:
    numbers = np.array([3, 900, 17])
    together = render(synthetic.draw_scenes("validation", numbers), 32, 48)
    assert together.shape == (3, 3, 32, 48)
    for place, number in enumerate(numbers):
        assert np.array_equal(together[place], render(synthetic.draw_scenes("validation", [number]), 32, 48)[0])


@pytest.mark.slow
def test_low_level_statistics_do_not_tell_the_class() -> None:
    """Ridge regression on colours, contrasts, edge strengths and a 4x4 thumbnail: below five times chance of 1 %."""

    def features(split: str, count: int) -> np.ndarray:
        pixels = render(synthetic.draw_scenes(split, np.arange(count)), 32, 32) / np.float32(255)
        across, down = np.abs(np.diff(pixels, axis=3)), np.abs(np.diff(pixels, axis=2))
        thumbnail = pixels.reshape(count, 3, 4, 8, 4, 8).mean((3, 5)).reshape(count, -1)
        moments = [each.mean((2, 3)) for each in (pixels, pixels**2, across, down, across**2, down**2)]
        return np.concatenate([np.ones((count, 1)), *moments, thumbnail], axis=1)

    train, judges = features("train", 4000), features("validation", 1000)
    wanted = np.eye(100)[synthetic.labels_of("train", np.arange(4000))]
    weights = np.linalg.solve(train.T @ train + 1e-2 * np.eye(train.shape[1]), train.T @ wanted)
    hits = (judges @ weights).argmax(1) == synthetic.labels_of("validation", np.arange(1000))
    assert hits.mean() < 0.05


def test_as_a_data_set_it_is_normalised_and_named_by_split() -> None:
    judges, train = open_synthetic("validation", SMALL), open_synthetic("train", SMALL)
    assert (len(judges), len(train)) == (5_000, 10_000)
    assert judges.ids[1] == "validation-00001"
    assert len(judges.classes) == 100
    image = judges.read(7)
    assert (image.shape, image.dtype) == (SMALL, np.float32)
    assert -2.2 < image.min() < image.max() < 2.7
    assert not np.array_equal(image, train.read(7))
    assert open_synthetic("validation", (1, 8, 8)).read(7).max() <= 1
    assert np.array_equal(judges.limited(10).read(3), judges.read(1500))
