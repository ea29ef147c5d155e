# SPDX-License-Identifier: Apache-2.0
"""DistilBERT with a head that classifies sequences (Sanh et al. 2019, arXiv:1910.01108): 66,955,010 parameters.

Parameter names equal those of Hugging Face's `DistilBertForSequenceClassification`. Attention is written out as
softmax(q k^T / sqrt(width of a head)) v, so that the exported graph has both matrix products for a quantiser to find.
Torch's fused attention exports to the same function with its scale spread over q and k. Left out: the mask (every token
of a sequence is attended to; text is packed, not padded) and dropout.
N: sequences of a batch, T: tokens, D: 768, H: 12 heads.
"""

from __future__ import annotations

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from pybench.catalogue.models import DISTILBERT_IDS, DISTILBERT_POSITIONS

WIDTH = 768
LAYERS = 6
HEADS = 12
EPSILON = 1e-12  # of the layer norms, as in BERT


class Embeddings(nn.Module):
    """ids [N, T] -> [N, T, D]: a word's vector plus its position's, normalised."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(vocabulary, WIDTH)
        self.position_embeddings = nn.Embedding(DISTILBERT_POSITIONS, WIDTH)
        self.LayerNorm = nn.LayerNorm(WIDTH, EPSILON)

    def forward(self, ids: Tensor) -> Tensor:
        positions = self.position_embeddings(torch.arange(ids.shape[1], device=ids.device))
        out: Tensor = self.LayerNorm(self.word_embeddings(ids) + positions)
        return out


class SelfAttention(nn.Module):
    """Each token attends to all of its sequence; [N, T, D] -> [N, T, D]."""

    def __init__(self) -> None:
        super().__init__()
        self.q_lin = nn.Linear(WIDTH, WIDTH)
        self.k_lin = nn.Linear(WIDTH, WIDTH)
        self.v_lin = nn.Linear(WIDTH, WIDTH)
        self.out_lin = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        samples, tokens, width = x.shape
        query, key, value = (
            linear(x).view(samples, tokens, HEADS, width // HEADS).transpose(1, 2)
            for linear in (self.q_lin, self.k_lin, self.v_lin)
        )  # each [N, H, T, D/H]
        scores = (query @ key.transpose(2, 3)) * (width // HEADS) ** -0.5  # [N, H, T, T]
        y = torch.softmax(scores, dim=-1) @ value  # [N, H, T, D/H]
        out: Tensor = self.out_lin(y.transpose(1, 2).reshape(samples, tokens, width))
        return out


class FeedForward(nn.Module):
    """Two linear layers, four times as wide between them; [N, T, D] -> [N, T, D]."""

    def __init__(self) -> None:
        super().__init__()
        self.lin1 = nn.Linear(WIDTH, 4 * WIDTH)
        self.lin2 = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.lin2(functional.gelu(self.lin1(x)))
        return out


class EncoderLayer(nn.Module):
    """Attention, then the feed-forward network, each beside a shortcut and normalised after it."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = SelfAttention()
        self.sa_layer_norm = nn.LayerNorm(WIDTH, EPSILON)
        self.ffn = FeedForward()
        self.output_layer_norm = nn.LayerNorm(WIDTH, EPSILON)

    def forward(self, x: Tensor) -> Tensor:
        x = self.sa_layer_norm(x + self.attention(x))
        out: Tensor = self.output_layer_norm(x + self.ffn(x))
        return out


class Transformer(nn.Module):
    """The layers, one after another."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.layer = nn.ModuleList(EncoderLayer() for _ in range(layers))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layer:
            x = layer(x)
        return x


class TransformerEncoder(nn.Module):
    """ids [N, T] -> [N, T, D]."""

    def __init__(self, layers: int, vocabulary: int) -> None:
        super().__init__()
        self.embeddings = Embeddings(vocabulary)
        self.transformer = Transformer(layers)

    def forward(self, ids: Tensor) -> Tensor:
        out: Tensor = self.transformer(self.embeddings(ids))
        return out


class DistilBert(nn.Module):
    """ids [N, T] (int64) -> logits [N, classes], from what the first token of each sequence has become."""

    def __init__(self, classes: int = 2, vocabulary: int = DISTILBERT_IDS, layers: int = LAYERS) -> None:
        super().__init__()
        self.distilbert = TransformerEncoder(layers, vocabulary)
        self.pre_classifier = nn.Linear(WIDTH, WIDTH)
        self.classifier = nn.Linear(WIDTH, classes)
        for module in self.modules():  # as in BERT
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)

    def forward(self, ids: Tensor) -> Tensor:
        first = self.distilbert(ids)[:, 0]  # [N, D]
        logits: Tensor = self.classifier(functional.relu(self.pre_classifier(first)))
        return logits


def translated(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tensors of transformers' files under the names used here.

    Older files keep the positions 0, 1, 2, ... as a buffer. The names of a bare DistilBertModel have no prefix. The
    head of the masked language model (vocab_*) has no part in classifying.
    """
    bare = any(name.startswith("embeddings.") for name in state)
    return {
        f"distilbert.{name}" if bare and name.startswith(("embeddings.", "transformer.")) else name: value
        for name, value in state.items()
        if not name.endswith("position_ids") and not name.startswith("vocab_")
    }
