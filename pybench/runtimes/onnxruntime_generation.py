# SPDX-License-Identifier: Apache-2.0
"""Generation by onnxruntime: one ONNX file reads the prompt with an empty past, then each token with all before it.

The file takes the keys and values of earlier tokens and gives them back with those of the new ones
(`pybench.models.export`). They lie in buffers on the device, made once. The prompt's are in one of its own, so that
decoding can be repeated, those of later steps in two that take turns. Each step has a binding of its own, made before
the windows. So a step is one call, and neither cache nor chosen ids pass the host. The likeliest ids are chosen in the
graph. To draw others, logits come to the host in each step, and numpy draws as torch does here: probabilities over
exponential noise, then the largest. onnxruntime waits for each step. Does not capture steps: their shapes grow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime

from pybench.catalogue.causes import Cause
from pybench.errors import UnsupportedError
from pybench.runtimes.generation import GenerationTask, Ids
from pybench.runtimes.onnxruntime import OnnxRuntimeSession
from pybench.runtimes.session import TensorSpec

DEVICE = 0  # of those that the process sees


class OnnxRuntimeGeneration:
    """One request of an opened file with a cache. `_landed`: int64 [new_tokens, N], the ids on the host."""

    def __init__(self, session: OnnxRuntimeSession, task: GenerationTask) -> None:
        self._ids_input, *self._past_inputs = session.inputs
        if not self._past_inputs:
            raise UnsupportedError(
                f"{session.path.name} takes no keys and values", code=Cause.NO_CACHE, hint="export it with its cache"
            )
        self._session, self._kind, self._task = session.inference, session.kind, task
        self._samples, self._prompt_tokens = task.prompt.shape
        self._greedy = task.temperature == 0
        self._landed = np.zeros((task.new_tokens, self._samples), np.int64)
        self._random = np.random.default_rng(task.seed)
        self._make_buffers()
        self._bindings = [self._binding(index) for index in range(task.new_tokens)]
        where = "in the graph, the likeliest" if self._greedy else "drawn on the host, from logits copied in each step"
        session.labels["choice"] = where

    def prefill(self) -> None:
        self._random = np.random.default_rng(self._task.seed)
        self._prompt.update_inplace(self._task.prompt)
        self._step(0)
        if self._greedy:
            self._landed[0] = self._first.numpy()[:, 0]

    def decode(self) -> None:
        if not self._greedy:
            self._current.update_inplace(self._landed[0][:, None])
        for index in range(1, self._task.new_tokens):
            self._step(index)
        if self._greedy:
            self._landed[1:] = self._later.numpy()[:, :, 0]

    def ids(self) -> Ids:
        return self._landed.T.copy()

    def logits(self) -> Iterator[npt.NDArray[np.float32]]:
        self._random = np.random.default_rng(self._task.seed)
        self._prompt.update_inplace(self._task.prompt)
        for index in range(self._task.new_tokens):
            self._step(index)
            found = self._logits.numpy()
            if self._greedy:
                chosen = self._first.numpy() if index == 0 else self._later.numpy()[index - 1]
                self._landed[index] = chosen[:, 0]
            yield found

    def _step(self, index: int) -> None:
        """Runs the model for token `index`, and sees to it that the next step finds the token."""
        binding = self._bindings[index]
        self._session.run_with_iobinding(binding)
        binding.synchronize_outputs()
        if not self._greedy:
            self._landed[index] = self._drawn()
            self._current.update_inplace(self._landed[index][:, None])

    def _drawn(self) -> Ids:
        """int64 [N]. A logit that is NaN is chosen: nothing raises inside a window."""
        logits = self._logits.numpy().astype(np.float64) / self._task.temperature
        with np.errstate(invalid="ignore", over="ignore"):
            weights = np.exp(logits - logits.max(-1, keepdims=True))
            return np.asarray((weights / self._random.exponential(size=weights.shape)).argmax(-1), np.int64)

    def _make_buffers(self) -> None:
        """All that a request writes, on the device. `_turns`: the caches that later steps write in turn."""
        samples, steps = self._samples, self._task.new_tokens - 1
        outputs = self._session.get_outputs()
        self._output_names = [value.name for value in outputs]
        self._prompt = self._buffer((samples, self._prompt_tokens), np.int64)
        self._first, self._current = (self._buffer((samples, 1), np.int64) for _ in range(2))
        self._later = self._buffer((steps, samples, 1), np.int64)
        self._logits = self._buffer((samples, outputs[0].shape[1]), np.float32)
        self._prompts_cache = self._cache(self._prompt_tokens)
        self._turns = [self._cache(self._prompt_tokens + steps) for _ in range(2)]
        self.cache_bytes: int = sum(value.tensor_size_in_bytes() for value in self._turns[0])

    def _cache(self, tokens: int) -> list[onnxruntime.OrtValue]:
        return [self._buffer(self._shape(spec, tokens), spec.dtype.type) for spec in self._past_inputs]

    def _shape(self, spec: TensorSpec, tokens: int) -> tuple[int, ...]:
        """Of a tensor of the past: [N, heads, tokens, width]."""
        _, heads, _, width = spec.shape
        if heads is None or width is None:  # for the type checker: the exporter fixes both
            raise UnsupportedError(f"{spec.name} has no fixed heads and width", code=Cause.NO_CACHE)
        return self._samples, heads, tokens, width

    def _buffer(self, shape: Sequence[int], kind: type[Any]) -> onnxruntime.OrtValue:
        return onnxruntime.OrtValue.ortvalue_from_shape_and_type(list(shape), kind, self._kind, DEVICE)

    def _binding(self, index: int) -> Any:
        """Where step `index` reads and writes. A cache is a prefix of its buffer, so its address is the buffer's."""
        binding = self._session.io_binding()
        seen = 0 if index == 0 else self._prompt_tokens + index - 1
        read = self._prompts_cache if index < 2 else self._turns[(index - 1) % 2]  # the first reads nothing of it
        written = self._prompts_cache if index == 0 else self._turns[index % 2]
        tokens = self._prompt_tokens if index == 0 else 1
        address = self._prompt.data_ptr() if index == 0 else self._fed_at(index)
        binding.bind_input(self._ids_input.name, self._kind, DEVICE, np.int64, [self._samples, tokens], address)
        for spec, value in zip(self._past_inputs, read, strict=True):
            shape = list(self._shape(spec, seen))
            binding.bind_input(spec.name, self._kind, DEVICE, spec.dtype.type, shape, value.data_ptr())
        logits, chosen, *present = self._output_names
        binding.bind_ortvalue_output(logits, self._logits)
        shape = [self._samples, 1]
        binding.bind_output(chosen, self._kind, DEVICE, np.int64, shape, self._chosen_at(index))
        for name, spec, value in zip(present, self._past_inputs, written, strict=True):
            shape = list(self._shape(spec, seen + tokens))
            binding.bind_output(name, self._kind, DEVICE, spec.dtype.type, shape, value.data_ptr())
        return binding

    def _fed_at(self, index: int) -> int:
        """Address of the ids that step `index` reads, which the step before has chosen, or the host has drawn."""
        return self._chosen_at(index - 1) if self._greedy else int(self._current.data_ptr())

    def _chosen_at(self, index: int) -> int:
        """Address of the ids that the graph chooses in step `index`."""
        if index == 0:
            return int(self._first.data_ptr())
        begin: int = (index - 1) * self._samples * np.dtype(np.int64).itemsize
        return int(self._later.data_ptr()) + begin
