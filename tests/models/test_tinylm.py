# SPDX-License-Identifier: Apache-2.0
"""Logits from a cache of keys and values against those of whole sequences: the slow way is the judge."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from pybench.models.tinylm import TinyLm
from tests.support.generation import small_decoder

SAMPLES, TOKENS, CAPACITY, IDS = 3, 24, 40, 97
# Sums of the same terms in another order: some tens of FP32's steps of 6e-8, on logits of about 4.
TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def model() -> TinyLm:
    return small_decoder(IDS)


@pytest.fixture(scope="module")
def ids() -> Tensor:
    return torch.randint(0, IDS, (SAMPLES, TOKENS), generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="module")
def expected(model: TinyLm, ids: Tensor) -> Tensor:
    with torch.inference_mode():
        return model.every_position(ids)


def close(found: Tensor, expected: Tensor) -> bool:
    assert expected.abs().max() > 1
    return bool((found - expected).abs().max() < TOLERANCE)


@torch.inference_mode()
@pytest.mark.parametrize("known", [True, False], ids=["past known on the host", "past read on the device"])
def test_logits_with_the_cache_equal_those_without(model: TinyLm, ids: Tensor, expected: Tensor, known: bool) -> None:
    cache = model.new_cache(SAMPLES, CAPACITY)
    assert close(model.extend(ids[:, :7], cache, 0), expected[:, 6])
    for past in range(7, 20):
        logits = model.extend(ids[:, past : past + 1], cache, past if known else torch.tensor([past]))
        assert close(logits, expected[:, past]), past
    assert close(model.extend(ids[:, 20:], cache, 20 if known else torch.tensor([20])), expected[:, -1])


@torch.inference_mode()
def test_a_cache_that_is_taken_back_forgets_what_came_after(model: TinyLm, ids: Tensor, expected: Tensor) -> None:
    cache = model.new_cache(SAMPLES, CAPACITY)
    model.extend(ids.flip(1), cache, 0)
    for past in (torch.tensor([9]), 9):
        model.extend(ids[:, :9], cache, 0)
        assert close(model.extend(ids[:, 9:10], cache, past), expected[:, 9])


@torch.inference_mode()
def test_sequences_of_a_batch_do_not_see_each_other(model: TinyLm, ids: Tensor, expected: Tensor) -> None:
    for sample in range(SAMPLES):
        cache = model.new_cache(1, CAPACITY)
        model.extend(ids[sample : sample + 1, :-1], cache, 0)
        assert close(model.extend(ids[sample : sample + 1, -1:], cache, TOKENS - 1), expected[sample, -1:])


def test_a_cache_says_its_bytes(model: TinyLm) -> None:
    assert (
        model.new_cache(SAMPLES, CAPACITY).bytes == 2 * 2 * SAMPLES * 2 * CAPACITY * 32 * 4
    )  # K and V, L, N, H, S, D/H
