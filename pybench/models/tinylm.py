# SPDX-License-Identifier: Apache-2.0
"""TinyLM: a decoder-only transformer in the manner of GPT-2 (pre-norm, learned positions, GELU), in three sizes.

| name | width | layers | heads | parameters at 32,000 ids |
| --- | --- | --- | --- | --- |
| tinylm-tiny | 64 | 1 | 1 | 4.3 million |
| tinylm-small | 256 | 4 | 4 | 20.1 million |
| tinylm-large | 512 | 8 | 8 | 59.0 million |

Follows the structure of nanoGPT. Weights of embedding and head are not tied. Leaves out dropout (nothing here is
trained to generalise) and biases in linear layers. `forward` reads whole sequences, which is what a serving system
calls prefill. `extend` continues them from a cache of keys and values with a fixed capacity, as in gpt-fast.
`continued` is given what was seen and gives it back longer, which is the form that an ONNX file can have.
N: sequences of a batch, T: tokens of a sequence, S: capacity of the cache, P: tokens of the past, L: layers, D: width,
H: heads, V: vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as functional
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from pybench.catalogue.models import TINYLM_POSITIONS, TOKENIZER_IDS


@dataclass(frozen=True, slots=True)
class Size:
    """How large a TinyLM is; the width of a head is `width / heads` = 64."""

    width: int
    layers: int
    heads: int


TINY, SMALL, LARGE = Size(64, 1, 1), Size(256, 4, 4), Size(512, 8, 8)


@dataclass(frozen=True, slots=True, eq=False)
class KeyValueCache:
    """What attention has seen, of L layers.

    keys, values: [L, N, H, S, D/H]
    positions: int64 [S], 0, 1, ..., S - 1
    """

    keys: Tensor
    values: Tensor
    positions: Tensor

    @property
    def bytes(self) -> int:
        """Of keys and values."""
        return sum(tensor.numel() * tensor.element_size() for tensor in (self.keys, self.values))


@dataclass(frozen=True, slots=True, eq=False)
class CachePositions:
    """Which entries of a cache T new tokens write and read.

    positions: int64 [T], where they are written
    begin: the first of these; None: known only on the device, when the work runs
    end: entries from here on are not read
    mask: bool [T, end], true where a token reads an entry; None: all of them, or without a past those before it
    """

    positions: Tensor
    begin: int | None
    end: int
    mask: Tensor | None


@dataclass(frozen=True, slots=True, eq=False)
class LayerCache:
    """What one layer has seen.

    keys, values: [N, H, S, D/H], which take in those of the new tokens
    at: which positions the new tokens attend to
    """

    keys: Tensor
    values: Tensor
    at: CachePositions

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Puts key and value into the cache, and attends to what is then in it; all but the cache [N, H, T, D/H]."""
        at = self.at
        for held, new in ((self.keys, key), (self.values, value)):
            if at.begin is None:
                held.index_copy_(2, at.positions, new)
            else:  # a prompt of 128 tokens on a CPU: 50 us, and 880 us by `index_copy_`
                held[:, :, at.begin : at.end] = new
        seen = self.keys[:, :, : at.end], self.values[:, :, : at.end]
        has_no_past = at.begin == 0
        return functional.scaled_dot_product_attention(query, *seen, attn_mask=at.mask, is_causal=has_no_past)


@dataclass(frozen=True, slots=True, eq=False)
class Past:
    """What one layer has seen, kept as it is.

    keys, values: [N, H, P, D/H]
    mask: bool [T, P + T]
    present: takes in keys, then values, of past and new tokens
    """

    keys: Tensor
    values: Tensor
    mask: Tensor
    present: list[Tensor]

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """[N, H, T, D/H], of queries to the past and to these."""
        keys, values = torch.cat((self.keys, key), 2), torch.cat((self.values, value), 2)
        self.present.extend((keys, values))
        return functional.scaled_dot_product_attention(query, keys, values, attn_mask=self.mask)


