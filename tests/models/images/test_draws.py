# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np

from pybench.models.images.draws import Draws, hashed


def test_the_hash_is_splitmix64() -> None:
    """The generator's first outputs from the state 1234567, as published with its reference implementation: its state
    advances by the golden gamma before each output, which is what `hashed` adds."""
    states = 1234567 + np.arange(5, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    assert hashed(states).tolist() == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


def test_a_number_belongs_to_its_image_whichever_others_are_drawn_with_it() -> None:
    many, few = Draws(1, 2, np.arange(100)), Draws(1, 2, np.array([40, 7]))
    for name in ("sign", "bell", "direction", "bits"):
        assert np.array_equal(getattr(many, name)()[[40, 7]], getattr(few, name)())


def test_seeds_streams_images_and_draws_differ() -> None:
    drawn = [Draws(seed, stream, np.arange(1000)).bits() for seed, stream in ((1, 1), (1, 2), (2, 1))]
    draws = Draws(1, 1, np.arange(1000))
    draws.bits()
    drawn.append(draws.bits())
    together = np.concatenate(drawn)
    assert len(np.unique(together)) > 0.999 * len(together)  # 24 bits: a few meet by chance


def test_numbers_are_spread_as_they_should_be() -> None:
    """Means and deviations within five standard errors, on 40,000 images."""
    draws = Draws(3, 1, np.arange(40_000))
    error = 40_000**-0.5
    uniform, bell, sign, direction = draws.uniform(-1, 3), draws.bell(), draws.sign(), draws.direction()
    assert abs(float(uniform.mean()) - 1) < 5 * error * 4 / 12**0.5
    assert uniform.min() >= -1
    assert uniform.max() < 3
    assert abs(float(bell.mean())) < 5 * error
    assert abs(float(bell.var()) - 1) < 5 * error * 2**0.5
    assert float(np.abs(bell).max()) <= 2 * 3**0.5
    assert set(sign.tolist()) == {-1.0, 1.0}
    assert np.allclose((direction**2).sum(1), 1, atol=4e-5)
    counts = np.bincount(draws.integer(10), minlength=10)
    assert ((counts - 4000) ** 2 / 4000).sum() < 40  # chi-squared of 9 degrees: beyond it once in 130,000
