# SPDX-License-Identifier: Apache-2.0
"""Generation in a runtime: a batch of prompts in, tokens out one after the other, from a cache of keys and values.

    generation = runtime_row.generates(session, GenerationTask(prompt, new_tokens=64, temperature=0.0, seed=1))
    generation.prefill()          # the prompt to the device, the cache filled, the first token chosen and seen here
    generation.decode()           # the other tokens, and all of them brought here; may be repeated without a prefill
    generation.ids()              # int64 [N, new_tokens] of the last request

Every sequence of a batch has the same length and goes on until `new_tokens`: no token ends it. Tokens between the
first and the last stay on the device, as in a server that streams without waiting for what it has sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class GenerationTask:
    """What is generated.

    prompt: int64 [N, T]
    new_tokens: of each sequence, at least 2
    temperature: 0: the likeliest token each time (greedy); else logits are divided by it, and a token is drawn
    seed: of the draws; each request draws the same
    """

    prompt: Ids
    new_tokens: int
    temperature: float
    seed: int


class Generation(Protocol):
    """One request, ready to be repeated. `cache_bytes`: of the keys and values of the whole request."""

    cache_bytes: int

    def prefill(self) -> None: ...

    def decode(self) -> None: ...

    def ids(self) -> Ids: ...

    def logits(self) -> Iterator[npt.NDArray[np.float32]]:
        """One whole request, step by step: float32 [N, V] that each new token is chosen from, in turn."""
        ...


@runtime_checkable
class Decoder(Protocol):
    """A torch module that continues sequences from a cache, as TinyLM does (pybench/models/tinylm.py)."""

    def new_cache(self, samples: int, capacity: int) -> Any: ...

    def extend(self, ids: Any, cache: Any, past: Any) -> Any: ...
