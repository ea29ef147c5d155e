# SPDX-License-Identifier: Apache-2.0
from dataclasses import dataclass

import torch
from torch import Tensor, nn

WIDTH = 64


@dataclass
class Seen:
    values: Tensor  # [N, capacity, WIDTH]

    @property
    def bytes(self) -> int:
        return self.values.numel() * self.values.element_size()


class Averaging(nn.Module):
    """The next token by the mean of all tokens so far."""

    def __init__(self, ids: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(ids, WIDTH)
        self.head = nn.Linear(WIDTH, ids, bias=False)

    def forward(self, ids: Tensor) -> Tensor:  # [N, T] -> logits [N, ids]
        return self.head(self.embed(ids).mean(1))

    def new_cache(self, samples: int, capacity: int) -> Seen:
        return Seen(self.head.weight.new_zeros(samples, capacity, WIDTH))

    def extend(self, ids: Tensor, cache: Seen, past: int | Tensor) -> Tensor:
        """Of `ids` after the first `past` tokens of the cache; a tensor `past` is read on the device."""
        places = torch.arange(ids.shape[1], device=ids.device) + past
        cache.values.index_copy_(1, places, self.embed(ids))
        end = past + ids.shape[1]
        if isinstance(end, int):
            return self.head(cache.values[:, :end].mean(1))
        is_seen = torch.arange(cache.values.shape[1], device=ids.device)[:, None] < end
        return self.head((cache.values * is_seen).sum(1) / end)

    # For runtime onnxruntime: the past comes in, and goes out longer. Each tensor is [N, heads, past, width].

    def past_shapes(self) -> list[tuple[int, int]]:
        return [(1, WIDTH)]

    def continued(self, ids: Tensor, past: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        present = torch.cat((past[0], self.embed(ids)[:, None]), 2)
        return self.head(present.mean((1, 2))), [present]
