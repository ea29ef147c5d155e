# SPDX-License-Identifier: Apache-2.0
"""Generation by torch, eager: the module's `extend` once for the prompt, then once for each further token.

The host knows how long the past is, so a step reads only what the cache has so far. Steps that are compiled or captured
(`torch_compile`, `torch_graph`) are one for all positions: they find their token and position in fixed places, and read
the whole capacity under a mask.
Draws follow gpt-fast: probabilities over exponential noise, then the largest, which waits for no device. Does not batch
requests of several lengths, page its cache, or stop at a token.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pybench.catalogue.causes import Cause
from pybench.errors import UnsupportedError
from pybench.runtimes.generation import Decoder, GenerationTask, Ids
from pybench.runtimes.torch import TorchSession


class TorchGeneration:
    """One request of an opened module. `_ids`: int64 [new_tokens, N] on the device, `_landed`: the same on the host."""

    def __init__(self, session: TorchSession, task: GenerationTask) -> None:
        module = session.module
        if not isinstance(module, Decoder):
            raise UnsupportedError(
                f"{type(module).__name__} keeps no keys and values",
                code=Cause.NO_CACHE,
                hint="give the model `new_cache` and `extend`, as pybench/models/tinylm.py has them",
            )
        self._module, self._kind, self._task = module, session.kind, task
        samples, self._past = task.prompt.shape
        host = torch.from_numpy(task.prompt)
        self._prompt = host.pin_memory() if self._kind == "cuda" else host
        with torch.inference_mode():
            self._cache = module.new_cache(samples, self._past + task.new_tokens - 1)  # the last token is not fed
        self._ids = torch.zeros(task.new_tokens, samples, dtype=torch.int64, device=self._kind)
        self._landed = torch.zeros(task.new_tokens, samples, dtype=torch.int64, pin_memory=self._kind == "cuda")
        self._random = torch.Generator(self._kind)
        self.cache_bytes: int = self._cache.bytes

    @torch.inference_mode()
    def prefill(self) -> None:
        self._random.manual_seed(self._task.seed)
        self._put(0, self._first())
        self._land(slice(0, 1))

    @torch.inference_mode()
    def decode(self) -> None:
        for index in range(1, self._task.new_tokens):
            self._put(index, self._next(index))
        self._land(slice(1, None))

    def ids(self) -> Ids:
        return self._landed.numpy().T.copy()

    def logits(self) -> Iterator[npt.NDArray[np.float32]]:
        self._random.manual_seed(self._task.seed)
        for index in range(self._task.new_tokens):
            with torch.inference_mode():
                logits = self._next(index) if index else self._first()
                self._put(index, logits)
                self._land(slice(index, index + 1))
                found = logits.float().cpu().numpy()
            yield found

    def _first(self) -> Tensor:
        """Logits after the prompt, [N, V]."""
        return self._extend(self._prompt.to(self._kind, non_blocking=True), 0)

    def _next(self, index: int) -> Tensor:
        """Logits of the token `index` of a sequence, from the one before it: [N, V]."""
        return self._extend(self._ids[index - 1][:, None], self._past + index - 1)

    def _extend(self, ids: Tensor, past: int | Tensor) -> Tensor:
        logits: Tensor = self._module.extend(ids, self._cache, past)
        return logits

    def _put(self, index: int, logits: Tensor) -> None:
        self._ids[index] = self._choose(logits)

    def _choose(self, logits: Tensor) -> Tensor:
        """[N, V] -> int64 [N]. A logit that is NaN is chosen: nothing raises inside a window."""
        if self._task.temperature == 0:
            return logits.argmax(-1)
        probabilities = (logits.float() / self._task.temperature).softmax(-1)
        return (probabilities / torch.empty_like(probabilities).exponential_(generator=self._random)).argmax(-1)

    def _land(self, steps: slice) -> None:
        """Brings the ids of these steps to the host, which waits for all that was launched before."""
        self._landed[steps].copy_(self._ids[steps], non_blocking=True)
        self._wait()

    def _wait(self) -> None:
        if self._kind == "cuda":
            torch.cuda.current_stream().synchronize()


class FixedStepGeneration(TorchGeneration):
    """`_current`: int64 [N, 1], the token that a step begins with; `_position`: int64 [1], where it stands."""

    def __init__(self, session: TorchSession, task: GenerationTask) -> None:
        super().__init__(session, task)
        self._current = torch.zeros(len(task.prompt), 1, dtype=torch.int64, device=self._kind)
        self._position = torch.zeros(1, dtype=torch.int64, device=self._kind)

    def _next(self, index: int) -> Tensor:
        self._place(index)
        return self._extend(self._current, self._position)

    def _place(self, index: int) -> None:
        """Puts the token before `index` and its position where the step reads them."""
        self._current.copy_(self._ids[index - 1][:, None])
        self._position.fill_(self._past + index - 1)