class CausalAttention(nn.Module):
    """Causal self-attention; [N, T, D] -> [N, T, D], of whole sequences, or of T tokens after those in a cache."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.heads = size.heads
        self.project_in = nn.Linear(size.width, 3 * size.width, bias=False)
        self.project_out = nn.Linear(size.width, size.width, bias=False)

    def forward(self, x: Tensor, cache: LayerCache | Past | None = None) -> Tensor:
        samples, tokens, width = x.shape
        mixed = self.project_in(x).view(samples, tokens, 3, self.heads, width // self.heads)
        query, key, value = mixed.permute(2, 0, 3, 1, 4).unbind(0)  # each [N, H, T, D/H]
        if cache is None:
            y = functional.scaled_dot_product_attention(query, key, value, is_causal=True)  # [N, H, T, D/H]
        else:
            y = cache.attend(query, key, value)
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

    def forward(self, x: Tensor, cache: LayerCache | Past | None = None) -> Tensor:
        x = x + self.attention(self.norm1(x), cache)
        out: Tensor = x + self.narrow(functional.gelu(self.widen(self.norm2(x))))  # [N, T, 4D] inside
        return out


class TinyLm(nn.Module):
    """ids [N, T] (int64) -> logits of the token after each sequence [N, V]; `every_position` gives [N, T, V].

    `classes`: what the head tells apart in place of tokens, by the last position, as in GPT-2's classifier.
    """

    def __init__(
        self,
        size: Size,
        vocabulary: int = TOKENIZER_IDS,
        positions: int = TINYLM_POSITIONS,
        classes: int | None = None,
    ) -> None:
        super().__init__()
        self.size = size
        self.checkpoints = False  # in training: keep only the inputs of blocks, and compute the rest again
        self.embed = nn.Embedding(vocabulary, size.width)
        self.position = nn.Embedding(positions, size.width)
        self.blocks = nn.ModuleList(Block(size) for _ in range(size.layers))
        self.norm = nn.LayerNorm(size.width)
        self.head = nn.Linear(size.width, classes or vocabulary, bias=False)
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

    def new_cache(self, samples: int, capacity: int) -> KeyValueCache:
        """An empty cache for `samples` sequences of up to `capacity` tokens: of the weights' type, on their device."""
        size, weight = self.size, self.head.weight
        shape = (size.layers, samples, size.heads, capacity, size.width // size.heads)
        positions = torch.arange(capacity, device=weight.device)
        return KeyValueCache(weight.new_zeros(shape), weight.new_zeros(shape), positions)

    def extend(self, ids: Tensor, cache: KeyValueCache, past: int | Tensor) -> Tensor:
        """Logits of the token after `ids` [N, T], which follow the first `past` tokens in `cache`: [N, V].

        `past` as a tensor, int64 [1], is read when the work runs, so that one captured or compiled step serves every
        position. Attention then reads the whole capacity under a mask.
        """
        x = self.embed(ids)
        at = _cache_positions(cache, past, ids.shape[1])
        x = x + self.position(at.positions)
        for layer, block in enumerate(self.blocks):
            x = block(x, LayerCache(cache.keys[layer], cache.values[layer], at))
        last: Tensor = self.head(self.norm(x[:, -1]))  # [N, V]
        return last

    def past_shapes(self) -> list[tuple[int, int]]:
        """(heads, width of a head) of each tensor of a past, which is [N, heads, P, width]: key and value by layer."""
        size = self.size
        return [(size.heads, size.width // size.heads)] * (2 * size.layers)

    def continued(self, ids: Tensor, past: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        """Logits of the token after `ids` [N, T], [N, V], and the past with these: each [N, H, P + T, D/H]."""
        seen, tokens = past[0].shape[2], ids.shape[1]
        positions = torch.arange(tokens, device=ids.device) + seen
        mask = torch.arange(seen + tokens, device=ids.device) <= positions[:, None]  # [T, P + T]
        x = self.embed(ids) + self.position(positions)
        present: list[Tensor] = []
        for layer, block in enumerate(self.blocks):
            x = block(x, Past(past[2 * layer], past[2 * layer + 1], mask, present))
        last: Tensor = self.head(self.norm(x[:, -1]))  # [N, V]
        return last, present

    def hidden(self, ids: Tensor) -> Tensor:
        """What the head reads: [N, T, D]."""
        x = self.embed(ids) + self.position(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = _again(block, x) if self.checkpoints else block(x)
        out: Tensor = self.norm(x)
        return out


def _cache_positions(cache: KeyValueCache, past: int | Tensor, tokens: int) -> CachePositions:
    """One new token with a known past reads all before it, so it needs no mask; nor does a sequence without a past."""
    if isinstance(past, Tensor):
        positions = past + cache.positions[:tokens]
        return CachePositions(positions, None, len(cache.positions), cache.positions <= positions[:, None])
    end = past + tokens
    positions = cache.positions[past:end]
    mask = None if past == 0 or tokens == 1 else cache.positions[:end] <= positions[:, None]
    return CachePositions(positions, past, end, mask)


def tiny(vocabulary: int) -> TinyLm:
    """tinylm-tiny, which embeds so many ids."""
    return TinyLm(TINY, vocabulary)


def _again(block: nn.Module, x: Tensor) -> Tensor:
    """A block that is computed a second time when its gradients are; nothing in it is random."""
    out: Tensor = checkpoint(block, x, use_reentrant=False, preserve_rng_state=False)
    return out


def small(vocabulary: int) -> TinyLm:
    """tinylm-small, which embeds so many ids."""
    return TinyLm(SMALL, vocabulary)


def large(vocabulary: int) -> TinyLm:
    """tinylm-large, which embeds so many ids."""
    return TinyLm(LARGE, vocabulary)


def classifier(classes: int, vocabulary: int) -> TinyLm:
    """The tiny one with a head of classes: tinylm-classifier."""
    return TinyLm(TINY, vocabulary, classes=classes)
