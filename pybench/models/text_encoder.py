# SPDX-License-Identifier: Apache-2.0
"""A small encoder that classifies sequences of tokens; 2,181,514 parameters at 32,000 ids and ten classes.

Two blocks of attention and a two-layer network, each normalised before it (pre-norm), then the mean over positions.
Small enough to be trained on a CPU within a minute: nine tenths of its weights are vectors of words. Attention is
written out, as in `distilbert`, so that a quantiser finds both products. N: sequences, T: tokens, D: 64, H: 2 heads.
"""

from __future__ import annotations

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from pybench.catalogue.models import TEXT_ENCODER_POSITIONS, TOKENIZER_IDS

WIDTH = 64
HEADS = 2
LAYERS = 2


class WideAttention(nn.Module):
    """Each token attends to all of its sequence; [N, T, D] -> [N, T, D]."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(WIDTH, WIDTH)
        self.key = nn.Linear(WIDTH, WIDTH)
        self.value = nn.Linear(WIDTH, WIDTH)
        self.project_out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        samples, tokens, width = x.shape
        query, key, value = (
            linear(x).view(samples, tokens, HEADS, width // HEADS).transpose(1, 2)
            for linear in (self.query, self.key, self.value)
        )  # each [N, H, T, D/H]
        scores = (query @ key.transpose(2, 3)) * (width // HEADS) ** -0.5  # [N, H, T, T]
        y = torch.softmax(scores, dim=-1) @ value
        out: Tensor = self.project_out(y.transpose(1, 2).reshape(samples, tokens, width))
        return out


class EncoderBlock(nn.Module):
    """Attention, then two linear layers, four times as wide between them; [N, T, D] -> [N, T, D]."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.attention = WideAttention()
        self.norm2 = nn.LayerNorm(WIDTH)
        self.widen = nn.Linear(WIDTH, 4 * WIDTH)
        self.narrow = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        out: Tensor = x + self.narrow(functional.gelu(self.widen(self.norm2(x))))
        return out


class TextEncoder(nn.Module):
    """ids [N, T] (int64) -> logits [N, classes], from the mean over positions."""

    def __init__(self, classes: int, vocabulary: int = TOKENIZER_IDS) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, WIDTH)
        self.position = nn.Embedding(TEXT_ENCODER_POSITIONS, WIDTH)
        self.blocks = nn.ModuleList(EncoderBlock() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, classes)
        for module in (self.embed, self.position):
            nn.init.normal_(module.weight, std=0.1)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids) + self.position(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.head(self.norm(x).mean(dim=1))
        return logits
