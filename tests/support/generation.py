# SPDX-License-Identifier: Apache-2.0
"""A small decoder, and the judge of generation in any runtime: a forward pass over the whole sequence so far."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from pybench.models.tinylm import Size, TinyLm
from pybench.runtimes.generation import Generation, Ids

# Of FP32 logits of about 1: sums of the same terms in another order; see tests/models/test_tinylm.py.
TOLERANCE = 1e-5


def small_decoder(vocabulary: int, scale: float = 8.0) -> TinyLm:
    """A TinyLM of two layers with seeded weights.

    scale: of its matrices. At their initial 0.02 attention is nearly uniform, and a wrong mask would not show.
    """
    torch.manual_seed(0)
    module = TinyLm(Size(64, 2, 2), vocabulary, positions=64).eval()
    for parameter in module.parameters():
        if parameter.dim() == 2:
            parameter.data *= scale
    return module


def check_logits(generation: Generation, forward: Callable[[Tensor], Tensor], prompt: Ids) -> None:
    """Each step's logits, and the token that is the likeliest by them, against the whole sequence so far."""
    sequence = torch.from_numpy(prompt)
    for logits in generation.logits():
        with torch.inference_mode():
            expected = forward(sequence).float().numpy()
        assert np.abs(logits - expected).max() < TOLERANCE
        sequence = torch.cat((sequence, torch.from_numpy(logits.argmax(-1))[:, None]), 1)
    assert np.array_equal(generation.ids(), sequence.numpy()[:, prompt.shape[1] :])
