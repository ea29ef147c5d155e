# SPDX-License-Identifier: Apache-2.0
"""How an iteration of copies is cut into parts. That they overlap, tests/gpu finds out on a GPU."""

from __future__ import annotations

import pytest
import torch

from pybench.case.factors import FROM_GPU, TO_GPU
from pybench.workloads.h2d import described, parts_of


@pytest.mark.parametrize(("size", "streams"), [(10, 1), (10, 4), (4, 4), (1000, 7)])
@pytest.mark.parametrize("way", [TO_GPU, FROM_GPU])
def test_each_byte_is_copied_by_one_stream_in_the_direction_that_was_asked_for(
    way: str, size: int, streams: int
) -> None:
    host, device = torch.arange(size).to(torch.uint8), torch.full((size,), 255, dtype=torch.uint8)
    before = {TO_GPU: host.clone(), FROM_GPU: device.clone()}[way]
    parts = parts_of(way, host, device, streams)
    assert len(parts) == streams
    assert sum(part.source.numel() for part in parts) == size
    assert max(part.source.numel() for part in parts) - min(part.source.numel() for part in parts) <= 1
    for part in parts:
        part.target.copy_(part.source)
    assert torch.equal(host, before)
    assert torch.equal(device, before)


@pytest.mark.parametrize(
    ("size", "streams", "text"), [(12, 1, "1 of 12 bytes"), (12, 4, "4 of 3 bytes"), (10, 4, "4 of 2 to 3 bytes")]
)
def test_the_label_says_the_sizes_of_all_parts(size: int, streams: int, text: str) -> None:
    host, device = torch.zeros(size, dtype=torch.uint8), torch.zeros(size, dtype=torch.uint8)
    assert described(parts_of(TO_GPU, host, device, streams)) == text
