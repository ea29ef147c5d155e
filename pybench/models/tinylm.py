# SPDX-License-Identifier: Apache-2.0
"""TinyLM: a decoder-only transformer in the manner of GPT-2 (pre-norm, learned positions, GELU), small and large.

| name | width | layers | heads | parameters at 32,000 ids |
| --- | --- | --- | --- | --- |
| tinylm-small | 256 | 4 | 4 | 20.1 million |
| tinylm-large | 512 | 8 | 8 | 59.0 million |

Follows the structure of nanoGPT. Weights of embedding and head are not tied. Leaves out dropout (nothing here is
trained to generalise), biases in linear layers, generation and a key-value cache: one forward pass is what a serving
system calls prefill. N: sequences of a batch, T: tokens of a sequence, D: width, H: heads, V: vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from pybench.catalogue.models import TINYLM_POSITIONS, TOKENIZER_IDS


@dataclass(frozen=True, slots=True)
class Size:
    """How large a TinyLM is; the width of a head is `width / heads` = 64."""

    width: int
    layers: int
    heads: int


SMALL, LARGE = Size(256, 4, 4), Size(512, 8, 8)


class CausalAttention(nn.Module):
    """Causal self-attention; [N, T, D] -> [N, T, D]."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.heads = size.heads
        self.project_in = nn.Linear(size.width, 3 * size.width, bias=False)
        self.project_out = nn.Linear(size.width, size.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        samples, tokens, width = x.shape
        mixed = self.project_in(x).view(samples, tokens, 3, self.heads, width // self.heads)
        query, key, value = mixed.permute(2, 0, 3, 1, 4).unbind(0)  # each [N, H, T, D/H]
        y = functional.scaled_dot_product_attention(query, key, value, is_causal=True)  # [N, H, T, D/H]
        y = y.transpose(1, 2).reshape(samples, tokens, width)  # [N, T, D]
        out: Tensor = self.project_out(y)
        return out


class Block(nn.Module):
    """Attention, then a two-layer network four times as wide, each beside a shortcut; [N, T, D] -> [N, T, D]."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(size.width)
        self.attention = CausalAttention(size)
        self.norm2 = nn.LayerNorm(size.width)
        self.widen = nn.Linear(size.width, 4 * size.width, bias=False)
        self.narrow = nn.Linear(4 * size.width, size.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        out: Tensor = x + self.narrow(functional.gelu(self.widen(self.norm2(x))))  # [N, T, 4D] inside
        return out


class TinyLm(nn.Module):
    """ids [N, T] (int64) -> logits of the token after each sequence [N, V]; `every_position` gives [N, T, V]."""

    def __init__(self, size: Size, vocabulary: int = TOKENIZER_IDS, positions: int = TINYLM_POSITIONS) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, size.width)
        self.position = nn.Embedding(positions, size.width)
        self.blocks = nn.ModuleList(Block(size) for _ in range(size.layers))
        self.norm = nn.LayerNorm(size.width)
        self.head = nn.Linear(size.width, vocabulary, bias=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                # As in GPT-2: what enters the residual stream is scaled down by the number of its 2 x layers summands.
                residual = name.endswith(("project_out.weight", "narrow.weight"))
                deviation = 0.02 / (2 * size.layers) ** 0.5 if residual else 0.02
                nn.init.normal_(parameter, std=deviation)

    def forward(self, ids: Tensor) -> Tensor:
        last: Tensor = self.head(self.hidden(ids)[:, -1])  # [N, V]
        return last

    def every_position(self, ids: Tensor) -> Tensor:
        """Logits of the token after each position, as training needs them: [N, T, V]."""
        logits: Tensor = self.head(self.hidden(ids))
        return logits

    def hidden(self, ids: Tensor) -> Tensor:
        """What the head reads: [N, T, D]."""
        x = self.embed(ids) + self.position(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        out: Tensor = self.norm(x)
        return out


def small(vocabulary: int) -> TinyLm:
    """tinylm-small, which embeds so many ids."""
    return TinyLm(SMALL, vocabulary)


def large(vocabulary: int) -> TinyLm:
    """tinylm-large, which embeds so many ids."""
    return TinyLm(LARGE, vocabulary)
