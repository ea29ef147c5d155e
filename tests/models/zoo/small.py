# SPDX-License-Identifier: Apache-2.0
"""Small models of libraries, and what they are fed with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from pybench.models.zoo.build import Built, build

TINY = {"num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32, "vocab_size": 99}
DECODER = {"model_type": "gpt2", "n_layer": 1, "n_embd": 16, "n_head": 2, "vocab_size": 99, "n_positions": 64}


def config(folder: Path, content: dict[str, Any]) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def built(model: str, folder: Path, **given: Any) -> Built:
    """A model by name, `bert` or `gpt2` small."""
    contents = {"bert": {"model_type": "bert", **TINY}, "gpt2": DECODER}
    if model not in contents:
        return build(model, **given)
    return build("./config.json", config=config(folder, contents[model]), **given)


def fed(one: Built) -> tuple[torch.Tensor, ...]:
    """Three samples, of seven tokens where they are of tokens: not the sizes that it is exported with."""
    generator = torch.Generator().manual_seed(0)
    tensors = []
    for feed in one.feeds.inputs:
        shape = [(3, 7)[min(axis, 1)] if size is None else size for axis, size in enumerate(feed.shape)]
        if feed.below is None:
            tensors.append(torch.randn(shape, generator=generator))
        else:
            tensors.append(torch.randint(feed.least, feed.below, shape, generator=generator))
    return tuple(tensors)
